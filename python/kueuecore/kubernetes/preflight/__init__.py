"""Looks for what stands in the way of `kueuecore serve`."""
