"""Serves Kueue's webhooks."""
