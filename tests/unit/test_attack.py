"""What the judge of attacks finds, and that every door draws the same case from the same seed."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import NoReturn

import pytest

from kueuecore.errors import ManifestError
from tests.attack import judging
from tests.attack.case import Case, Wrong
from tests.attack.doors import DOORS
from tests.attack.judging import judged


def raising(error: BaseException) -> Callable[[], NoReturn]:
    def act() -> NoReturn:
        raise error

    return act


def slow() -> None:
    """Takes longer than is allowed, and not so long that the process dies, however fast the machine is."""
    start = time.process_time()
    while time.process_time() - start < 0.3:
        pass


@pytest.mark.parametrize(
    ("act", "wrong"),
    [
        (lambda: None, ""),
        (raising(ValueError("prefix: 'x' is no prefix")), ""),
        (raising(ManifestError.of("Required value")), ""),
        (raising(ValueError("'x' is none")), "names neither argument nor field"),
        (raising(ValueError("")), "ValueError"),
        (raising(ValueError(f"prefix: {'x' * 1000}")), "an error with a word of 1000 characters"),
        (raising(AssertionError("prefix")), "AssertionError"),
        (raising(KeyError("prefix")), "KeyError"),
        (raising(Wrong("another engine")), "another engine"),
        (slow, "took "),
    ],
    ids=range(10),
)
def test_each_case_has_its_outcome(act: Callable[[], object], wrong: str) -> None:
    verdict = judged(Case("a case", act, size=10, names=("prefix",), seconds=0.1))
    assert verdict.wrong.startswith(wrong) if wrong else not verdict.wrong


def test_a_refusal_leaves_everything_as_it_is() -> None:
    seen: list[int] = []

    def act() -> None:
        seen.append(1)
        raise ValueError("prefix: refused")

    verdict = judged(Case("a case", act, size=10, names=("prefix",), state=lambda: list(seen)))
    assert verdict.wrong.startswith("changed by what it refused")


def burning(seconds: float) -> Callable[[], None]:
    def act() -> None:
        start = time.process_time()
        while time.process_time() - start < seconds:
            pass

    return act


@pytest.mark.parametrize(("once", "twice", "is_wrong"), [(0.1, 0.2, False), (0.02, 0.2, True), (0.001, 0.02, False)])
def test_double_the_input_may_take_a_little_more_than_double_the_time(
    once: float, twice: float, is_wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "_LONG", 0.1)
    verdict = judged(Case("a case", burning(once), size=10, twice=burning(twice)))
    assert ("at double size" in verdict.wrong) == is_wrong


@pytest.mark.parametrize("door", DOORS)
def test_a_case_follows_from_its_number(door: str) -> None:
    one, other = (DOORS[door](Random(f"1 {door} 7")) for _ in range(2))
    assert (one.title, one.size) == (other.title, other.size)
    assert not judged(one).wrong
