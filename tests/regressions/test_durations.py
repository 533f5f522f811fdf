"""Durations that were read as something else, or ended in a traceback: `5s5` was five seconds."""

from __future__ import annotations

import pytest

from kueuecore.times import duration_ns


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("5m", 300 * 10**9),
        ("1h30m", 5_400 * 10**9),
        ("1.5h", 5_400 * 10**9),
        ("-1s", -(10**9)),
        ("+.5s", 500_000_000),
        ("1.s", 10**9),
        ("1h0.1s", 3_600_100_000_000),
        ("1500us", 1_500_000),
        ("10µs", 10_000),  # U+00B5
        ("10μs", 10_000),  # U+03BC
        ("7ns", 7),
        ("0.3333333333333333333h", 1_200 * 10**9),
        ("2540400h10m10.000000000s", 9_145_440_610 * 10**9),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, nanoseconds: int) -> None:
    assert duration_ns(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'invalid duration ""'),
        ("-", 'invalid duration "-"'),
        ("s", 'invalid duration "s"'),
        (".s", 'invalid duration ".s"'),
        ("5", 'missing unit in duration "5"'),
        ("5s5", 'missing unit in duration "5s5"'),
        ("1.2.3s", 'missing unit in duration "1.2.3s"'),
        ("5d", 'unknown unit "d" in duration "5d"'),
        ("1 s", 'unknown unit " s" in duration "1 s"'),
        ("\u0661s", 'invalid duration "\u0661s"'),  # an Arabic digit
        ("9223372036854775808ns", 'invalid duration "9223372036854775808ns"'),
        ("9999999999999h", 'invalid duration "9999999999999h"'),
    ],
)
def test_what_is_no_duration_is_refused_in_the_words_of_go(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="time: ") as error:
        duration_ns(text)
    assert str(error.value) == f"time: {problem}"
