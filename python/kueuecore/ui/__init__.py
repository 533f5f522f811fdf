"""The page of `kueuecore ui`: a state to look at in a browser, served on loopback, read-only. Needs the extra `ui`."""
