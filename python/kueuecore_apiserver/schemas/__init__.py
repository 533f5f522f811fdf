"""Structural schemas as an API server applies them: types, defaults, pruning, formats and rules in CEL."""
