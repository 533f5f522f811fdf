"""How many worlds the property tests look at: `quick` for everybody, `ci` for each change, `nightly` for the nights."""

import os

from hypothesis import HealthCheck, settings

# A world takes a while to draw, and more on a busy machine: timing is not a test.
COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)

settings.register_profile("quick", COMMON, max_examples=15, derandomize=True)
settings.register_profile("ci", COMMON, max_examples=100, derandomize=True)
settings.register_profile("nightly", COMMON, max_examples=3000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
