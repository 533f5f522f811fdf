"""How many worlds the property tests look at: `quick` for everybody, `ci` for each change, `nightly` for the nights.

And which tests need the proof, which an installed wheel leaves out: those that import it, or what plays with it.
They are skipped without it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A world takes a while to draw, and more on a busy machine: timing is not a test.
COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)

settings.register_profile("quick", COMMON, max_examples=15, derandomize=True)
settings.register_profile("ci", COMMON, max_examples=100, derandomize=True)
settings.register_profile("nightly", COMMON, max_examples=3000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# Tests say themselves as which release of Kueue they decide.
os.environ.pop("KUEUECORE_KUEUE", None)

PROOF = re.compile(
    r"^ *(?:from|import) (?:kueuecore\.(?:_proof|conformance|reference|trials)|tests\.judge\.(?:playing|running))\b",
    re.MULTILINE,
)
HAS_PROOF = find_spec("kueuecore.trials") is not None


class NeedsProof(pytest.Module):
    """A module of tests that cannot be imported without the proof."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        pytest.skip("needs the proof, which no wheel has: make dev", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    if HAS_PROOF or not PROOF.search(module_path.read_text(encoding="utf-8")):
        return None
    return NeedsProof.from_parent(parent, path=module_path)
