"""`kueuecore run -o yaml`: long and odd scalars come out as they went in, in time."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from kueuecore.cli import ExitCode
from kueuecore.manifests import parse_manifests
from tests.attack.case import Case, Wrong
from tests.attack.doors.command import folder_of_its_own, judge, say
from tests.attack.values import TEXTS

__all__ = ["draw"]

_PUMPS = (
    "7", "1_", ".", "0", "1:", "1e", "-", "+", " ", "\t", "a b ", "\n", " \n", "- ", ": ", "#", "'", '"', "\\", "\\x00",
    "&a ",
    "*a ", "!", "|", ">", "%", "{", "[", "é", "\u2028", "\U0001f600", "\x1b", "\x7f", "\x85", "\ufeff", "0x1f", "~",
    "null ",
    "2026-01-01T00:00:00Z", "12:30:45 ", "yes ", "a: b, ", "\r\n", "...\n", "---\n", "<<", "=",
)  # fmt: skip


def draw(rng: Random) -> Case:
    """A flavor with annotations of a text that is repeated, with an end of its own."""
    pump = rng.choice(_PUMPS) + (rng.choice(_PUMPS) if rng.random() < 0.3 else "")
    begin, end = rng.choice(["", *TEXTS]), rng.choice(["", "x", "\n", " ", *TEXTS])
    begin, end = (it if len(it) < 1_000 else "" for it in (begin, end))
    length = rng.choice([1, 30, 2_000, 40_000])

    def given(length: int) -> tuple[str, bytes]:
        text = (begin + pump * (length // len(pump)) + end).encode("utf-8", "replace").decode()
        plain: dict[str, Any] = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ResourceFlavor",
            "metadata": {"name": "f", "annotations": {"example.com/a": text}},
        }
        return text, json.dumps(plain, ensure_ascii=True).encode()

    def act(length: int = length) -> None:
        text, data = given(length)
        with folder_of_its_own():
            Path("in.json").write_bytes(data)
            said = say("run", "--trusted", "-o", "yaml", "in.json")
            judge(said, "yaml", len(data))
            if said.code == ExitCode.BAD_INPUT:
                return
            (again,) = parse_manifests(said.out)
            if again.object["metadata"]["annotations"] != {"example.com/a": text}:  # type: ignore[index,call-overload]
                raise Wrong(f"it is read back as something else: {said.out[:300]!r}")

    title = f"{begin[:20]!r} + {pump!r} to {length} + {end[:20]!r}"
    return Case(title, act, 2 * len(given(length)[1]), twice=lambda: act(2 * length), seconds=4)
