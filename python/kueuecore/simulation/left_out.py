"""What a run lacks: jobs of a recorded trace that have no Workload in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kueuecore._json import JsonObject

__all__ = ["LeftOut"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The jobs of a trace that a run leaves out.

    Args:
        trace: The name of the trace.
        n_in_file: How many jobs its file has.
        reasons: How many of them are left out, by reason.

    Example:
        >>> print(LeftOut(trace="log", n_in_file=40, reasons={"no run time": 1, "cancelled before it started": 3}))
        4 of the 40 jobs of trace log are left out: no run time (1), cancelled before it started (3)
    """

    trace: str
    n_in_file: int
    reasons: Mapping[str, int] = field(hash=False)

    @property
    def n_jobs(self) -> int:
        """How many are left out."""
        return sum(self.reasons.values())

    def __str__(self) -> str:
        are = "is" if self.n_jobs == 1 else "are"
        return f"{self.n_jobs} of the {self.n_in_file} jobs of trace {self.trace} {are} left out: {self.why}"

    @property
    def why(self) -> str:
        """The reasons with their counts."""
        return ", ".join(f"{reason} ({n})" for reason, n in self.reasons.items())

    def to_dict(self) -> JsonObject:
        """Return it as plain data for JSON."""
        reasons: JsonObject = dict(self.reasons)
        return {"trace": self.trace, "jobs": self.n_jobs, "of": self.n_in_file, "reasons": reasons}
