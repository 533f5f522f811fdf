"""Which commands are open: numbered, one at a time for each object, and what each is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kueuecore.checks import WorkloadKey
from kueuecore.multikueue.commands import Command, Connect, ObjectCommand, ObjectKey

__all__ = ["OpenCommands"]


class OpenCommands:
    """The commands of which nobody has said yet how they went. Connecting is none of them."""

    def __init__(self) -> None:
        self._open: dict[ObjectKey, tuple[ObjectCommand, WorkloadKey | None]] = {}
        self._n_open: dict[WorkloadKey, int] = {}
        self._n_commands = 0

    def open(self, commands: Iterable[Command], about: WorkloadKey | None) -> tuple[list[Command], bool]:
        """Number commands.

        Args:
            commands: The commands.
            about: The Workload that they are about; None if about none.

        Returns:
            The commands, numbered, and whether some were left out because another one for their object is open.
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

    def is_open(self, command: ObjectCommand) -> bool:
        """Is a command open, and not one of the same object that came after it?"""
        found = self._open.get(_key(command))
        return found is not None and found[0].number == command.number

    def is_busy(self, workload: WorkloadKey) -> bool:
        """Is a command about a Workload open?"""
        return workload in self._n_open

    def close(self, command: ObjectCommand) -> WorkloadKey | None:
        """A command is through; returns the Workload that it was about."""
        _, about = self._open.pop(_key(command))
        if about is not None:
            self._n_open[about] -= 1
            if not self._n_open[about]:
                del self._n_open[about]
        return about

    @property
    def commands(self) -> tuple[ObjectCommand, ...]:
        """All that are open, the oldest first."""
        return tuple(command for command, _ in self._open.values())


def _key(command: ObjectCommand) -> ObjectKey:
    return command.cluster, command.kind, command.namespace, command.name
