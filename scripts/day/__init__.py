"""A day of jobs in a cluster: `make day`."""
