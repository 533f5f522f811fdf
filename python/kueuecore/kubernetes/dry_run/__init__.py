"""Judges a Kueue's decisions without writing: on the states that it can have seen, for weeks."""
