"""Whether an expectation is met, and if not, what there is instead and why."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of an expectation: true if it is met.

    Args:
        is_met: Is it?
        subject: The workload or the queue that it is about.
        expected: What was expected, in words.
        got: What there is.
        why: Kueue's message about that; empty if it has none.

    Example:
        >>> verdict = Verdict(False, "team-a/train", "is admitted", "pending in a", "insufficient quota for cpu")
        >>> bool(verdict)
        False
        >>> print(verdict)
        team-a/train
          expected: is admitted
          got:      pending in a
          why:      insufficient quota for cpu
    """

    is_met: bool
    subject: str
    expected: str
    got: str
    why: str = ""

    def __bool__(self) -> bool:
        return self.is_met

    def __str__(self) -> str:
        lines = [self.subject, f"  expected: {self.expected}", f"  got:      {self.got}"]
        return "\n".join([*lines, f"  why:      {self.why}"] if self.why else lines)

    def __repr__(self) -> str:
        # What pytest shows of an assertion that fails; longer ones it cuts in the middle.
        why = f" ({self.why})" if self.why else ""
        return f"<{self.subject}: expected {self.expected}; got {self.got}{why}>"
