"""Texts on which expressions for them took time in proportion to their square, or never ended."""

from __future__ import annotations

import pytest

from kueuecore._text import shown
from kueuecore.cli.documents import yaml_document
from kueuecore.errors import ManifestError
from kueuecore.manifests import parse_manifests
from kueuecore.traces.swf import read_swf
from tests.regressions.test_large_inputs import in_time

SWF_JOB = b"1 0 10 60 4 -1 -1 4 -1 1024 1 7 2 -1 1 1 -1 -1\n"


@pytest.mark.parametrize("blank", [b" ", b"\t", b" \t", b"; "])
def test_an_swf_comment_of_blanks(blank: bytes) -> None:
    log = b";" + blank * 100_000 + b"x\n; Note: a" + blank * 100_000 + b"b\n;MaxProcs:\t64 \r\n" + SWF_JOB
    with in_time():
        trace = read_swf(log, "log.swf")
    assert trace.header["MaxProcs"] == "64"
    assert trace.header["Note"] == "a" + blank.decode() * 100_000 + "b"


@pytest.mark.parametrize("text", ["7" * 100_000 + "x", "1_" * 50_000 + "x", "." * 100_000])
def test_a_text_of_digits_as_yaml(text: str) -> None:
    with in_time():
        written = yaml_document({"a": text}, is_ascii=False)
    assert text in written


@pytest.mark.parametrize("text", [r"\x00" * 5_000, r"\" " * 50_000, r"\"" * 50_000])
def test_a_quote_of_escapes_that_is_never_closed(text: str) -> None:
    with in_time():
        message = shown(f'"{text}')
    assert message.endswith("...")


def test_a_word_in_a_quote_that_is_never_closed_is_cut() -> None:
    assert shown('"a ' + "b" * 300) == '"a ' + "b" * 253 + "..."


@pytest.mark.parametrize("brackets", [b"[", b"{a: ", b"[{a: "])
def test_brackets_in_a_file_that_is_not_utf_8(brackets: bytes) -> None:
    with in_time(), pytest.raises(ManifestError, match="byte 2 is not UTF-8"):
        parse_manifests(b"# \xe9\n" + brackets * 50_000)
