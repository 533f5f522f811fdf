"""Serves over HTTPS: connections, certificates, and who may ask."""
