"""The verdict on an expectation: whether it is met, and if not, the actual state and the reason for it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on an expectation; true if it is met.

    Args:
        is_met: Whether it is met.
        subject: The workload or queue.
        expected: The expectation, in words.
        got: The actual state, in words.
        why: Kueue's message about it, or what held or spared the workload; empty if there is nothing to say.

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
        # pytest shows this for a failed assertion, and truncates longer texts in the middle.
        why = f" ({self.why})" if self.why else ""
        return f"<{self.subject}: expected {self.expected}; got {self.got}{why}>"
