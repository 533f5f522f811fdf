"""The loop of a controller without its I/O: watch events in, a turn, writes out, and how they went back in."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from kueuecore import _arguments
from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore._patches import patched
from kueuecore.checks import CheckController, ObjectWrite, applied_review
from kueuecore.configuration import Configuration
from kueuecore.controller.check_reviews import CheckReviews
from kueuecore.controller.cycle_report import Considered, considered_in
from kueuecore.controller.job_report import NOTHING, JobReport
from kueuecore.controller.local_queue_usage import next_sampling, with_usage
from kueuecore.controller.metrics import Metrics
from kueuecore.controller.validation import check, check_version, checked_answer, event_of, plain_object
from kueuecore.controller.versions import Key, Version, Versions, key_of
from kueuecore.controller.watched_kinds import SOMETIMES_WATCHED, WATCHED
from kueuecore.controller.workload_record import WorkloadRecord
from kueuecore.controller.workload_writer import Writer
from kueuecore.controller.writes import Turn, WorkloadWrite, conditions_that_hold
from kueuecore.decisions import Decision, Event
from kueuecore.engine import Engine
from kueuecore.errors import KueuecoreError, ManifestError, ObjectRef, Problem
from kueuecore.jobs.context import group_of
from kueuecore.journal import check_digest, check_mapping, digest_of
from kueuecore.manifests import object_ref, to_json_lines
from kueuecore.states import Stage, WorkloadState
from kueuecore.times import TimeLike, format_time, nanoseconds

__all__ = ["Controller", "WatchError"]

_LOGGER = logging.getLogger("kueuecore.controller")
_FORMAT = "kueuecore.controller/1"
_SECOND_NS = 1_000_000_000


class WatchError(KueuecoreError):
    """A watch ended with an error, most often 410 Gone: list again (`Controller.resync`), and watch from there.

    Args:
        code: The code of the API server's status.
        message: Its message.
    """

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"the watch ended with {code}: {message}")


class Controller:
    """What a controller that schedules Workloads has to remember and to decide. It does no I/O and has no clock.

    Whoever embeds it brings what a watch says (`observe`, `resync`), asks for a `turn`, sends the writes of that turn,
    and says how each went (`confirm`, `refuse`). Until then nothing more is written to that Workload, and what a watch
    says of it is put off. Not safe to use from several threads at a time.

    Args:
        configuration: Kueue's Configuration.
        models_readiness: Is `note_readiness` called for all jobs? Otherwise `waitForPodsReady`, which Kueue has on by
            default, only counts if the Configuration names it.
        considered: Is told of every head of a cycle and what became of it. Costs nothing if there is none.
        metrics: Counts what is decided and written.
        checks: Who decides on AdmissionChecks; somebody else may write what other checks say. Watch `kinds`.

    Example:
        >>> controller = Controller()
        >>> controller.observe({"type": "ADDED", "object": {
        ...     "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "resourceVersion": "1"}}},
        ...     now="2026-01-01T00:00:00Z")
        True
        >>> controller.turn("2026-01-01T00:00:00Z").writes
        ()
    """

    def __init__(
        self,
        configuration: Configuration | None = None,
        *,
        models_readiness: bool = False,
        considered: Callable[[Considered], None] | None = None,
        metrics: Metrics | None = None,
        checks: Sequence[CheckController] = (),
    ) -> None:
        if not (considered is None or callable(considered)):
            raise TypeError(f"considered must be a function, not {type(considered).__name__}")
        if metrics is not None:
            _arguments.instance("metrics", metrics, Metrics)
        self.engine = Engine(configuration, models_readiness=models_readiness)
        """The engine, to ask it for what it holds. What changes it goes through the controller."""
        self._considered = considered
        self._metrics = metrics
        self._deciding = CheckReviews(checks)
        self._versions = Versions()
        self._workloads: dict[tuple[str, str], WorkloadRecord] = {}
        # All other objects, to save them.
        self._others: dict[Key, JsonObject] = {}
        # What may have to be written, in the order in which it came up.
        self._dirty: dict[tuple[str, str], None] = {}
        # Old slices by new ones: their end is written after the quota of the new one.
        self._successors: dict[tuple[str, str], tuple[str, str]] = {}
        self._loose_events: list[Event] = []
        self._writer = Writer(configuration)
        self._idle_cycles = 0
        self._patience: int | None = None
        self._turned_at = 0
        self.engine.take_written()

    # What is watched.

    @property
    def kinds(self) -> Mapping[str, tuple[str, str]]:
        """What to list and watch, by kind: apiVersion and the plural in the path; `WATCHED` and what checks need."""
        return {**self._deciding.kinds, **WATCHED}

    def observe(self, event: Mapping[str, Any], *, now: TimeLike) -> bool:
        """Take in a watch event, in any order, as often as it comes.

        Args:
            event: `type` (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR; `None` as kopf gives it is ADDED) and `object`, as
                the API server sends them. The object is not copied: do not change it afterwards.
            now: The time.

        Raises:
            WatchError: The event is an error.
            ManifestError: The event has no type or no object, or the object is not what the API server of a Kueue would
                hold. Nothing has changed.
            TypeError: The event or its object is no plain data, such as one of the `kubernetes` client's classes.
            ValueError: There is no such type of events.

        Returns:
            False if that is old news, or of a kind that nobody here looks at.
        """
        at = nanoseconds(now)
        kind, manifest = event_of(event)
        if kind == "ERROR":
            code = manifest.get("code")
            raise WatchError(code if isinstance(code, int) else 500, text_at(manifest, "message"))
        check_version(manifest)
        key, version = key_of(manifest), Version.of(manifest)
        if key[0] not in self._all_kinds() or self._is_of_others(manifest):
            return False
        if kind in ("BOOKMARK", "DELETED") or not self._is_news(key, version):
            self._versions.note_watched(key[0], version)
            return kind == "DELETED" and self._observe_deletion(key, version, at)
        known = self._workloads.get(key[1:]) if key[0] == "Workload" else None
        seen = self._versions[key]
        is_other = known is not None and seen is not None and not version.is_same_object(seen)
        if known is not None and (is_other or known.write is not None):
            # It is looked at later, or something else is done first.
            check(manifest, at)
        if is_other and seen is not None:
            # Its deletion was missed.
            self._delete(key, seen, at)
            known = None
        if known is not None and known.write is not None:
            if known.newer is None or version.is_newer_than(Version.of(known.newer)):
                known.newer = manifest
        else:
            self._take(key, version, manifest, at)
        self._versions.note_watched(key[0], version)
        return True

    def resync(
        self, kind: str, objects: Iterable[JsonObject], *, now: TimeLike, resource_version: str = ""
    ) -> tuple[Problem, ...]:
        """Take in the list of all objects of a kind: what is not in it has gone.

        Args:
            kind: The kind, one of `WATCHED`; ResourceClaimTemplate, DeviceClass and Topology are taken in, too.
            objects: All of them. What an API server lists has no `kind` of its own, which is filled in.
            now: The time.
            resource_version: `metadata.resourceVersion` of the list. What was seen in a newer version stays as it is.

        Returns:
            What is wrong with objects that were not taken; the others were.

        Raises:
            TypeError: An object is no plain data. Nothing has changed.
            ValueError: Nobody looks at this kind, or an object is of another. Nothing has changed.
        """
        problems: list[Problem] = []
        at, kind = nanoseconds(now), _arguments.text("kind", kind)
        version = Version("", _arguments.text("resource_version", resource_version))
        listed: dict[Key, tuple[JsonObject, int]] = {}
        kinds = self._all_kinds()
        if kind not in kinds:
            raise ValueError(f"{_arguments.shown(kind)} is not watched: the kinds are {', '.join(kinds)}")
        api_version, _ = kinds[kind]
        for index, it in enumerate(_arguments.each("objects", objects)):
            plain = plain_object(it, f"objects[{index}]")
            whole: JsonObject = plain if "kind" in plain else {"apiVersion": api_version, "kind": kind, **plain}
            if whole["kind"] != kind:
                raise ValueError(f"in a list of {kind} there is a {whole['kind']}: {'/'.join(key_of(whole)[1:])}")
            listed[key_of(whole)] = whole, index
        for key in self._versions.missing(kind, listed.keys(), version):
            self._delete(key, version, at)
        for whole, index in listed.values():
            try:
                self.observe({"type": "ADDED", "object": whole}, now=at)
            except ManifestError as error:
                _LOGGER.warning("not taken: %s", error)
                problems += (replace(it, index=index) for it in error.problems)
        self._versions.list_taken(kind, version)
        return tuple(problems)

    # What is decided.

    def turn(self, now: TimeLike) -> Turn:
        """Run one cycle, and what Kueue's workload controller does before and after it.

        Args:
            now: The time. May not go back.

        Returns:
            The decision, and what is to be written.

        Raises:
            ValueError: There was a later turn.
        """
        at = nanoseconds(now)
        if at < self._turned_at:
            raise ValueError("time does not go back: there was a later turn")
        self._turned_at = at
        self._reconcile(at)
        decision = self.engine.cycle(at)
        self._note(decision)
        self._reconcile(at)
        writes = self._open_writes(at)
        if self._deciding.controllers:
            self._decide(at)
            writes = (*writes, *self._open_writes(at))
        return Turn(decision, writes, self._take_loose_events(), self._deciding.take_writes())

    def next_wake(self, now: TimeLike) -> int | None:
        """When to take the next turn if nothing is observed before, in nanoseconds since 1970; `None`: never.

        That is `now` while cycles may still come to something; else the first backoff, timeout, maximum execution time,
        or sampling of usage that is due.

        Args:
            now: The time.
        """
        at = nanoseconds(now)
        if any(self._workloads[key].write is None and not self._waits_for_successor(key) for key in self._dirty):
            return at
        if self.engine.has_heads and self._idle_cycles < self._cycles_to_rest():
            return at
        if any(self._is_settled(key) for key in self._deciding.open):
            return at
        # What came since the last turn does not make what was due before less due.
        since = self._turned_at
        times = [self.engine.next_wake(since=since), next_sampling(self.engine, since=since)]
        times.append(self._deciding.next_wake(after=since))
        return min((max(at, time) for time in times if time is not None), default=None)

    # How the writes went.

    def confirm(self, write: WorkloadWrite, answer: JsonObject | None = None, *, now: TimeLike) -> bool:
        """A write was accepted.

        Args:
            write: The write.
            answer: The object as the API server answered with it. Without one it is taken for what the patch makes of
                the stored object: right only for who stores it himself and gives no `resourceVersion`.
            now: The time.

        Returns:
            False if it does not matter any more, because the Workload has gone.

        Raises:
            ManifestError: The answer is no Workload as the API server of a Kueue would hold it. Nothing has changed.
            TypeError: The answer is no plain data. Nothing has changed.
            ValueError: The answer is another object, or an older version. Nothing has changed.
        """
        at = nanoseconds(now)
        key, known = self._known_of(write)
        if known is None or known.write is not write:
            return False
        newer, is_of_job = known.newer, known.telling != NOTHING
        after = patched(known.data, write.patch)
        if answer is not None:
            after = checked_answer("answer", answer, known.data, at)
            if not Version.of(after).is_same_object(Version.of(known.data)):
                raise ValueError(f"{write.key}: the answer is another Workload of that name")
            if Version.of(known.data).is_newer_than(Version.of(after)) and Version.of(after).number is not None:
                raise ValueError(f"{write.key}: the answer is older than what was written to")
        if self._metrics is not None:
            self._metrics.count_write(write, known.data, after)
        known.write = known.newer = None
        known.telling = NOTHING
        self._awake()
        version = Version.of(after)
        self._versions.put(("Workload", *key), version)
        known.data = after
        self.engine.confirm(write.name, namespace=write.namespace)
        self._drain()
        if newer is not None and Version.of(newer).is_newer_than(version):
            self._take(("Workload", *key), Version.of(newer), newer, at)
        elif is_of_job or key not in self._dirty or self._is_as_stored(known):
            self._take(("Workload", *key), version, after, at)
        return True

    def refuse(
        self, write: WorkloadWrite, newest: JsonObject | None = None, *, now: TimeLike, gone: bool = False
    ) -> bool:
        """A write was refused, or nobody knows what became of it: the Workload is as the API server has it.

        Quota that it would have held is free again, and it is queued again (rules/05 §6.4 step 12).

        Args:
            write: The write.
            newest: The object as it is now. Get it after a conflict (409), and above all after a timeout, where the
                write may have been accepted.
            now: The time.
            gone: Is there no such object any more (404)?

        Returns:
            False if it does not matter any more, because the Workload has gone.

        Raises:
            ManifestError: `newest` is no Workload as the API server of a Kueue would hold it. Nothing has changed.
            TypeError: `newest` is no plain data. Nothing has changed.
            ValueError: `newest` has another name. Nothing has changed.
        """
        at, has_gone = nanoseconds(now), _arguments.flag("gone", gone)
        key, known = self._known_of(write)
        if known is None or known.write is not write:
            return False
        if newest is not None:
            newest = checked_answer("newest", newest, known.data, at)
        _LOGGER.info("%s: write %d was refused", write.key, write.number)
        stored, newer = known.data, known.newer
        known.write = known.newer = None
        if known.telling != NOTHING:
            self._tell(key, known, known.telling.then(known.told))
            known.telling = NOTHING
        known.events.clear()
        self._awake()
        self._forget(key, gone=has_gone, at=at)
        if has_gone:
            self._delete(("Workload", *key), Version.of(stored), at)
            return True
        for candidate in (newer, newest):
            if candidate is not None and Version.of(candidate).is_newer_than(Version.of(stored)):
                stored = candidate
        seen = Version.of(known.data)
        if not Version.of(stored).is_same_object(seen):
            self._delete(("Workload", *key), seen, at)
        self._take(("Workload", *key), Version.of(stored), stored, at)
        return True

    def refuse_object(self, write: ObjectWrite, error: str, *, now: TimeLike, is_there: bool = False) -> None:
        """One of a turn's `objects` was refused; whoever wanted it says so on the check, and tries again later.

        What follows it among the objects of that workload is to be left out.

        Args:
            write: The write.
            error: Why, in the words of the API server.
            now: The time.
            is_there: Is there an object of that name already (409), of which a watch may not have told yet?
        """
        _arguments.instance("write", write, ObjectWrite)
        why, is_known = _arguments.text("error", error), _arguments.flag("is_there", is_there)
        self._deciding.refused(write, why, is_there=is_known, now=nanoseconds(now))
        self._awake()

    # What jobs do.

    def finished(
        self,
        name: str,
        *,
        namespace: str,
        reason: str = "Succeeded",
        message: str = "Job finished successfully",
    ) -> bool:
        """The job of a Workload has ended: its quota is free once that is written, with the next turn.

        Returns:
            False if there is no such Workload.
        """
        told = _arguments.text("reason", reason), _arguments.text("message", message)
        return self._hear(namespace, name, JobReport(finished=told))

    def stopped(self, name: str, *, namespace: str) -> bool:
        """The job of an evicted Workload has stopped: its quota is free once that is written (rules/04 §9).

        Returns:
            False if there is no such Workload.
        """
        return self._hear(namespace, name, JobReport(stopped=True))

    def note_readiness(self, name: str, *, namespace: str, are_ready: bool) -> bool:
        """The pods of a Workload's job are all ready, or not any more (rules/07 §6).

        Returns:
            False if there is no such Workload.
        """
        return self._hear(namespace, name, JobReport(are_ready=_arguments.flag("are_ready", are_ready)))

    # What is known.

    def workload(self, name: str, *, namespace: str) -> dict[str, Any] | None:
        """A Workload as the API server has it: what is not written yet is not in it. `None`: there is none."""
        known = self._known(namespace, name)
        return None if known is None else known.data

    def may_run(self, name: str, *, namespace: str) -> bool:
        """May the job of a Workload run? That is so once Admitted is written, and until an eviction or its end is."""
        known = self._known(namespace, name)
        holds = conditions_that_hold(known.data) if known is not None else {}
        return "Admitted" in holds and "Evicted" not in holds and "Finished" not in holds

    @property
    def open_writes(self) -> tuple[WorkloadWrite, ...]:
        """The writes of which nobody has said yet how they went."""
        return tuple(known.write for known in self._workloads.values() if known.write is not None)

    # Across a restart.

    def save(self) -> JsonObject:
        """What it knows, as plain data for JSON: read again by `load`.

        Kept are all objects as they are stored, in which versions they were seen, what jobs have done and is not
        written yet, and what LocalQueues have used (rules/09 §1.3). Not kept, as after any restart: the open writes,
        which flavor a workload would try next, which are parked, the preemptor of a ClusterQueue, and the penalties of
        admissions whose usage was not sampled yet.

        Example:
            >>> controller = Controller.load(Controller().save(), now="2026-01-01T00:00:00Z")
        """
        told: list[JsonValue] = [
            [*key, known.telling.then(known.told).to_json()]
            for key, known in self._workloads.items()
            if (known.telling, known.told) != (NOTHING, NOTHING)
        ]
        accounts = self.engine._core._local_queue_accounts()
        used = {key: account["consumed"] for key, account in accounts.items() if account["consumed"]}
        objects = [with_usage(it, used) for it in self._others.values()]
        saved: JsonObject = {
            "format": _FORMAT,
            "objects": [*objects, *(known.newer or known.data for known in self._workloads.values())],
            "versions": self._versions.to_json(),
            "told": told,
        }
        # Nothing in it is an object of its own, nor a key that a file would have as a text.
        plain: JsonObject = json.loads(json.dumps(saved))
        return {**plain, "digest": digest_of(plain)}

    @classmethod
    def load(
        cls,
        saved: JsonObject,
        *,
        now: TimeLike,
        configuration: Configuration | None = None,
        models_readiness: bool = False,
        considered: Callable[[Considered], None] | None = None,
        metrics: Metrics | None = None,
        checks: Sequence[CheckController] = (),
    ) -> Self:
        """A controller that goes on with what another had saved. Its watches may begin where `watched` says.

        Let it observe all that has happened since, before its first turn: open writes are not in what was saved.

        Args:
            saved: What `save` gave. Its own format is the only one that is read.
            now: The time.
            configuration: As for a new one; it is not in what is saved.
            models_readiness: As for a new one.
            considered: As for a new one.
            metrics: As for a new one.
            checks: As for a new one; they are told of all that is in what was saved.

        Raises:
            ValueError: It was saved in another format, or is not what was saved.
        """
        check_mapping(saved)
        if text_at(saved, "format") != _FORMAT:
            found = _arguments.shown(object_at(saved).get("format"))
            raise ValueError(f"this was saved as {found}, and only {_FORMAT!r} can be read")
        check_digest(saved, "list all objects anew instead")
        objects, versions, told = (saved.get(name) for name in ("objects", "versions", "told"))
        if not (isinstance(objects, list) and isinstance(versions, dict) and isinstance(told, list)):
            raise ValueError("this is not a valid save: it must have objects, versions and told")
        controller = cls(
            configuration, models_readiness=models_readiness, considered=considered, metrics=metrics, checks=checks
        )
        at = nanoseconds(now)
        for plain in objects:
            manifest = object_at(plain)
            check_version(manifest)
            if controller._is_of_others(manifest):
                raise ValueError(f"this is not a valid save: {object_ref(manifest)} has another apiVersion")
            controller._take(key_of(manifest), Version.of(manifest), manifest, at)
        try:
            controller._versions.remember(versions)
            for entry in told:
                controller._remember(entry)
        except ValueError as error:
            raise ValueError(f"this is not a valid save: {error}") from None
        return controller

    def watched(self, kind: str) -> str:
        """The `resourceVersion` up to which a kind was watched, to watch on from; empty if there is none: list then.

        It is right for who hands over the events of a watch in their order, and all of them.
        """
        return self._versions.watched(_arguments.text("kind", kind))

    # What has come.

    def _all_kinds(self) -> Mapping[str, tuple[str, str]]:
        return {**self._deciding.kinds, **WATCHED, **SOMETIMES_WATCHED}

    def _is_of_others(self, manifest: JsonObject) -> bool:
        """Is it of a kind of the same name in another group?"""
        api_version, _ = self._all_kinds().get(text_at(manifest, "kind"), ("", ""))
        return bool(api_version) and group_of(text_at(manifest, "apiVersion") or api_version) != group_of(api_version)

    def _is_news(self, key: Key, version: Version) -> bool:
        return self._versions.is_news(key, version)

    def _observe_deletion(self, key: Key, version: Version, at: int) -> bool:
        if not self._versions.is_gone(key, version):
            if self._versions[key] is None:
                self._versions.drop(key, version)
            return False
        self._delete(key, version, at)
        return True

    def _delete(self, key: Key, version: Version, at: int) -> None:
        # A check controller may raise: nothing has changed then.
        self._deciding.forget(ObjectRef(key[0], key[2], key[1]), now=at)
        seen = self._versions[key]
        self._versions.drop(key, Version(seen.uid if seen is not None else version.uid, version.text))
        self._awake()
        if key[0] == "Workload":
            self._workloads.pop(key[1:], None)
            self._dirty.pop(key[1:], None)
        self._others.pop(key, None)
        if self._metrics is not None:
            self._metrics.note(key, None)
        if key[0] in WATCHED or key[0] in SOMETIMES_WATCHED:
            self.engine.delete(key[0], key[2], namespace=key[1], now=at)

    def _take(self, key: Key, version: Version, manifest: JsonObject, at: int) -> None:
        """This is how an object is now."""
        is_workload = key[0] == "Workload"
        if self._deciding.controllers and not is_workload:
            # A check controller may refuse it, and is to see nothing that the engine refuses.
            check(manifest, at)
            self._deciding.observe(manifest, now=at)
        self.engine.apply(to_json_lines([manifest]), now=at, trusted=True)
        if is_workload:
            self._deciding.observe(manifest, now=at)
        self._versions.put(key, version)
        self._awake()
        if key[0] == "ClusterQueue":
            self._patience = None
        if key[0] == "Workload":
            self._workloads.setdefault(key[1:], WorkloadRecord(manifest)).data = manifest
            return
        self._others[key] = manifest
        if self._metrics is not None:
            self._metrics.note(key, manifest)

    def _awake(self) -> None:
        """Something has happened, after which cycles may come to something again."""
        self._idle_cycles = 0

    # What jobs have done.

    def _hear(self, namespace: str, name: str, told: JobReport) -> bool:
        key = _key(namespace, name)
        known = self._workloads.get(key)
        if known is not None:
            self._tell(key, known, known.told.then(told))
        return known is not None

    def _known(self, namespace: str, name: str) -> WorkloadRecord | None:
        return self._workloads.get(_key(namespace, name))

    def _known_of(self, write: WorkloadWrite) -> tuple[tuple[str, str], WorkloadRecord | None]:
        _arguments.instance("write", write, WorkloadWrite)
        key = write.namespace, write.name
        return key, self._workloads.get(key)

    def _remember(self, entry: JsonValue) -> None:
        match entry:
            case [str(namespace), str(name), dict(told)]:
                if self._hear(namespace, name, JobReport.from_json(told)):
                    return
        raise ValueError("each entry of told must be the namespace and name of a saved Workload, and what its job did")

    def _tell(self, key: tuple[str, str], known: WorkloadRecord, told: JobReport) -> None:
        known.told = told
        self._dirty[key] = None
        self._awake()

    def _forget(self, key: tuple[str, str], *, gone: bool, at: int) -> None:
        """Take a reservation back that the engine holds for one that was not written."""
        namespace, name = key
        if self.engine.workload(name, namespace=namespace).stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED):
            self.engine.forget(name, namespace=namespace, now=at, gone=gone)

    # What is decided.

    def _reconcile(self, at: int) -> None:
        self._hold(self.engine.reconcile(at))

    def _note(self, decision: Decision) -> None:
        self._hold(decision.events)
        for replaced in decision.replaced_slices:
            namespace, _, name = replaced.successor.partition("/")
            self._successors[replaced.namespace, replaced.name] = namespace, name
        has_come_to_something = decision.has_changed_something and not decision.waits_for_pods
        self._idle_cycles = 0 if has_come_to_something else self._idle_cycles + 1
        if self._metrics is not None:
            self._metrics.count_cycle(decision)
        if self._considered is not None:
            for considered in considered_in(decision):
                self._considered(considered)

    def _decide(self, at: int) -> None:
        """Check controllers say what they have to say about workloads that are as they are stored."""
        self._deciding.wake(at)
        for key in self._deciding.open:
            known = self._workloads.get(key)
            if known is None or not self._is_settled(key):
                continue
            review = self._deciding.review(known.data, now=at)
            status = object_at(known.data, "status")
            after = applied_review(status, review, now=format_time(at // _SECOND_NS * _SECOND_NS))
            if after is not status:
                self.engine.apply(to_json_lines([{**known.data, "status": after}]), now=at, trusted=True)
            self._hold(review.events)
        self._reconcile(at)

    def _is_settled(self, key: tuple[str, str]) -> bool:
        """Is a workload as it is stored, so that others may go by that?"""
        known = self._workloads.get(key)
        return known is not None and known.write is None and key not in self._dirty and known.told == NOTHING

    def _hold(self, events: Sequence[Event]) -> None:
        for event in events:
            known = self._workloads.get((event.namespace, event.name))
            if known is not None:
                known.events.append(event)
                self._dirty[event.namespace, event.name] = None

    def _take_loose_events(self) -> tuple[Event, ...]:
        events = tuple(self._loose_events)
        self._loose_events.clear()
        return events

    def _drain(self) -> dict[tuple[str, str], WorkloadState]:
        states = {(state.namespace, state.name): state for state in self.engine.take_written()}
        self._dirty |= dict.fromkeys(key for key in states if key in self._workloads)
        return states

    def _open_writes(self, at: int) -> tuple[WorkloadWrite, ...]:
        """The writes of all Workloads that are not as stored, and for which none is open."""
        states = self._drain()
        writes: list[WorkloadWrite] = []
        for key in list(self._dirty):
            known = self._workloads[key]
            if known.write is not None or self._waits_for_successor(key):
                continue
            del self._dirty[key]
            state = states.get(key) or self.engine.workload(key[1], namespace=key[0])
            write = None if known.told.finished else self._write(known, state)
            if write is not None:
                # What else there is follows once that is written: its status, or what its job has done.
                if not write.subresource or known.told != NOTHING:
                    self._dirty[key] = None
            elif known.told != NOTHING:
                write = self._write(known, self._writer.after_job(known.data, known.told, at))
                known.told, known.telling = NOTHING, NOTHING if write is None else known.told
            if write is not None:
                known.write = write
                writes.append(write)
            else:
                self._loose_events += known.events
            if write is None or write.subresource:
                known.events = []
        return tuple(writes)

    def _waits_for_successor(self, key: tuple[str, str]) -> bool:
        successor = self._successors.get(key)
        if successor is None:
            return False
        known = self._workloads.get(successor)
        if known is not None and (successor in self._dirty or known.write is not None):
            return True
        del self._successors[key]
        return False

    def _is_as_stored(self, known: WorkloadRecord) -> bool:
        _, namespace, name = key_of(known.data)
        return self._writer.write(known.data, self.engine.workload(name, namespace=namespace)) is None

    def _write(self, known: WorkloadRecord, state: WorkloadState) -> WorkloadWrite | None:
        return self._writer.write(known.data, state, known.events)

    # When to look again.

    def _cycles_to_rest(self) -> int:
        """How many cycles may come to nothing before the next does: a head tries one flavor after the other."""
        if self._patience is None:
            flavors: dict[str, set[str]] = {}
            for row in self.engine.quota():
                if row.kind == "ClusterQueue":
                    flavors.setdefault(row.name, set()).add(row.flavor)
            self._patience = 1 + max(map(len, flavors.values()), default=0)
        return self._patience


def _key(namespace: str, name: str) -> tuple[str, str]:
    return _arguments.text("namespace", namespace), _arguments.text("name", name)
