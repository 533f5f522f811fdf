"""How an engine survives a restart: its state as bytes, and the journal of its calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Self

from kueuecore._core import Engine as CoreEngine
from kueuecore._json import JsonObject
from kueuecore.configuration import Configuration
from kueuecore.errors import ConfigurationError
from kueuecore.experiments import Experiments
from kueuecore.journal import EngineJournal, is_journal, is_release, replay
from kueuecore.releases import Release

__all__ = ["SavedEngine", "configuration_of", "holds_engine"]

_HEAD = b"kueuecore.engine/"
_ANOTHER_CONFIGURATION = "the saved engine had another Configuration: pass that one"
_NO_NOTE = "this is not a valid save: its note is not an Engine's"


class SavedEngine:
    """`save` and `load`, `journal` and `replay` of an `Engine`."""

    _configuration: Configuration
    _models_readiness: bool
    _batches_retries: bool
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
        note = {
            "configuration": self._configuration.to_dict(),
            "kueue": self._configuration.release.name,
            "modelsReadiness": self._models_readiness,
            "batchesRetries": self._batches_retries,
            "experiments": self._configuration.experiments.to_dict(),
        }
        return self._core.save(json.dumps(note, sort_keys=True).encode())

    @classmethod
    def load(cls, saved: bytes, *, configuration: Configuration | None = None) -> Self:
        """Restore a saved engine, which then decides exactly as the original would. It keeps no journal.

        Args:
            saved: The result of `save` in the same version of kueuecore: another may decide differently.
            configuration: The Configuration of the saved engine; by default what the saved engine's release of Kueue
                runs with when it has no file.

        Raises:
            ValueError: It has another format, comes from another version, is damaged or is not a save; or the
                Configuration differs, or is for another release.
        """
        if isinstance(saved, Mapping) and is_journal(saved):
            raise ValueError("this is the journal of an engine, not its state: use Engine.replay()")
        if not isinstance(saved, bytes | bytearray | memoryview):
            raise ValueError(
                f"this is not a saved engine: it must be the bytes that save() returned, not {type(saved).__name__}"
            )
        core, note = CoreEngine.load(bytes(saved))
        match _read(note):
            case {
                "configuration": found,
                "kueue": release,
                "modelsReadiness": bool(models_readiness),
                "batchesRetries": bool(batches_retries),
                "experiments": dict(experiments),
            } if is_release(release):
                own = _same(configuration, found, release, experiments)
                return cls._of(core, own, models_readiness, batches_retries)
        raise ValueError(_NO_NOTE)

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
        release = self._configuration.release.name
        flags = self._models_readiness, self._batches_retries
        experiments = self._configuration.experiments.to_dict()
        return EngineJournal(self._configuration.to_dict(), release, *flags, now, calls, experiments).to_json()

    @classmethod
    def replay(
        cls,
        journal: JsonObject,
        *,
        configuration: Configuration | None = None,
        before: Callable[[Self, str, tuple[object, ...], int], None] | None = None,
    ) -> Self:
        """Make a new engine by repeating the calls in a journal. It continues that journal.

        Args:
            journal: The result of `journal` in the same version of kueuecore: another may decide differently.
            configuration: The Configuration of the engine whose journal it is; by default as in `load`.
            before: Called before each call with the engine so far, and name, arguments and time of the call.

        Raises:
            ValueError: It has another format or version, or has been changed, or the Configuration differs, or is for
                another release of Kueue.
        """
        read = EngineJournal.read(journal)
        configuration = _same(configuration, read.configuration, read.release, read.experiments)
        core = CoreEngine(configuration._core, read.models_readiness, read.batches_retries, True)
        engine = cls._of(core, configuration, read.models_readiness, read.batches_retries)
        replay(core, read, None if before is None else partial(before, engine))
        return engine

    @classmethod
    def _of(cls, core: CoreEngine, configuration: Configuration, models_readiness: bool, batches_retries: bool) -> Self:
        engine = cls.__new__(cls)
        engine._core = core
        engine._configuration = configuration
        engine._models_readiness = models_readiness
        engine._batches_retries = batches_retries
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
        journal = EngineJournal.read(saved)
        configuration = Configuration.parse(json.dumps(journal.configuration), release=journal.release)
        return configuration.with_experiments(_experiments_of(journal.experiments))
    match _read(CoreEngine.load(saved)[1]):
        case {"configuration": found, "kueue": release, "experiments": dict(experiments)} if is_release(release):
            configuration = Configuration.parse(json.dumps(found), release=release)
            return configuration.with_experiments(_experiments_of(experiments))
    raise ValueError(_NO_NOTE)


def _experiments_of(found: Mapping[str, object]) -> Experiments:
    """Return the experiments of a saved engine.

    Raises:
        ValueError: They are none that this version knows.
    """
    try:
        return Experiments.of(found)
    except ConfigurationError:
        raise ValueError(_NO_NOTE) from None


def _same(given: Configuration | None, found: object, release: str, experiments: Mapping[str, object]) -> Configuration:
    """Return the Configuration of a saved engine: the given one, or by default that of its release without a file.

    Args:
        given: The one that the caller knows.
        found: The settings of the saved engine.
        release: Its release of Kueue.
        experiments: Its experiments, which the default has, too.

    Raises:
        ValueError: It is another.
    """
    own_experiments = _experiments_of(experiments)
    if given is not None and given.experiments != own_experiments:
        raise ValueError(
            f"the saved engine has {own_experiments.notice or 'no experiments'}, and this Configuration has "
            f"{given.experiments.notice or 'none'}: pass one with the same"
        )
    if given is not None and given.release.name != release:
        own = Release.named(release).title
        raise ValueError(f"the saved engine decides as {own}, and this Configuration as {given.release.title}")
    if given is None:
        given = Configuration(release=release).with_experiments(own_experiments)
    configuration = given
    if found != configuration.to_dict():
        raise ValueError(_ANOTHER_CONFIGURATION)
    return configuration


def _read(note: bytes) -> object:
    try:
        return json.loads(note)
    except (ValueError, RecursionError):
        return None
