"""Connects a manager of MultiKueue to its worker clusters."""
