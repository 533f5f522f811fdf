"""The reference shares nothing with the engine, not even at run time."""

import subprocess
import sys

PROGRAM = """
import sys
import kueuecore.reference
from kueuecore.conformance import answer

given = {"quantity": "1", "resource": "cpu"}
case = {"kind": "resource_value", "config": {"now": "2026-01-01T00:00:00Z"}, "input": given}
assert answer(case, by="reference") == {"value": 1000}
# What each release has is data that both read.
known = ("kueuecore.reference", "kueuecore.conformance", "kueuecore.releases", "kueuecore.version")
print(*sorted(name for name in sys.modules if name.startswith("kueuecore.") and not name.startswith(known)))
"""


def test_the_reference_loads_nothing_else_of_the_package() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert found.stdout == "\n"
