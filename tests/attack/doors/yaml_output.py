"""YAML: scalars are read as kubectl reads them; those of `kueuecore run -o yaml` come out as they went in, in time."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from random import Random
from typing import Any

from kueuecore.cli import ExitCode
from kueuecore.errors import ManifestError
from kueuecore.manifests import parse_manifests
from tests.attack.case import Case, Wrong
from tests.attack.doors.command import folder_of_its_own, judge, say
from tests.attack.values import TEXTS
from tests.recorded_yaml import recorded, scalars

__all__ = ["draw"]

_PUMPS = (
    "7", "1_", ".", "0", "1:", "1e", "-", "+", " ", "\t", "a b ", "\n", " \n", "- ", ": ", "#", "'", '"', "\\", "\\x00",
    "&a ",
    "*a ", "!", "|", ">", "%", "{", "[", "é", "\u2028", "\U0001f600", "\x1b", "\x7f", "\x85", "\ufeff", "0x1f", "~",
    "null ",
    "2026-01-01T00:00:00Z", "12:30:45 ", "yes ", "a: b, ", "\r\n", "...\n", "---\n", "<<", "=",
)  # fmt: skip


_HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"


def draw(rng: Random) -> Case:
    """Scalars that have been recorded, or a long one."""
    return _drawn_recorded(rng) if rng.random() < 0.3 else _drawn_long(rng)


def _drawn_recorded(rng: Random) -> Case:
    """A mapping of recorded scalars, as keys and values, among each other and at any depth."""
    rows = [other for other in recorded() if other.form != "document" and (other.error or isinstance(other.json, dict))]
    drawn = rng.sample(rows, rng.choice([1, 3, 10]))
    if rng.random() < 0.7:
        drawn = [row for row in drawn if not row.error]
    # Each value has a key of its own; of keys that become the same the last one counts.
    lines = [
        row.text.replace("v: ", f"value{n}: ", 1) if row.form == "value" else row.text for n, row in enumerate(drawn)
    ]
    expected: dict[str, Any] = {}
    for n, row in enumerate(drawn):
        if not row.error:
            expected |= {f"value{n}": row.json["v"]} if row.form == "value" else row.json
    depth, indent = rng.randrange(4), rng.choice([1, 2, 7])
    parents = "".join(f"{' ' * indent * level}{rng.choice(['a', 'b', 'data'])}:\n" for level in range(depth))
    text = _HEAD + "spec:\n" + textwrap.indent(parents + textwrap.indent("".join(lines), " " * indent * depth), "  ")

    def act() -> None:
        try:
            (read,) = parse_manifests(text)
        except ManifestError as error:
            if any(row.error for row in drawn):
                raise
            raise Wrong(f"kubectl takes it: {error}") from None
        if refused := [row.error for row in drawn if row.error]:
            raise Wrong(f"kubectl refuses it: {refused}")
        value = read.object["spec"]
        for _ in range(depth):
            (value,) = value.values()  # type: ignore[union-attr]
        if json.dumps(value or {}, sort_keys=True) != json.dumps(expected, sort_keys=True):
            raise Wrong(f"kubectl reads {expected}, and not {value}")

    return Case(f"{text!r}", act, len(text))


def _drawn_long(rng: Random) -> Case:
    """A flavor with annotations of a text that is repeated, with an end of its own."""
    pump = rng.choice(_PUMPS) + (rng.choice(_PUMPS) if rng.random() < 0.3 else "")
    begin, end = rng.choice(["", *TEXTS, *scalars()]), rng.choice(["", "x", "\n", " ", *TEXTS])
    begin, end = (entry if len(entry) < 1_000 else "" for entry in (begin, end))
    length = rng.choice([0, 1, 30, 2_000, 40_000])

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
