"""The page of `kueuecore ui`: shows a state in the browser, on loopback, read-only. Needs the extra `ui`."""
