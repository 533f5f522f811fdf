"""Every revision of an object in etcd, also those that no watch of an API server has shown before that was killed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import urllib3

from kueuecore._json import JsonObject, list_at, object_at, text_at

__all__ = ["history_of"]


def history_of(url: str, prefix: str) -> Iterator[tuple[int, JsonObject, bool]]:
    """Yield the objects below a key, then their changes: revision, object, and whether it is deleted.

    It ends when etcd does.

    Args:
        url: The clients' URL of etcd.
        prefix: The key, as `/registry/kueue.x-k8s.io/workloads/`; its objects must be stored as JSON.
    """
    span = {"key": _encoded(prefix), "range_end": _encoded(prefix[:-1] + chr(ord(prefix[-1]) + 1))}
    pool = urllib3.PoolManager()
    listed = pool.request("POST", f"{url}/v3/kv/range", body=json.dumps(span), timeout=60).json()
    for row in map(object_at, list_at(listed, "kvs")):
        yield int(text_at(row, "mod_revision")), _object(row), False
    wanted = {**span, "start_revision": int(text_at(listed, "header", "revision")) + 1, "prev_kv": True}
    answer = pool.request(
        "POST", f"{url}/v3/watch", body=json.dumps({"create_request": wanted}), timeout=None, preload_content=False
    )
    rest = b""
    while chunk := answer.read1(1 << 20):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            for event in map(object_at, list_at(json.loads(line), "result", "events")):
                is_gone = event.get("type") == "DELETE"
                stored = object_at(event, "prev_kv") if is_gone else object_at(event, "kv")
                yield int(text_at(event, "kv", "mod_revision")), _object(stored), is_gone


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _object(row: JsonObject) -> JsonObject:
    found: JsonObject = json.loads(base64.b64decode(text_at(row, "value")))
    return found
