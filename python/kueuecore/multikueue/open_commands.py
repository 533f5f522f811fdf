"""Tracks open commands: numbers them, allows one per object, and knows which Workload each is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kueuecore.checks import WorkloadKey
from kueuecore.multikueue.commands import Command, Connect, ObjectKey
from kueuecore.writes import Write

__all__ = ["OpenCommands"]


class OpenCommands:
    """The commands whose results have not been reported yet. Connecting does not count."""

    def __init__(self) -> None:
        self._open: dict[ObjectKey, tuple[Write, WorkloadKey | None]] = {}
        self._n_open: dict[WorkloadKey, int] = {}
        self._n_commands = 0

    def open(self, commands: Iterable[Command], about: WorkloadKey | None) -> tuple[list[Command], bool]:
        """Number commands.

        Args:
            commands: The commands.
            about: The Workload that they are about; None if they are about none.

        Returns:
            The numbered commands, and whether some were left out because their object already has an open command.
        """
        opened: list[Command] = []
        left_out = False
        for command in commands:
            if not isinstance(command, Connect) and _key(command) in self._open:
                left_out = True
                continue
            self._n_commands += 1
            command = replace(command, number=self._n_commands)
            opened.append(command)
            if not isinstance(command, Connect):
                self._open[_key(command)] = command, about
                if about is not None:
                    self._n_open[about] = self._n_open.get(about, 0) + 1
        return opened, left_out

    def is_open(self, command: Write) -> bool:
        """Return whether a command is open and has not been superseded by another for the same object."""
        found = self._open.get(_key(command))
        return found is not None and found[0].number == command.number

    def is_busy(self, workload: WorkloadKey) -> bool:
        """Return whether a command about a Workload is open."""
        return workload in self._n_open

    def close(self, command: Write) -> WorkloadKey | None:
        """Close a command, and return the Workload that it was about."""
        _, about = self._open.pop(_key(command))
        if about is not None:
            self._n_open[about] -= 1
            if not self._n_open[about]:
                del self._n_open[about]
        return about

    @property
    def commands(self) -> tuple[Write, ...]:
        """Return all open commands, oldest first."""
        return tuple(command for command, _ in self._open.values())


def _key(command: Write) -> ObjectKey:
    return command.cluster, command.kind, command.namespace, command.name
