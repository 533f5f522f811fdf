"""Objects are written as PyYAML would write them whole."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from kueuecore import _yaml_output
from kueuecore._json import JsonObject, JsonValue
from kueuecore._yaml_output import yaml_document

ODD: tuple[str, ...] = ("", "a\n", "a\n\n", "\n", " a\nb", "yes", "n", "Null", "inf", "=", "<<", "~", "k" * 130, "ns/w")
ODD += ("500m", "1e3", "0x1F", "2026-01-05T00:00:00Z")
ODD += ("00000000-0000-0000-0000-000000000001", "12345678-1234-1234-1234-1234567890e5")
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(ODD),
    st.text(alphabet="ab\n -:#'\"", max_size=10),
    st.from_regex(_yaml_output._WORD, fullmatch=True),
    st.from_regex(_yaml_output._TIME, fullmatch=True),
)
SCALARS: st.SearchStrategy[JsonValue] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)


class Whole(_yaml_output._Dumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def dumped(plain: JsonObject, *, is_ascii: bool) -> str:
    text = str(yaml.dump(plain, Dumper=Whole, sort_keys=False, allow_unicode=not is_ascii, width=2**31))
    return text if is_ascii or text.replace("\n", "").isprintable() else dumped(plain, is_ascii=True)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.booleans())
def test_a_document_is_what_pyyaml_writes(plain: JsonObject, is_ascii: bool) -> None:
    assert yaml_document(plain, is_ascii=is_ascii) == dumped(plain, is_ascii=is_ascii)
