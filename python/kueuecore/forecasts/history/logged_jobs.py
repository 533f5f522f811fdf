"""Workloads in a log of `kueuecore serve`, or in the journal of its dry run, as jobs of the past."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kueuecore._json import text_at
from kueuecore._text import counted
from kueuecore.errors import ManifestError
from kueuecore.forecasts.history.taken import Taken
from kueuecore.forecasts.past_jobs import PastJob, known_at
from kueuecore.histories.conditions import time_in
from kueuecore.histories.events import found_in_event
from kueuecore.histories.facts import Facts
from kueuecore.histories.log_lines import LogLine, events_of_log, read_log
from kueuecore.histories.timeline import What
from kueuecore.times import SECOND_NS

__all__ = ["DECISIONS", "taken_of_folder", "taken_of_log"]

DECISIONS = "decisions-*.log"
"""The files of a dry run's journal."""
# Events about a job that name its Workload.
_NAMING = ("CreatedWorkload", "FinishedWorkload")
_KEY = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}/[a-z0-9][a-z0-9.-]{0,252}")


def taken_of_log(data: bytes, file: str, *, now: int) -> Taken:
    """Return the Workloads of a log.

    Args:
        data: The log.
        file: Its name, for errors.
        now: The present, in nanoseconds since 1970; later lines do not count.

    Raises:
        ManifestError: It is no log of `kueuecore serve`.
    """
    return _taken(read_log(data, file=file), file, now)


def taken_of_folder(folder: Path, *, now: int) -> Taken:
    """Return the Workloads of a dry run's journal.

    Args:
        folder: The folder of its `--journal`.
        now: The present, in nanoseconds since 1970; later lines do not count.

    Raises:
        ManifestError: A file cannot be read.
    """
    lines: list[LogLine] = []
    for file in sorted(folder.glob(DECISIONS)):
        try:
            lines += read_log(file.read_bytes(), file=str(file))
        except OSError as error:
            raise ManifestError.of(f"cannot be read: {error.strerror or error}", file=str(file)) from None
    return _taken(lines, str(folder), now)


@dataclass(slots=True)
class _Story:
    """What the Events about a Workload say, so far."""

    key: str
    uid: str
    last: int = 0
    job: str = ""
    cluster_queue: str = ""
    created: int | None = None
    reserved: int | None = None
    admitted: int | None = None
    ended: int | None = None

    def take(self, what: What, facts: Facts, at: int) -> None:
        """Take an Event in."""
        self.last = max(self.last, at)
        self.cluster_queue = facts.queue or self.cluster_queue
        match what:
            case What.CREATED:
                self.created = at
            case What.QUOTA_RESERVED:
                self.reserved, self.admitted = at, None
                if self.created is None and facts.waited:
                    self.created = at - int(facts.waited) * SECOND_NS
            case What.ADMITTED:
                self.admitted = at
            case What.EVICTED | What.PREEMPTED:
                self.reserved = self.admitted = None
            case What.FINISHED if self.ended is None:
                self.ended = at
            case _:
                pass

    def told(self) -> PastJob:
        """Return the job; a log knows neither its size nor its LocalQueue."""
        namespace, _, name = self.key.partition("/")
        return PastJob(
            namespace=namespace,
            local_queue="",
            cluster_queue=self.cluster_queue,
            name=self.job or name,
            priority=0,
            requests={},
            n_pods=0,
            limit_seconds=None,
            labels={},
            created=self.created,
            # A dry run reports reservations only.
            started=self.admitted if self.admitted is not None else self.reserved,
            ended=self.ended,
            template=None,
            seen=None if self.ended is not None else self.last,
            uid=self.uid,
        )


def _taken(lines: Iterable[LogLine], file: str, now: int) -> Taken:
    stories: dict[str, _Story] = {}
    current: dict[str, str] = {}
    n_events = 0
    for event in events_of_log(lines):
        n_events += 1
        about: Mapping[str, str] = {
            name: text_at(event, "involvedObject", name) for name in ("kind", "namespace", "name", "uid")
        }
        at, reason, note = time_in(event, "eventTime"), text_at(event, "reason"), text_at(event, "message")
        is_of_job = about["kind"] != "Workload"
        if at is None or (is_of_job and reason not in _NAMING):
            continue
        named = _KEY.search(note) if is_of_job else None
        key = named[0] if named else f"{about['namespace']}/{about['name']}"
        if is_of_job and named is None:
            continue
        uid = "" if is_of_job else about["uid"]
        story = _story(stories, current, key, uid, is_new=reason == "CreatedWorkload")
        if is_of_job:
            story.job = about["name"]
        step = found_in_event(at, reason, note, is_of_job=is_of_job)
        story.take(step.what, step.facts, at)
    told = [story.told() for story in stories.values()]
    jobs = [job for one in told if (job := known_at(one, now)) is not None]
    if not jobs and not told:
        message = "no Event about a Workload is in it" if n_events else "no Event is in it"
        remedy = "give a log of the leader, or the folder of a dry run's --journal"
        raise ManifestError.of(message, remedy=remedy, file=file)
    n_without = sum(job.ended is None for job in jobs)
    notes = [f"{file}: {counted(n_without, 'job')} of {len(jobs)} have no end in it"] if n_without else []
    return Taken(
        file=file,
        jobs=tuple(jobs),
        left_out={"created later than now": len(told) - len(jobs)},
        notes=(f"{file}: a log knows neither the sizes of jobs nor their LocalQueues", *notes),
    )


def _story(stories: dict[str, _Story], current: dict[str, str], key: str, uid: str, *, is_new: bool) -> _Story:
    """Return the story of a Workload: by UID, or the latest of its name where the Event is about its job."""
    identity = current.get(key, "")
    if is_new or (uid and stories[identity].uid not in ("", uid) if identity else True):
        identity = uid or f"{key} {len(stories)}"
    if uid and uid in stories:
        identity = uid
    current[key] = identity
    story = stories.setdefault(identity, _Story(key, uid))
    story.uid = story.uid or uid
    return story
