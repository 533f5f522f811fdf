"""Joins names with commas, without a Python object per group that has only one name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kueuecore.results.usage_log import Codes, Ints

__all__ = ["joined_texts"]


def joined_texts(group: Ints | Codes, name: Ints, names: Sequence[str], n_groups: int) -> tuple[Ints, tuple[str, ...]]:
    """Join the distinct names of each group, sorted, with commas.

    Args:
        group: The group of each row.
        name: The index in `names` of each row.
        names: Texts, each once.
        n_groups: The number of groups.

    Returns:
        The index of each group's text, -1 for a group without rows; and the texts.

    Example:
        >>> joined_texts(np.array([0, 2, 0, 0]), np.array([1, 1, 0, 1]), ["b", "a"], 3)
        (array([ 2, -1,  0]), ('a', 'b', 'a,b'))
    """
    order = sorted(range(len(names)), key=names.__getitem__)
    place = np.empty(len(names), np.int64)
    place[order] = np.arange(len(names))
    pairs = np.asarray(group, np.int64) * max(len(names), 1) + place[name]
    groups, items = np.divmod(np.unique(pairs), max(len(names), 1))
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    ends = np.append(begins[1:], len(groups))
    codes = np.full(n_groups, -1)
    codes[groups[begins]] = items[begins]
    texts = [names[index] for index in order]
    known: dict[bytes, int] = {}
    for begin, end in zip(begins[ends - begins > 1].tolist(), ends[ends - begins > 1].tolist(), strict=True):
        key = items[begin:end].tobytes()
        if key not in known:
            known[key] = len(texts)
            texts.append(",".join(names[order[index]] for index in items[begin:end].tolist()))
        codes[groups[begin]] = known[key]
    return codes, tuple(texts)
