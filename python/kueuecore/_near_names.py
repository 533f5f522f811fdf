"""Suggests names for a misspelled one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

__all__ = ["near_names"]

# One typo per so many letters: with fewer letters, unrelated names would be near.
_LETTERS_PER_SLIP = 4
_SHORTEST_BEGINNING = 3


def near_names(name: str, known: Iterable[str], *, n: int = 1) -> tuple[str, ...]:
    """Return the names that an unknown one may stand for, the nearest first, then in the order given.

    A typo is a missing, extra or wrong letter, or two neighbors swapped (Damerau-Levenshtein distance); four letters
    of the longer name allow one. A name is also near its own beginning. Case does not matter.

    Args:
        name: The unknown name.
        known: The known names.
        n: The most names to return.

    Example:
        >>> near_names("tarin", ["train", "trial", "label"]), near_names("train", ["label", "train-large"])
        (('train',), ('train-large',))
    """
    given = name.lower()
    letters = Counter(given)
    found: list[tuple[int, int, str]] = []
    for index, fromkey in enumerate(dict.fromkeys(known)):
        other = fromkey.lower()
        most = max(1, max(len(given), len(other)) // _LETTERS_PER_SLIP)
        if len(given) >= _SHORTEST_BEGINNING and other.startswith(given):
            slips = 0 if other == given else most
        else:
            # Stop early for a name that cannot be among the n nearest.
            bound = min(most, len(given) - 1, *([found[-1][0] - 1] if len(found) == n else []))
            slips = _slips(letters, given, other, bound)
            most = bound
        if slips <= most:
            found = sorted([*found, (slips, index, fromkey)])[:n]
    return tuple(row for _, _, row in found)


def _slips(letters: Counter[str], one: str, other: str, most: int) -> int:
    """Return the distance of two names in typos, no two of them on the same letter; any number above `most` if more."""
    if abs(len(other) - len(one)) > most:
        return most + 1
    others = Counter(other)
    if max((letters - others).total(), (others - letters).total()) > most:
        return most + 1
    far = most + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, ours in enumerate(one, start=1):
        row = [far] * len(last)
        row[0] = left = least = i
        # Further from the diagonal it is more than `most` anyway.
        for j in range(max(1, i - most), min(len(other), i + most) + 1):
            theirs, slips = other[j - 1], last[j - 1]
            if ours != theirs:
                above = last[j]
                slips = 1 + (slips if slips <= above and slips <= left else above if above <= left else left)
                if i > 1 and j > 1 and ours == other[j - 2] and one[i - 2] == theirs and before[j - 2] < slips:
                    slips = before[j - 2] + 1
            row[j] = left = slips
            if slips < least:
                least = slips
        if least > most:
            return far
        before, last = last, row
    return last[-1]
