"""Rows of the extension become dataclasses by the types of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Any

import pytest

from kueuecore._rows import read_row


class Color(StrEnum):
    RED = "Red"


@dataclass(frozen=True)
class Part:
    share: float
    wide_share: float | None


@dataclass(frozen=True, kw_only=True)
class Whole:
    first_part: Part
    last_part: Part | None
    colors: tuple[Color, ...]
    parts: tuple[Part, ...]
    uses: Mapping[tuple[str, str], str]
    pairs: tuple[tuple[str, str], ...]
    status: Mapping[str, Any]


ROW: dict[str, Any] = {
    "firstPart": {"share": None, "wideShare": None},
    "lastPart": None,
    "colors": ["Red"],
    "parts": [{"share": 1.0, "wideShare": 2.0}],
    "uses": [["gpu", "cpu", "3"]],
    "pairs": [["gpu", "cpu"]],
    "status": {"anyName": [None]},
}


def test_values_are_read_by_the_types_of_the_fields() -> None:
    assert read_row(Whole, ROW) == Whole(
        first_part=Part(inf, None),
        last_part=None,
        colors=(Color.RED,),
        parts=(Part(1.0, 2.0),),
        uses={("gpu", "cpu"): "3"},
        pairs=(("gpu", "cpu"),),
        status={"anyName": [None]},
    )


def test_a_row_without_a_field_is_refused() -> None:
    with pytest.raises(KeyError, match="lastPart"):
        read_row(Whole, {name: value for name, value in ROW.items() if name != "lastPart"})
