"""Judges each decision of a Kueue on the states that it can have seen. It has no I/O and no clock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.checks import WorkloadKey
from kueuecore.configuration import Configuration
from kueuecore.controller.versions import Version
from kueuecore.kubernetes.dry_run.alone import is_right_alone, preemptor_in, said_alone, what_if
from kueuecore.kubernetes.dry_run.cluster_view import ClusterView, Moment
from kueuecore.kubernetes.dry_run.decisions_seen import Kind, Seen, seen_between, stated
from kueuecore.kubernetes.dry_run.possible_states import possible_states
from kueuecore.kubernetes.dry_run.trying import Prediction, Tried, advance, predict, tried
from kueuecore.times import SECOND_NS

__all__ = ["Judge", "Judged", "Verdict"]

# How long the write of a decision may take from its cycle, and how long a watch may lag.
_LOOKBACK_NS = 5 * SECOND_NS
_SETTLE_NS = 3 * SECOND_NS
# How long Kueue may take for what is due: a batch of requeues, backlogs of writes.
_MISSING_NS = 10 * SECOND_NS
_QUIET_NS = 4 * SECOND_NS
_MOST_MISSING_NS = 120 * SECOND_NS
_PREDICT_NS = SECOND_NS
# Kueue's timers and the ones here start when each sees the change.
_BATCH_NS = 5 * SECOND_NS // 4
_MOST_TRIALS = 24
_MOST_OPEN = 1_000
_MOST_STANDING = 5_000


class Verdict(StrEnum):
    """What the judge says of a decision."""

    AGREED = "agreed"
    """The engine decides so on a state that Kueue can have seen."""
    DIFFERED = "differed"
    """It does not on any of them."""
    UNJUDGED = "unjudged"
    """Not all that Kueue can have seen is known: a watch was broken, or Kueue or this process had just started."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A decision of Kueue with the verdict.

    Args:
        at: When it was shown, in nanoseconds since 1970.
        kind: What was decided.
        verdict: The verdict.
        workload: Namespace and name of the Workload.
        uid: Its UID.
        kueue: What Kueue decided.
        here: What the engine decides.
        why: On which state they agree, if not on that seen here; or why they differ; or why nothing can be said.
        manifest: The Workload as Kueue wrote it.
        objects: If they differ, all objects as they were before the decision.
    """

    at: int
    kind: Kind
    verdict: Verdict
    workload: WorkloadKey
    uid: str
    kueue: str
    here: str
    why: str = ""
    manifest: JsonObject = field(default_factory=dict, repr=False)
    objects: tuple[dict[str, Any], ...] = field(default=(), repr=False)


@dataclass(slots=True)
class _Standing:
    """What the engine would do, and Kueue has not done."""

    prediction: Prediction
    since: int
    is_reported: bool = False


@dataclass(frozen=True, slots=True)
class _Open:
    """A decision that waits for what shows later."""

    seen: Seen
    manifest: JsonObject
    overdue: frozenset[WorkloadKey]
    """Who had been next for so long that Kueue must have seen them."""


class Judge:
    """Follows a cluster, and says of each decision of its Kueue whether the engine decides so too.

    Args:
        configuration: The Configuration of that Kueue.
        settle_ns: How long a decision waits for events that show later, before it counts as another.
        missing_ns: How long Kueue may take for a decision that is due.
    """

    def __init__(
        self, configuration: Configuration, *, settle_ns: int = _SETTLE_NS, missing_ns: int = _MISSING_NS
    ) -> None:
        long_batches = configuration.is_enabled("SchedulerLongRequeueInterval")
        self._lookback_ns = _LOOKBACK_NS + (10 * SECOND_NS if long_batches else 0)
        self._settle_ns, self._missing_ns = settle_ns, missing_ns
        self.view = ClusterView(configuration, window_ns=self._lookback_ns + settle_ns + 2 * SECOND_NS)
        """What it has seen of the cluster."""
        self._unlisted = set(self.view.kinds)
        self._open: list[_Open] = []
        self._standing: dict[WorkloadKey, _Standing] = {}
        self._recent: deque[Seen] = deque(maxlen=_MOST_OPEN)
        self._judged: list[Judged] = []
        self._blind: str = ""
        self._decided_at = 0
        self._predicts_at = 0
        self._is_dirty = True

    # Input.

    @property
    def unlisted(self) -> frozenset[str]:
        """The kinds that were not listed yet: nothing is judged before they are."""
        return frozenset(self._unlisted)

    def take_list(self, kind: str, objects: list[JsonObject], *, version: str, now: int) -> None:
        """Take in the list of all objects of a kind. What was decided since the last event of its watch is not judged.

        Args:
            kind: The kind.
            objects: All objects.
            version: `resourceVersion` of the list.
            now: The time, in nanoseconds since 1970.
        """
        self.view.resync(kind, objects, version=version, now=now)
        if not self._unlisted:
            self._leave(f"the watch of {kind} had to list anew", now)
        self._unlisted.discard(kind)
        self._is_dirty = True

    def observe(self, event: JsonObject, *, now: int) -> None:
        """Take in a watch event; a decision of Kueue in it is judged at once if it is the expected one.

        Args:
            event: The event.
            now: The time, in nanoseconds since 1970.

        Raises:
            ManifestError, WatchError, TypeError, ValueError: As `Controller.observe`. Nothing has changed.
        """
        moment = self.view.observe(event, now=now)
        if moment is None:
            return
        self._is_dirty = True
        if moment.key[0] != "Workload":
            return
        if moment.after is None:
            self._standing.pop(moment.key[1:], None)
        elif moment.before is not None and not self._unlisted and _is_same(moment):
            for kind, text in seen_between(moment.before, moment.after):
                self._see(moment, kind, text)

    def blind(self, why: str, *, now: int) -> None:
        """Record that watches fail, or that none does anymore: decisions that show meanwhile are not judged.

        Args:
            why: What is missing; empty if nothing is.
            now: The time, in nanoseconds since 1970.
        """
        if why and not self._blind:
            self._leave(why, now)
        self._blind = why
        if self._standing:
            self._standing.clear()

    def restart(self, configuration: Configuration, why: str, *, now: int) -> None:
        """Begin anew with the same objects: another Kueue decides, which has no memory of earlier cycles.

        Args:
            configuration: The Configuration of that Kueue.
            why: Why, for decisions that cannot be judged.
            now: The time, in nanoseconds since 1970.
        """
        self._leave(why, now)
        self.view.restart(configuration, now=now)
        self._is_dirty = True

    # Judging.

    def tick(self, now: int) -> int | None:
        """Judge what has waited long enough, and look for decisions that Kueue has not made.

        Args:
            now: The time, in nanoseconds since 1970.

        Returns:
            When to call it again if nothing is observed before; None: never.
        """
        if self._unlisted:
            return None
        due = [entry for entry in self._open if entry.seen.at + self._settle_ns <= now]
        if due:
            self._open = [entry for entry in self._open if entry.seen.at + self._settle_ns > now]
            for entry in due:
                self._settle(entry)
        if self._is_dirty:
            advance(self.view.engine, at=now)
        self._look_for_missing(now)
        self.view.kept_since = min((entry.seen.number for entry in self._open), default=self.view.next_number)
        times = [entry.seen.at + self._settle_ns for entry in self._open[:1]]
        if self._standing or self._is_dirty:
            times.append(self._predicts_at)
        if (wake := self.view.engine.next_wake()) is not None:
            times.append(max(wake, now + _PREDICT_NS))
        return min(times, default=None)

    def take(self) -> list[Judged]:
        """Take what was judged since the last call."""
        judged, self._judged = self._judged, []
        return judged

    def _see(self, moment: Moment, kind: Kind, text: str) -> None:
        key = moment.key[1:]
        manifest = moment.after or {}
        uid = text_at(manifest, "metadata", "uid")
        seen = Seen(moment.at, moment.number, moment.version, key, uid, kind, text)
        if kind is not Kind.MESSAGE:
            self._decided_at = moment.at
            self._standing.pop(key, None)
        self._recent.append(seen)
        if self._blind:
            self._say(seen, manifest, Verdict.UNJUDGED, "", self._blind)
            return
        if tried(self.view.state(seen.number), seen, at=seen.at).agrees:
            self._say(seen, manifest, Verdict.AGREED, text, "")
            return
        latest = seen.at - self._lookback_ns
        overdue = frozenset(other for other, standing in self._standing.items() if standing.since <= latest)
        self._open.append(_Open(seen, manifest, overdue))
        if len(self._open) > _MOST_OPEN:
            old = self._open.pop(0)
            self._say(old.seen, old.manifest, Verdict.UNJUDGED, "", "too many decisions wait to be judged")

    def _settle(self, entry: _Open) -> None:
        """Judge a decision on all states that Kueue can have seen."""
        seen, manifest = entry.seen, entry.manifest
        if seen.number not in self.view.numbers():
            self._say(seen, manifest, Verdict.UNJUDGED, "", "the states before it are no longer known")
            return
        first = tried(self.view.state(seen.number), seen, at=seen.at)
        # Kueue has passed over others that it must have seen.
        is_unfair = seen.kind is Kind.ADMISSION and not entry.overdue.isdisjoint(first.ahead)
        why = "" if first.agrees else None if is_unfair else self._reason(seen, first)
        if why is not None:
            self._say(seen, manifest, Verdict.AGREED, seen.text, why)
            return
        objects = tuple(self.view.objects(seen.number))
        self._say(seen, manifest, Verdict.DIFFERED, first.here, self._cause(seen, first), objects)

    def _reason(self, seen: Seen, first: Tried) -> str | None:
        """Return on which state Kueue can have decided so; None if there is none."""
        if tried(self.view.state(seen.number), seen, at=seen.at + _BATCH_NS).agrees:
            return "Kueue had requeued parked workloads a moment earlier"
        others = self._others(seen)
        for state in possible_states(self.view, seen, lookback_ns=self._lookback_ns):
            if is_right_alone(state.engine, seen, self.view, has_others=bool(others)):
                ahead = ", ".join("/".join(key) for key in first.ahead[:3])
                return state.why or (f"Kueue had not requeued {ahead} yet" if ahead else "its cycle had no other head")
        states = possible_states(self.view, seen, lookback_ns=self._lookback_ns)
        for state in islice(states, 1, _MOST_TRIALS):
            requeued = state.engine.fork()
            if tried(state.engine, seen, at=seen.at).agrees or tried(requeued, seen, at=seen.at + _BATCH_NS).agrees:
                return state.why
        return None

    def _others(self, seen: Seen) -> list[Seen]:
        """Return the decisions on other workloads that may have been made in the same cycle."""
        return [it for it in self._recent if it.key != seen.key and abs(it.at - seen.at) <= self._lookback_ns]

    def _cause(self, seen: Seen, first: Tried) -> str:
        """Say which rule decides otherwise here."""
        if seen.kind is Kind.ADMISSION and first.ahead:
            names = ", ".join("/".join(key) for key in first.ahead[:3])
            return f"here {names} {'goes' if len(first.ahead) == 1 else 'go'} first"
        about = preemptor_in(seen, self.view) if seen.kind is Kind.PREEMPTION else seen.key
        if about is None:
            return "the preemptor does not exist"
        found = what_if(self.view.state(seen.number), about, at=seen.at)
        said = "it does not exist" if found is None else said_alone(found)
        return f"{'/'.join(about)}, alone in a cycle, {said}"

    def _look_for_missing(self, now: int) -> None:
        if self._blind or now < self._predicts_at or not (self._is_dirty or self._standing):
            return
        self._predicts_at, self._is_dirty = now + _PREDICT_NS, False
        found = predict(self.view.engine, at=now)
        kept = {key: self._standing[key] for key in found if key in self._standing}
        self._standing = {
            key: kept[key] if key in kept and kept[key].prediction == prediction else _Standing(prediction, now)
            for key, prediction in [*found.items()][:_MOST_STANDING]
        }
        is_quiet = now >= self._decided_at + _QUIET_NS
        for key, standing in self._standing.items():
            age = now - standing.since
            if not standing.is_reported and (age >= _MOST_MISSING_NS or (is_quiet and age >= self._missing_ns)):
                standing.is_reported = True
                self._miss(key, standing, now)

    def _miss(self, key: WorkloadKey, standing: _Standing, now: int) -> None:
        manifest = self.view.get(("Workload", *key)) or {}
        said = next((text for kind in Kind if (text := stated(kind, manifest)) is not None), "nothing is decided")
        seconds = (now - standing.since) // SECOND_NS
        self._judged.append(
            Judged(
                now,
                standing.prediction.kind,
                Verdict.DIFFERED,
                key,
                text_at(manifest, "metadata", "uid"),
                said,
                standing.prediction.text,
                f"due for {seconds} s, and Kueue has not decided so",
                manifest,
                tuple(self.view.objects(self.view.next_number)),
            )
        )

    def _leave(self, why: str, now: int) -> None:
        """Give up what is being judged: states are missing."""
        for entry in self._open:
            self._say(entry.seen, entry.manifest, Verdict.UNJUDGED, "", why)
        self._open.clear()
        self._standing.clear()
        self._predicts_at = now + self._settle_ns

    def _say(
        self,
        seen: Seen,
        manifest: JsonObject,
        verdict: Verdict,
        here: str,
        why: str,
        objects: tuple[dict[str, Any], ...] = (),
    ) -> None:
        self._judged.append(
            Judged(seen.at, seen.kind, verdict, seen.key, seen.uid, seen.text, here, why, manifest, objects)
        )


def _is_same(moment: Moment) -> bool:
    before, after = Version.of(object_at(moment.before)), Version.of(object_at(moment.after))
    return after.is_same_object(before)
