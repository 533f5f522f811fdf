"""Clusters to run `kueuecore serve` in: a real API server where its binaries are found, and our own."""
