"""Updates the metrics for commands once they are carried out (rules/06 §12)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kueuecore._json import JsonObject, text_at
from kueuecore.controller import Metrics
from kueuecore.multikueue.commands import Command
from kueuecore.multikueue.workload_group import Result
from kueuecore.writes import Verb, Write

__all__ = ["CommandCounts"]


class CommandCounts:
    """Counts copies and admissions once they exist.

    Args:
        metrics: The metrics to update; absent: nothing is counted.
    """

    def __init__(self, metrics: Metrics | None) -> None:
        self._metrics = metrics
        # Keyed by the number of the command.
        self._counts: dict[int, Callable[[], None]] = {}

    def note(self, workload: JsonObject | None, commands: Sequence[Command], result: Result) -> None:
        """Note the commands that a reconcile of a Workload returned."""
        if self._metrics is None:
            return
        queue = text_at(workload, "status", "admission", "clusterQueue")
        for command in commands:
            if isinstance(command, Write) and (command.verb, command.kind) == (Verb.CREATE, "Workload"):
                self._counts[command.number] = partial(self._metrics.count_dispatched, queue, command.cluster)
        last = commands[-1] if commands else None
        if result.admits and isinstance(last, Write) and (last.verb, last.kind) == (Verb.PATCH, "Workload"):
            self._counts[last.number] = partial(self._metrics.count_admitted_on_worker, queue, result.admits)

    def count(self, command: Write) -> None:
        """Count a command that was carried out."""
        if (count := self._counts.get(command.number)) is not None:
            count()

    def drop(self, command: Write) -> None:
        """Forget a command that is done, whether it succeeded or not."""
        self._counts.pop(command.number, None)
