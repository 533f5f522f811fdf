"""Every regular expression of the package takes time proportional to its input."""

from __future__ import annotations

import ast
import importlib
import re
import signal
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from re import _constants as ops  # type: ignore[attr-defined]  # the parser of `re` has no public name
from re import _parser as parser  # type: ignore[attr-defined]
from types import FrameType
from typing import Any

import pytest

import kueuecore

_PACKAGE = Path(kueuecore.__file__).parent
_METHODS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")
_LENGTH = 10_000
_SECONDS = 0.2
"""CPU time. A linear expression takes about a millisecond, a quadratic one more than a second."""
_PROOF = ("reference", "conformance", "trials")
# Built from the patterns of CustomResourceDefinitions, which Kueue wrote.
_FROM_DEFINITIONS = {"testing/go_patterns.py"}
_ENDS = ("", "\x01", "x", "\n")


@dataclass(frozen=True, slots=True)
class _Expression:
    """An expression, and how the package applies it."""

    place: str
    pattern: re.Pattern[Any]
    methods: tuple[str, ...]


@cache
def _sources() -> dict[str, str]:
    files = sorted(_PACKAGE.rglob("*.py"))
    named = {str(file.relative_to(_PACKAGE)): file.read_text(encoding="utf-8") for file in files}
    return {name: text for name, text in named.items() if name.partition("/")[0] not in _PROOF}


def _calls(name: str, text: str) -> Iterator[tuple[ast.Call, str]]:
    """Each call of a function of `re`, and the name to which its result is assigned."""
    tree = ast.parse(text)
    names = {
        id(node.value): node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = node.func.value
            if isinstance(of, ast.Name) and of.id == "re" and node.func.attr in (*_METHODS, "compile", "subn"):
                yield node, names.get(id(node), "")


@cache
def _expressions() -> tuple[_Expression, ...]:
    return tuple({(expression.pattern, expression.methods): expression for expression in _found()}.values())


def _found() -> Iterator[_Expression]:
    everywhere = "".join(_sources().values())
    for name, text in _sources().items():
        for call, assigned in _calls(name, text):
            assert isinstance(call.func, ast.Attribute)
            module = importlib.import_module(f"kueuecore.{name.removesuffix('.py').replace('/', '.')}")
            try:
                pattern = eval(compile(ast.Expression(call.args[0]), name, "eval"), vars(module))
            except NameError:
                assert name in _FROM_DEFINITIONS, f"{name}:{call.lineno}: name the expression in the module"
                continue
            flags = _flags(call, module)
            if call.func.attr != "compile":
                methods = (call.func.attr.removesuffix("n"),)
            else:
                uses = text if assigned.startswith("_") else everywhere
                found = set(re.findall(rf"\b{assigned}\.({'|'.join(_METHODS)})\b", uses)) if assigned else set()
                # Those that only `re.fullmatch(X)` and the like use are among the calls themselves.
                methods = tuple(sorted(found or {"match", "fullmatch"}))
            yield _Expression(f"{name}:{call.lineno}", re.compile(pattern, flags), methods)


def _flags(call: ast.Call, module: object) -> int:
    assert isinstance(call.func, ast.Attribute)
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(call.func.attr, 2)
    given = [keyword.value for keyword in call.keywords if keyword.arg == "flags"] + call.args[place : place + 1]
    return int(eval(compile(ast.Expression(given[0]), "", "eval"), vars(module))) if given else 0


def _pumped(expression: _Expression) -> Iterator[str]:
    """Texts that begin like a match, repeat each part of it that may repeat, and then go wrong."""
    tree = parser.parse(expression.pattern.pattern, expression.pattern.flags & ~re.UNICODE)
    seen = {("", "a"), ("", " "), ("", '"'), ("", "\n")}
    seen.update(_repeats(tree, "", expression.pattern.flags))
    for before, body in sorted(seen):
        text = before + body * (_LENGTH // max(len(body), 1))
        for end in _ENDS:
            yield text[:_LENGTH] + end
        yield ((before + body * 2) * _LENGTH)[:_LENGTH]
        yield (before * _LENGTH)[:_LENGTH]


def _repeats(tree: Any, before: str, flags: int) -> Iterator[tuple[str, str]]:
    """What comes before each unlimited repeat, and samples of its body."""
    for op, value in tree:
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            _, most, body = value
            if most is ops.MAXREPEAT:
                for sample in dict.fromkeys((*_characters(body), _sample(body))):
                    if sample:
                        yield before, sample
            yield from _repeats(body, before, flags)
        elif op is ops.SUBPATTERN:
            yield from _repeats(value[3], before, flags)
        elif op is ops.BRANCH:
            for branch in value[1]:
                yield from _repeats(branch, before, flags)
        elif op in (ops.ASSERT, ops.ASSERT_NOT):
            yield from _repeats(value[1], before, flags)
        before += _sample([(op, value)])


def _characters(tree: Any) -> Iterator[str]:
    """Some of the characters that a part of an expression takes."""
    for op, value in tree:
        if op is ops.IN:
            yield from (entry for part in value for entry in _of_class(part))
            if value[0][0] is ops.NEGATE:
                yield from "a0 -;\x01"
        elif op in (ops.LITERAL, ops.NOT_LITERAL, ops.ANY):
            yield _sample([(op, value)])
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            yield from _characters(value[2])
        elif op is ops.SUBPATTERN:
            yield from _characters(value[3])
        elif op is ops.BRANCH:
            for branch in value[1]:
                yield from _characters(branch)


_OF_CATEGORY = {
    ops.CATEGORY_DIGIT: "1",
    ops.CATEGORY_SPACE: " \n",
    ops.CATEGORY_WORD: "a1_",
    ops.CATEGORY_NOT_SPACE: "a.",
    ops.CATEGORY_NOT_DIGIT: "a",
    ops.CATEGORY_NOT_WORD: " ",
}


def _of_class(part: Any) -> str:
    op, value = part
    if op is ops.LITERAL:
        return chr(value)
    if op is ops.RANGE:
        return chr(value[0]) + chr(value[1])
    return _OF_CATEGORY[value] if op is ops.CATEGORY else ""


def _sample(tree: Any) -> str:
    """One text that a part of an expression takes."""
    written = ""
    for op, value in tree:
        if op is ops.LITERAL:
            written += chr(value)
        elif op in (ops.ANY, ops.NOT_LITERAL):
            written += "a" if op is ops.ANY or value != ord("a") else "b"
        elif op is ops.IN:
            negated = value[0][0] is ops.NEGATE
            written += "a" if negated else next((entry for part in value for entry in _of_class(part)), "")
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            written += _sample(value[2]) * max(value[0], 1)
        elif op is ops.SUBPATTERN:
            written += _sample(value[3])
        elif op is ops.BRANCH:
            written += _sample(value[1][0])
    return written


class _TooSlowError(Exception):
    pass


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise _TooSlowError


def _is_slow(expression: _Expression, text: str) -> bool:
    given: Any = text.encode("latin-1", "replace") if isinstance(expression.pattern.pattern, bytes) else text
    before = signal.signal(signal.SIGVTALRM, _give_up)
    try:
        for method in expression.methods:
            signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
            function = getattr(expression.pattern, method)
            found = function("" if isinstance(given, str) else b"", given) if method == "sub" else function(given)
            if method == "finditer":
                deque(found, maxlen=0)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except _TooSlowError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return False


@pytest.mark.parametrize("part", range(4))
def test_regular_expressions_are_linear(part: int) -> None:
    slow = []
    for expression in _expressions()[part::4]:
        # What is slow once only may have been disturbed.
        text = next((name for name in _pumped(expression) if all(_is_slow(expression, name) for _ in range(2))), None)
        if text is not None:
            slow.append(f"{expression.place} {expression.pattern.pattern!r} on {text[:40]!r}...{text[-10:]!r}")
    assert slow == []


def test_the_check_finds_quadratic_expressions() -> None:
    for pattern in (r"[.\d_]*\d[.\d_]*", r"^[ \t]*;[; \t]*(.*?)[ \t]*:$", r"(a|b|ab)*c", r"\s+$"):
        expression = _Expression("here", re.compile(pattern), ("fullmatch", "search"))
        assert any(_is_slow(expression, name) for name in _pumped(expression)), pattern
