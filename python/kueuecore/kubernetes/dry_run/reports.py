"""Reports what a dry run has judged: log, metrics, journal, and a summary each day."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime

from kueuecore._json import JsonObject, text_at
from kueuecore._text import logged
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.errors import ObjectRef
from kueuecore.histories.log_lines import EVENT
from kueuecore.kubernetes.dry_run.daily_summary import DailySummary
from kueuecore.kubernetes.dry_run.decisions_seen import Kind
from kueuecore.kubernetes.dry_run.difference_memory import Difference, DifferenceMemory
from kueuecore.kubernetes.dry_run.journal_folder import JournalFolder
from kueuecore.kubernetes.dry_run.judge import Judged
from kueuecore.times import SECOND_NS

__all__ = ["DIFFERS", "Reports"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
DIFFERS = "would decide otherwise"
"""The message of a line about a difference."""
_JUDGED = "judged"
_MEMORY = "memory.json"
_SAVE_NS = 10 * SECOND_NS
_DAY_NS = 86_400 * SECOND_NS
_MOST_SUMMARIES = 400
_MOST_TEXT = 300


class Reports:
    """Takes in what was judged, one call after the other.

    Args:
        journal: The folder; None: only the log, and nothing survives a restart.
        kueue: The release of Kueue.
        now: The time, in nanoseconds since 1970.
        summary_at_ns: When the day's summary is written, in nanoseconds after midnight UTC.
        count: Called with kind and verdict of each decision, for metrics.
    """

    def __init__(
        self,
        journal: JournalFolder | None,
        *,
        kueue: str,
        now: int,
        summary_at_ns: int = 0,
        count: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self.journal, self.kueue = journal, kueue
        self._count, self._summary_at_ns = count, summary_at_ns
        self.memory = self._remembered(now)
        # The clock may have gone back since: no summary would be due for as long.
        self.memory.since = min(self.memory.since, now)
        self._is_dirty = False
        self._saved_at = now
        self._summary_due = self._next_summary(max(self.memory.since, now - 2 * _DAY_NS))

    def take(self, judged: Judged) -> None:
        """Report a decision."""
        self._count(judged.kind.value, judged.verdict.value)
        found, is_new = self.memory.take_in(judged)
        self._is_dirty = True
        self._write(_event_line(judged), judged.at)
        if found is None:
            return
        if not is_new:
            _LOGGER.debug("differs again", extra=_fields(found))
            return
        if self.journal is not None and judged.objects:
            found.state = self.journal.save_state(f"{found.kind}-{found.workload}", judged.objects, now=judged.at)
        _LOGGER.warning(DIFFERS, extra=_fields(found))
        self._write({**_head(judged.at, "warning", DIFFERS), **_fields(found)}, judged.at)

    def note(self, message: str, *, now: int) -> None:
        """Report something about Kueue or the watches."""
        _LOGGER.info(message)
        self.memory.note(f"{_time_text(now)}: {message}")
        self._is_dirty = True
        self._write(_head(now, "info", message), now)

    def tick(self, now: int) -> None:
        """Write what is due: the summary, and what is remembered."""
        if now >= self._summary_due:
            self.summarise(now)
            self._summary_due = self._next_summary(now)
        if self._is_dirty and now >= self._saved_at + _SAVE_NS:
            self.save(now)

    def summarise(self, now: int) -> DailySummary:
        """Write the summary, and begin the next."""
        summary = DailySummary(self.memory.since, now, self.kueue, self.memory)
        counts = {f"{kind} {verdict}": count for (kind, verdict), count in sorted(self.memory.counts.items())}
        _LOGGER.info("summary", extra={"said": summary.sentence, **counts})
        if self.journal is not None:
            name = f"summary-{_time_text(now).replace(':', '-')}"
            self.journal.write(f"{name}.json", summary.to_json(), now=now)
            self.journal.write(f"{name}.md", summary.to_markdown(), now=now)
            for pattern in ("summary-*.json", "summary-*.md"):
                self.journal.remove_oldest(pattern, most=_MOST_SUMMARIES)
        self.memory.begin(now)
        self.save(now)
        return summary

    def save(self, now: int) -> None:
        """Save what is remembered."""
        self._saved_at, self._is_dirty = now, False
        if self.journal is not None:
            self.journal.write(_MEMORY, self.memory.to_json(), now=now)

    def close(self, now: int) -> None:
        """Save, and close the journal."""
        self.save(now)
        if self.journal is not None:
            self.journal.close()

    def _write(self, line: JsonObject, now: int) -> None:
        if self.journal is not None:
            self.journal.append(line, now=now)

    def _remembered(self, now: int) -> DifferenceMemory:
        data = self.journal.read(_MEMORY) if self.journal is not None else None
        if data is None or self.journal is None:
            return DifferenceMemory(since=now)
        try:
            return DifferenceMemory.read(data)
        except (ValueError, TypeError) as error:
            extra = {"file": str(self.journal.path / _MEMORY), "error": logged(error), "kept": f"{_MEMORY}.unreadable"}
            _LOGGER.warning("the memory of a dry run is damaged, and begins anew", extra=extra)
            self.journal.write(f"{_MEMORY}.unreadable", data, now=now)
            return DifferenceMemory(since=now)

    def _next_summary(self, now: int) -> int:
        midnight = now // _DAY_NS * _DAY_NS
        due = midnight + self._summary_at_ns
        return due if due > now else due + _DAY_NS


def _fields(found: Difference) -> JsonObject:
    texts = {name: logged(getattr(found, name))[:_MOST_TEXT] for name in ("kind", "kueue", "here", "why")}
    return {"workload": found.workload, "uid": found.uid, **texts, "count": found.count, "state": found.state}


def _head(at: int, level: str, message: str) -> JsonObject:
    time = datetime.fromtimestamp(at // SECOND_NS, UTC)
    text = time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at // 1_000_000 % 1000:03}Z"
    return {"time": text, "level": level, "logger": "kueuecore.kubernetes", "message": message}


def _event_line(judged: Judged) -> JsonObject:
    """Return a decision as an Event of Kueue's, with the verdict."""
    holds = conditions_that_hold(judged.manifest)
    # What Kueue has not decided is no event of its.
    reason, note = "", judged.kueue
    if judged.kind is Kind.ADMISSION and "QuotaReserved" in holds:
        reason, note = "QuotaReserved", text_at(holds["QuotaReserved"], "message")
    elif judged.kind in (Kind.PREEMPTION, Kind.EVICTION) and "Evicted" in holds:
        reason, note = f"EvictedDueTo{text_at(holds['Evicted'], 'reason')}", text_at(holds["Evicted"], "message")
    elif judged.kind is Kind.MESSAGE:
        reason, note = "Pending", judged.kueue.removeprefix("waits: ")
    about = ObjectRef("Workload", judged.workload[1], judged.workload[0])
    said: JsonObject = {"object": str(about), "uid": judged.uid, "reason": reason, "note": note}
    verdict: JsonObject = {"kind": judged.kind.value, "verdict": judged.verdict.value, "why": judged.why}
    return {**_head(judged.at, "info", EVENT if reason else _JUDGED), **said, **verdict}


def _time_text(at: int) -> str:
    return datetime.fromtimestamp(at // SECOND_NS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
