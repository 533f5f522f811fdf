"""A counterexample as a story: steps, what happens in each, and the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kueuecore._json import JsonObject, JsonValue
from kueuecore._spans import span
from kueuecore.times import SECOND_NS

__all__ = ["Event", "Step", "Story"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens in a step.

    Args:
        kind: `arrives`, `ends`, `lost`, `admitted`, `preempts`, `evicted` or `waits`.
        subject: The key of the workload, or the name of the node.
        sentence: What happens to it, after its name.
        rule: The section of the rules, such as `04 §2`; empty if none decides it.
        reason: Kueue's reason of a preemption.
    """

    kind: str
    subject: str
    sentence: str
    rule: str = ""
    reason: str = ""

    def after(self, other: Event | None) -> str:
        """Return it as text, without the subject if that is the one of the event before it."""
        rule = f"rules/{self.rule}" if self.rule else ""
        why = ", ".join(filter(None, (self.reason, rule)))
        who = "and" if other is not None and other.subject == self.subject else self.subject
        return f"{who} {self.sentence}{f' ({why})' if why else ''}"

    def data(self) -> JsonObject:
        """Return it as JSON."""
        names = ("kind", "subject", "sentence", "rule", "reason")
        return {name: value for name in names if (value := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class Step:
    """What happens at one time.

    Args:
        number: Its number, from 1.
        at: When, in seconds since the beginning.
        events: What happens, in order.
        tells_time: Whether its text says when, as where experiments make workloads wait.
    """

    number: int
    at: int
    events: tuple[Event, ...]
    tells_time: bool = False

    def __str__(self) -> str:
        text = f"At {span(self.at * SECOND_NS)}: " if self.tells_time else ""
        for before, event in zip((None, *self.events), self.events, strict=False):
            words = event.after(before)
            text += words if before is None else f" {words}" if words.startswith("and ") else f"; {words}"
        return f"{self.number}. {text}."


@dataclass(frozen=True, slots=True)
class Story:
    """A counterexample as a story.

    Args:
        steps: What happens.
        instead: The same workloads in another order, if the property compares two.
        end: How it ends, in a sentence.
        about: The keys of the workloads that the property is about: who goes in circles, waits, or is evicted.
    """

    steps: tuple[Step, ...]
    instead: tuple[Step, ...]
    end: str
    about: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """The story as text."""
        found = [str(step) for step in self.steps]
        if self.instead:
            found += ["In another order:", *map(str, self.instead)]
        return [*found, self.end]

    def data(self) -> JsonObject:
        """Return it as JSON."""
        found: JsonObject = {"steps": _data(self.steps), "end": self.end, "about": list(self.about)}
        return {**found, "instead": _data(self.instead)} if self.instead else found


def _data(steps: Sequence[Step]) -> list[JsonValue]:
    return [{"number": it.number, "at": it.at, "events": [event.data() for event in it.events]} for it in steps]
