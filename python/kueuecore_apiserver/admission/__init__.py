"""Admission by what is configured in the cluster: policies in CEL, and webhooks over HTTPS."""
