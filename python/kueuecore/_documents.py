"""Turns a text, YAML or JSON, into its documents: plain data with their positions."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import yaml

from kueuecore._files import Text
from kueuecore._json import JsonValue, text_at
from kueuecore._json_text import json_documents
from kueuecore._json_text import syntax_problem as json_syntax_problem
from kueuecore._yaml import Converter, compose, syntax_problem, token_spans
from kueuecore.errors import ManifestError, Problem

__all__ = ["Document", "documents", "yaml_documents"]

_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_MARK = "\ufeff"
# Files that were put one after the other have a byte order mark each.
_MARKED_START = re.compile(rf"^(---(?:[ \t\r].*)?\n){_MARK}|^{_MARK}(?=---)", re.MULTILINE)
_COMMENTED_START = re.compile("^---(?=#)", re.MULTILINE)
_NO_UTF_8 = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a text.

    Args:
        value: Its value; None if it is empty or cannot be read.
        number: Its number in the text, from 1.
        line: The line on which it starts, from 1.
        text: The text to find the lines of its fields in.
        problems: What is wrong with it.
        duplicates: Duplicate keys, of which the last one counts.
        is_cut_off: Whether its aliases expand to so much that the rest of its value is missing.
    """

    value: JsonValue
    number: int
    line: int
    text: Text
    problems: tuple[Problem, ...]
    duplicates: tuple[Problem, ...] = ()
    is_cut_off: bool = False


def documents(text: str | bytes, file: str) -> list[Document]:
    """Return the documents of a text; after one that cannot be read there are no others.

    Args:
        text: The text; bytes are UTF-8 (in comments anything), or UTF-16 with a byte order mark.
        file: The name of its file.

    Raises:
        ManifestError: The bytes cannot be decoded.
    """
    decoded = _decoded(text, file)
    if decoded.lstrip()[:1] != "{":
        return list(_of_yaml(decoded))
    is_json = file.endswith(".json")
    found: list[Document] = []
    try:
        found.extend(_of_json(decoded, allows_constants=is_json))
    except json.JSONDecodeError as error:
        # A YAML flow mapping starts with a brace too, and kubectl reads it whatever its file is called: it may have a
        # comma after the last entry. Of what is neither, the name of the file says which message is the better one.
        as_yaml = list(_of_yaml(decoded))
        if not is_json or all(map(_is_object, as_yaml)):
            return as_yaml
        found.append(Document(None, len(found) + 1, 1, Text(decoded), (json_syntax_problem(error),)))
    return found


def yaml_documents(text: str | bytes, file: str) -> list[Document]:
    """Return the documents of a text that is YAML, of which JSON is a part; otherwise as `documents`."""
    return list(_of_yaml(_decoded(text, file)))


def _of_yaml(text: str) -> Iterator[Document]:
    # kubectl ends each line, so that the last line of a block scalar ends as the others do.
    text = text if text.endswith("\n") else f"{text}\n"
    # It takes a comment right after the dashes, too.
    text = _COMMENTED_START.sub("--- ", text) if "---#" in text else text
    shared, converter, number = Text(text), Converter(text), 0
    try:
        for number, node in enumerate(compose(text), start=1):
            if node is None:
                continue
            value, problems, duplicates = converter.convert(node)
            line, is_cut_off = node.start_mark.line + 1, converter.is_exhausted
            yield Document(value, number, line, shared, tuple(problems), tuple(duplicates), is_cut_off)
            if is_cut_off:
                return
    except yaml.YAMLError as error:
        yield Document(None, number + 1, 1, shared, (syntax_problem(error, text),))
    except RecursionError:
        yield Document(None, number + 1, 1, shared, (Problem("it is nested too deeply"),))


def _of_json(text: str, *, allows_constants: bool) -> Iterator[Document]:
    """Yield the values of a JSON text, one or several in a row; a `JSONDecodeError` if it is not JSON."""
    for number, document in enumerate(json_documents(text, allows_constants=allows_constants), start=1):
        # Each document keeps only its own text, so that finding the line of a field composes no others. YAML has no
        # escaped surrogate pairs.
        own = Text(_PAIR.sub("?", document.text), document.line, number)
        yield Document(document.value, number, document.line, own, document.problems, document.duplicates)


def _is_object(document: Document) -> bool:
    return not document.problems and bool(text_at(document.value, "apiVersion") and text_at(document.value, "kind"))


def _decoded(text: str | bytes, file: str) -> str:
    if not isinstance(text, str | bytes):
        raise TypeError(f"a text must be str or bytes, not {type(text).__name__}")
    try:
        if isinstance(text, bytes):
            is_utf_16 = text.startswith((b"\xff\xfe", b"\xfe\xff"))
            text = text.decode("utf-16") if is_utf_16 else _of_utf_8(text)
        elif not text.isascii():
            text.encode()
    except UnicodeDecodeError as error:
        encoding = error.encoding.upper()
        line = error.object.count(b"\n", 0, error.start) + 1
        remedy = "save the file as UTF-8"
        problem = Problem(f"byte {error.start} is not {encoding}", file=file, line=line, remedy=remedy)
        raise ManifestError([problem]) from None
    except UnicodeEncodeError as error:
        before = error.object[: error.start]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message, remedy = "unpaired surrogate", "write both halves"
        raise ManifestError([Problem(message, file=file, line=line, column=column, remedy=remedy)]) from None
    text = text.removeprefix(_MARK)
    return _MARKED_START.sub(r"\1", text) if _MARK in text else text


def _of_utf_8(data: bytes) -> str:
    """Decode UTF-8; comments may have other bytes, as in files that were saved as Latin-1 long ago."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="surrogateescape")
        wrong = [match.start() for match in _NO_UTF_8.finditer(text)]
        text = _NO_UTF_8.sub("\ufffd", text)
        with suppress(yaml.YAMLError):
            if all(bisect_left(wrong, start) == bisect_left(wrong, end) for start, end in token_spans(text)):
                return text
        raise error from None
