"""What an engine was told, call by call: told once more, it makes the same engine, as nothing depends on chance."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

from kueuecore import _core
from kueuecore._json import JsonObject, JsonValue, list_at

__all__ = ["Journal", "digest_of"]

# The calls that change an engine.
_CALLS = (
    *("apply", "submit", "delete", "cycle", "reconcile", "finish", "evict", "release", "forget", "note_readiness"),
    *("confirm", "_take_written", "_flush", "_update_in_cache"),
)


class Journal:
    """The engine of the extension, which writes down every call that has changed it. A refused call has not.

    Args:
        core: The engine, as it was made.
        calls: What it was told since.
    """

    def __init__(self, core: _core.Engine, calls: Iterable[JsonValue] = ()) -> None:
        self._core = core
        self._calls = list(calls)
        # Calls stand in the order in which they were done.
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:  # what the extension gives
        call = getattr(self._core, name)
        return self._written_down(name, call) if name in _CALLS else call

    def _written_down(self, name: str, call: Callable[..., object]) -> Callable[..., object]:
        def do(*arguments: object) -> object:
            with self._lock:
                result = call(*arguments)
                self._calls.append([name, *map(_to_json, arguments)])
                return result

        return do

    def fork(self) -> Journal:
        """A copy of the engine, and of what it was told."""
        with self._lock:
            return Journal(self._core.fork(), self._calls)

    def to_json(self) -> list[JsonValue]:
        """The calls, as plain data."""
        with self._lock:
            return list(self._calls)

    def replay(self, calls: JsonObject) -> None:
        """Tell the engine all of it, as it was told.

        Raises:
            ValueError: There is no such call.
        """
        for call in list_at(calls, "calls"):
            name, *arguments = call if isinstance(call, list) else [call]
            if name not in _CALLS:
                raise ValueError(f"no engine was ever told to {name!r}")
            getattr(self, str(name))(*map(_from_json, arguments))


def digest_of(saved: JsonObject) -> str:
    """Tells apart what was saved from all else."""
    plain = {name: value for name, value in saved.items() if name != "digest"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _to_json(value: object) -> JsonValue:
    """An argument as plain data: bytes that are text as text, all others in base 64, a tuple as one."""
    if isinstance(value, bytes):
        try:
            return {"text": value.decode()}
        except UnicodeDecodeError:
            return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, tuple):
        return {"tuple": [_to_json(it) for it in value]}
    if isinstance(value, list):
        return [_to_json(it) for it in value]
    assert isinstance(value, bool | int | str), "what the extension takes"
    return value


def _from_json(value: JsonValue) -> object:
    if isinstance(value, list):
        return [_from_json(it) for it in value]
    if not isinstance(value, dict):
        return value
    if "text" in value:
        return str(value["text"]).encode()
    if "bytes" in value:
        return base64.b64decode(str(value["bytes"]))
    return tuple(_from_json(it) for it in list_at(value, "tuple"))
