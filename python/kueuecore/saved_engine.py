"""How an engine survives a restart: its state as bytes, and the journal of its calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Self

from kueuecore._core import Engine as CoreEngine
from kueuecore._json import JsonObject
from kueuecore.configuration import Configuration
from kueuecore.journal import EngineJournal, is_journal, replay

__all__ = ["SavedEngine", "configuration_of", "holds_engine"]

_HEAD = b"kueuecore.engine/"
_ANOTHER_CONFIGURATION = "the saved engine had another Configuration: pass that one"


class SavedEngine:
    """`save` and `load`, `journal` and `replay` of an `Engine`."""

    _configuration: Configuration
    _models_readiness: bool
    _core: CoreEngine

    def save(self) -> bytes:
        """Return a snapshot of its whole state as bytes, for `load`.

        Unlike `Controller.save` it loses nothing: the flavor that a workload will try next, parked workloads,
        preemptors that wait for their victims, a cycle that waits for pods. Its size depends on the current state, not
        on the history; engines in the same state give the same bytes. Calls from other threads wait, but the GIL is
        released.

        Example:
            >>> from kueuecore import Engine
            >>> engine = Engine()
            >>> _ = engine.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})
            >>> saved = engine.save()
            >>> Engine.load(saved).save() == saved
            True
        """
        note = {"configuration": self._configuration.to_dict(), "modelsReadiness": self._models_readiness}
        return self._core.save(json.dumps(note, sort_keys=True).encode())

    @classmethod
    def load(cls, saved: bytes, *, configuration: Configuration | None = None) -> Self:
        """Restore a saved engine, which then decides exactly as the original would. It keeps no journal.

        Args:
            saved: The result of `save` in the same version of kueuecore: another may decide differently.
            configuration: The Configuration of the saved engine.

        Raises:
            ValueError: It has another format, comes from another version, is damaged or is not a save; or the
                Configuration differs.
        """
        if isinstance(saved, Mapping) and is_journal(saved):
            raise ValueError("this is the journal of an engine, not its state: use Engine.replay()")
        if not isinstance(saved, bytes | bytearray | memoryview):
            raise ValueError(
                f"this is not a saved engine: it must be the bytes that save() returned, not {type(saved).__name__}"
            )
        core, note = CoreEngine.load(bytes(saved))
        match _read(note):
            case {"configuration": found, "modelsReadiness": bool(models_readiness)}:
                configuration = configuration or Configuration()
                if found != configuration.to_dict():
                    raise ValueError(_ANOTHER_CONFIGURATION)
                return cls._of(core, configuration, models_readiness)
        raise ValueError("this is not a valid save: its note is not an Engine's")

    def journal(self) -> JsonObject:
        """Return every call that has changed the engine, as plain data for JSON, for `replay`.

        `what_if` is recorded too: it changes no decision, but names that it saw first keep their numbers. The journal
        grows with every call; use it for bug reports and tests, and `save` to survive a restart.

        Raises:
            ValueError: The engine was made without `keeps_journal`, or by `load`.

        Example:
            >>> from kueuecore import Engine
            >>> engine = Engine(keeps_journal=True)
            >>> _ = engine.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})
            >>> Engine.replay(engine.journal()).save() == engine.save()
            True
        """
        now, calls = self._core.journal()
        if calls is None:
            raise ValueError("this engine keeps no journal: make it with keeps_journal=True")
        return EngineJournal(self._configuration.to_dict(), self._models_readiness, now, calls).to_json()

    @classmethod
    def replay(cls, journal: JsonObject, *, configuration: Configuration | None = None) -> Self:
        """Make a new engine by repeating the calls in a journal. It continues that journal.

        Args:
            journal: The result of `journal` in the same version of kueuecore: another may decide differently.
            configuration: The Configuration of the engine whose journal it is.

        Raises:
            ValueError: It has another format or version, or has been changed, or the Configuration differs.
        """
        read = EngineJournal.read(journal)
        configuration = configuration or Configuration()
        if read.configuration != configuration.to_dict():
            raise ValueError(_ANOTHER_CONFIGURATION)
        core = CoreEngine(configuration._core, read.models_readiness, True)
        replay(core, read)
        return cls._of(core, configuration, read.models_readiness)

    @classmethod
    def _of(cls, core: CoreEngine, configuration: Configuration, models_readiness: bool) -> Self:
        engine = cls.__new__(cls)
        engine._core = core
        engine._configuration = configuration
        engine._models_readiness = models_readiness
        return engine


def holds_engine(data: str | bytes) -> bool:
    """Return whether bytes claim to be a saved engine."""
    return isinstance(data, bytes) and data.startswith(_HEAD)


def configuration_of(saved: bytes | JsonObject) -> Configuration:
    """Return the Configuration of a saved engine or of a journal.

    Raises:
        ValueError: The data is neither.

    Example:
        >>> from kueuecore import Engine
        >>> configuration_of(Engine().save()).to_dict() == Configuration().to_dict()
        True
    """
    if isinstance(saved, Mapping):
        found: object = EngineJournal.read(saved).configuration
    else:
        note = _read(CoreEngine.load(saved)[1])
        found = note.get("configuration") if isinstance(note, Mapping) else None
    return Configuration.parse(json.dumps(found))


def _read(note: bytes) -> object:
    try:
        return json.loads(note)
    except (ValueError, RecursionError):
        return None
