"""What an engine has across a restart: its state as bytes, and the journal of its calls."""

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
_ANOTHER_CONFIGURATION = "the engine that was saved had another Configuration: give that one"


class SavedEngine:
    """`save` and `load`, `journal` and `replay` of an `Engine`."""

    _configuration: Configuration
    _models_readiness: bool
    _core: CoreEngine

    def save(self) -> bytes:
        """All that it knows, as bytes: a snapshot, which `load` reads.

        Unlike what `Controller.save` keeps, nothing is lost: which flavor a workload would try next, which are parked,
        who waits for victims, a cycle that waits for pods. It is as large as what the engine holds now, whatever has
        happened before; engines in the same state give the same bytes. Other threads wait meanwhile, and the
        interpreter goes on.

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
        """The engine that was saved: from then on it decides as the other one does. It keeps no journal.

        Args:
            saved: What `save` gave, of the same version of kueuecore: another one may decide otherwise.
            configuration: The Configuration of the engine that was saved.

        Raises:
            ValueError: It was saved in another format or by another version, is damaged, is not what was saved, or the
                Configuration is another.
        """
        if isinstance(saved, Mapping) and is_journal(saved):
            raise ValueError("this is the journal of an engine, not its state: Engine.replay() does its calls again")
        if not isinstance(saved, bytes | bytearray | memoryview):
            raise ValueError(
                f"this is not a saved engine: it must be the bytes that save() gave, not {type(saved).__name__}"
            )
        core, note = CoreEngine.load(bytes(saved))
        match _read(note):
            case {"configuration": found, "modelsReadiness": bool(models_readiness)}:
                configuration = configuration or Configuration()
                if found != configuration.to_dict():
                    raise ValueError(_ANOTHER_CONFIGURATION)
                return cls._of(core, configuration, models_readiness)
        raise ValueError("this is not a valid save: its note is none of an Engine")

    def journal(self) -> JsonObject:
        """The calls that have changed it since it was made, as plain data for JSON: `replay` does them once more.

        `what_if` is among them: it changes no decision, but the names that it met first keep their numbers. The journal
        grows with every call: for reports of bugs and for tests. What brings an engine across a restart is `save`.

        Raises:
            ValueError: It was made without `keeps_journal`, or loaded.

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
        """A new engine that has done the calls of a journal, with the same result. It goes on with the journal.

        Args:
            journal: What `journal` gave, of the same version of kueuecore: another one may decide otherwise.
            configuration: The Configuration of the engine whose journal it is.

        Raises:
            ValueError: It is of another format or version, is not what `journal` gave, or the Configuration is another.
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
    """Do bytes say that they are a saved engine?"""
    return isinstance(data, bytes) and data.startswith(_HEAD)


def configuration_of(saved: bytes | JsonObject) -> Configuration:
    """The Configuration of an engine that was saved, or whose journal it is.

    Raises:
        ValueError: It is neither.

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
