"""Serves the visibility API: pending workloads in their order."""
