"""The calls that an engine has received. The engine is deterministic, so replaying them rebuilds it.

The extension records each call under the lock that protects the call; this module writes and reads them as plain data.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeAlias, TypeGuard

from kueuecore import _core
from kueuecore._arguments import shown
from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore.errors import ManifestError, UnknownObjectError
from kueuecore.releases import releases
from kueuecore.version import version

__all__ = [
    "CallRow",
    "EngineJournal",
    "check_digest",
    "check_mapping",
    "digest_of",
    "holds_journal",
    "is_journal",
    "is_release",
    "replay",
]

CallRow: TypeAlias = tuple[str, tuple[object, ...], int]
"""A call as the extension records it: its name, its arguments except the last, and the last, which is the time."""

_FORMAT = "kueuecore.journal/1"
# The name of the format when `save` wrote journals.
_OLD_FORMAT = "kueuecore.engine/2"
_NOT_SAVED = "this is not a valid save"
_NO_JOURNAL = "this is not a valid journal"


@dataclass(frozen=True, slots=True)
class EngineJournal:
    """The calls that an engine received, and its settings.

    Args:
        configuration: Its Configuration.
        release: The name of its release of Kueue.
        models_readiness: Whether pods become ready.
        batches_retries: Whether retries of parked workloads wait for others.
        now: The time of its last call; not checked when read from a file.
        calls: The calls in their order.
        experiments: Its experiments; journals of engines without any do not name them.
    """

    configuration: JsonValue
    release: str
    models_readiness: bool
    batches_retries: bool
    now: JsonValue
    calls: Sequence[CallRow]
    experiments: JsonObject = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        """Return it as plain data with a digest."""
        saved: JsonObject = {
            "format": _FORMAT,
            "version": version(),
            "configuration": self.configuration,
            "kueue": self.release,
            "modelsReadiness": self.models_readiness,
            "batchesRetries": self.batches_retries,
            **({"experiments": self.experiments} if self.experiments else {}),
            "now": self.now,
            "calls": [[name, now, *map(_to_json, arguments)] for name, arguments, now in self.calls],
        }
        return {**saved, "digest": digest_of(saved)}

    @classmethod
    def read(cls, saved: JsonObject) -> Self:
        """Read what `to_json` returned, without making any call.

        Raises:
            ValueError: It has another format, comes from another version, or has been changed.
        """
        check_mapping(saved, _NO_JOURNAL, "journal()")
        if not is_journal(saved):
            found = shown(object_at(saved).get("format"))
            raise ValueError(f"this was saved as {found}, and only {_FORMAT!r} can be replayed")
        if text_at(saved, "version") != version():
            other = text_at(saved, "version")
            by = f"kueuecore {other}" if other else "no version of kueuecore"
            raise ValueError(
                f"this was saved by {by}, but this is {version()}: replay it with the version that saved it"
            )
        check_digest(saved, what=_NO_JOURNAL)
        models_readiness, batches_retries = _flag_of(saved, "modelsReadiness"), _flag_of(saved, "batchesRetries")
        if not is_release(release := saved.get("kueue")):
            raise ValueError(f"{_NO_JOURNAL}: kueue must be the name of a release")
        calls = saved.get("calls")
        if not isinstance(calls, list):
            raise ValueError(f"{_NO_JOURNAL}: calls must be a list")
        rows = [_call(call, f"{_NO_JOURNAL}: calls[{index}]") for index, call in enumerate(calls)]
        flags = models_readiness, batches_retries
        experiments = object_at(saved, "experiments")
        return cls(saved.get("configuration"), release, *flags, saved.get("now"), rows, experiments)


def _flag_of(saved: JsonObject, name: str) -> bool:
    if not isinstance(flag := saved.get(name), bool):
        raise ValueError(f"{_NO_JOURNAL}: {name} must be true or false")
    return flag


def replay(
    core: _core.Engine, saved: EngineJournal, before: Callable[[str, tuple[object, ...], int], None] | None = None
) -> None:
    """Repeat an engine's calls on a new one.

    Args:
        core: The new one.
        saved: The calls.
        before: Called before each with its name, its arguments and its time.

    Raises:
        ValueError: The new engine refuses a call that the other accepted, or ends at another time.
    """
    for index, (name, arguments, now) in enumerate(saved.calls):
        if before is not None:
            before(name, arguments, now)
        try:
            getattr(core, name)(*arguments, now)
        except (ManifestError, UnknownObjectError, ValueError) as error:
            raise ValueError(f"{_NO_JOURNAL}: calls[{index}], {name}, is refused: {error}") from None
    if saved.now != core.now():
        raise ValueError(f"{_NO_JOURNAL}: now is not the time of the last call")


def is_journal(saved: object) -> bool:
    """Return whether it claims to be the journal of an engine."""
    return isinstance(saved, Mapping) and text_at(dict(saved), "format") in (_FORMAT, _OLD_FORMAT)


def is_release(name: object) -> TypeGuard[str]:
    """Return whether it is the whole name of a release of Kueue."""
    return isinstance(name, str) and any(name == release.name for release in releases())


def holds_journal(data: str | bytes) -> bool:
    """Return whether a text claims to be the journal of an engine, as JSON."""
    text = data.encode() if isinstance(data, str) else data
    if not text.lstrip().startswith(b"{") or json.dumps(_FORMAT).encode() not in text:
        return False
    try:
        return is_journal(json.loads(text))
    except (ValueError, RecursionError):
        return False


def digest_of(saved: JsonObject, what: str = _NOT_SAVED) -> str:
    """Return the digest of saved data.

    Raises:
        ValueError: It is not plain data.
    """
    plain = {name: value for name, value in saved.items() if name != "digest"}
    try:
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what}: it is not plain data: {error}") from None


def check_mapping(saved: object, what: str = _NOT_SAVED, source: str = "save()") -> None:
    """Refuse what is not a mapping, such as JSON text that was not decoded.

    Raises:
        ValueError: It is not a mapping.
    """
    if not isinstance(saved, Mapping):
        raise ValueError(f"{what}: it must be the dict that {source} returned, not {type(saved).__name__}")


def check_digest(saved: JsonObject, remedy: str = "", what: str = _NOT_SAVED) -> None:
    """Refuse damaged data.

    Raises:
        ValueError: The digest does not match.
    """
    if text_at(saved, "digest") != digest_of(saved, what):
        raise ValueError("; ".join(filter(None, (f"{what}: its digest does not match", remedy))))


def _to_json(value: object) -> JsonValue:
    """Return an argument as plain data: bytes as text if they are UTF-8, else in base64; columns as a list."""
    if isinstance(value, bytes):
        try:
            return {"text": value.decode()}
        except UnicodeDecodeError:
            return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, tuple | list):
        return [_to_json(row) for row in value]
    assert isinstance(value, bool | int | str), "what the extension takes"
    return value


def _call(call: JsonValue, where: str) -> CallRow:
    if not isinstance(call, list) or len(call) < 2:
        raise ValueError(f"{where} must be a list of a name, a time and arguments")
    name, now, *arguments = call
    readers = _CALLS.get(name) if isinstance(name, str) else None
    if readers is None:
        raise ValueError(f"{where}: there is no call {shown(name)}")
    if len(arguments) != len(readers):
        raise ValueError(f"{where}: {name} has {len(readers)} arguments, not {len(arguments)}")
    read = tuple(
        reader(entry, f"{where}[{i}]") for i, (reader, entry) in enumerate(zip(readers, arguments, strict=True), 2)
    )
    return str(name), read, _whole(now, f"{where}[1]", first=1 - 2**63)


def _text(value: JsonValue, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where} must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where} has an unpaired surrogate") from None
    return value


def _flag(value: JsonValue, where: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{where} must be true or false")
    return value


def _whole(value: JsonValue, where: str, *, first: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not first <= value < 2**63:
        raise ValueError(f"{where} must be a whole number from {first} to {2**63 - 1}")
    return value


def _data(value: JsonValue, where: str) -> bytes:
    match value:
        case {"text": text, **others} if not others:
            return _text(text, where).encode()
        case {"bytes": str(text), **others} if not others:
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                pass
    raise ValueError(f'{where} must be {{"text": ...}} or {{"bytes": ...}} in base64')


def _column(size: int) -> Callable[[JsonValue, str], bytes]:
    def read(value: JsonValue, where: str) -> bytes:
        data = _data(value, where)
        if len(data) % size:
            raise ValueError(f"{where} must be a column with {size} bytes per value")
        return data

    return read


def _texts(value: JsonValue, where: str) -> list[str]:
    if not isinstance(value, list):
        raise ValueError(f"{where} must be a list of strings")
    return [_text(row, f"{where}[{index}]") for index, row in enumerate(value)]


def _columns(value: JsonValue, where: str) -> tuple[object, ...]:
    columns = value if isinstance(value, list) else []
    if len(columns) != len(_COLUMNS):
        raise ValueError(f"{where} must have the {len(_COLUMNS)} columns of workloads")
    return tuple(read(entry, f"{where}[{i}]") for i, (read, entry) in enumerate(zip(_COLUMNS, columns, strict=True)))


_Reader: TypeAlias = Callable[[JsonValue, str], object]
# As kueuecore.submissions.ColumnBytes.
_COLUMNS: tuple[_Reader, ...] = (_texts, _column(4), _column(4), _column(8), _column(4), _texts, _column(8))
# The calls that a journal records, with the readers of their arguments except the time, as rust/py takes them.
_CALLS: Mapping[str, tuple[_Reader, ...]] = {
    "apply": (_data, _flag),
    "submit": (_text, _text, _whole, _columns),
    "delete": (_text, _text, _text),
    "cycle": (),
    "reconcile": (),
    "finish": (_text, _text, _text, _text),
    "evict": (_text, _text, _text, _text, _flag),
    "release": (_text, _text),
    "forget": (_text, _text, _flag),
    "note_readiness": (_text, _text, _flag),
    "note_scheduling": (_text, _text, _flag),
    "confirm": (_text, _text),
    "what_if": (_data, _flag),
    "_look_at_nodes_again": (_text, _text),
    "_take_written": (),
    "_retry_at_once": (),
    "_take_changed_queues": (),
    "_take_failed_pods": (),
}
