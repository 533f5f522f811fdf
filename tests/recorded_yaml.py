"""What kubectl's library makes of YAML: recorded by tests/yaml_scalars/record.go."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Recorded", "recorded", "scalars"]

_FOLDER = Path(__file__).resolve().parent / "yaml_scalars"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A text, and what it becomes.

    Args:
        form: `value` for `v: SCALAR`, `key` for `SCALAR: v`, or `document`.
        text: The YAML.
        json: The value.
        error: Why it is refused; empty if it is not.
    """

    form: str
    text: str
    json: Any
    error: str


def scalars() -> list[str]:
    """The scalars that were recorded."""
    return (_FOLDER / "scalars.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")


@functools.cache
def recorded() -> tuple[Recorded, ...]:
    """Every answer."""
    lines = (_FOLDER / "recorded.jsonl").read_text(encoding="utf-8").splitlines()
    answers = map(json.loads, lines)
    return tuple(
        Recorded(answer["as"], answer["yaml"], answer.get("json"), answer.get("error", "")) for answer in answers
    )
