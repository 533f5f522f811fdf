"""Creates new names that sort like the old ones, so that ties are broken as before."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from random import Random

__all__ = ["fnv1a", "is_known_resource", "new_names", "new_resources"]

_FNV_OFFSET, _FNV_PRIME, _BITS = 0xCBF29CE484222325, 0x100000001B3, 2**64
# Vendors of common devices: their resources do not identify anyone.
_MAKERS = (
    "amd.com",
    "aws.amazon.com",
    "google.com",
    "gpu.intel.com",
    "habana.ai",
    "huawei.com",
    "intel.com",
    "nvidia.com",
    "rdma",
)
_PLAIN = ("cpu", "ephemeral-storage", "memory", "pods", "storage")
_MAX_TRIES = 200_000


def new_names(prefix: str, names: Iterable[str], *, seed: int | None = None) -> dict[str, str]:
    """Map each name to a prefix and a number; all numbers have the same number of digits.

    Args:
        prefix: The prefix of the new names.
        names: The old names.
        seed: Skip numbers at random, so that they do not reveal how many names there are; None to skip none.

    Example:
        >>> new_names("cq-", ["team-b", "team-a"])
        {'team-a': 'cq-1', 'team-b': 'cq-2'}
    """
    ordered = sorted(set(names))
    random, numbers, number = Random(f"{seed}/{prefix}"), list[int](), 0
    for _ in ordered:
        number += 1 if seed is None else random.randint(1, 9)
        numbers.append(number)
    width = len(str(number))
    return {name: f"{prefix}{number:0{width}}" for name, number in zip(ordered, numbers, strict=True)}


def is_known_resource(name: str) -> bool:
    """Whether a resource is so common that its name can stay.

    Example:
        >>> [is_known_resource(it) for it in ("cpu", "nvidia.com/gpu", "hugepages-2Mi", "acme.example/fpga")]
        [True, True, True, False]
    """
    return name in _PLAIN or name.startswith("hugepages-") or name.partition("/")[0] in _MAKERS


def new_resources(names: Iterable[str], kept: Iterable[str] = (), *, seed: int | None = None) -> dict[str, str]:
    """Map each uncommon resource to a new name; common ones keep theirs.

    Kueue visits resources by name in some places, and by a hash of the name in others (rules/03 §1). The new names keep
    both orders.

    Args:
        names: The old names.
        kept: Names to keep in any case.
        seed: As for `new_names`.

    Example:
        >>> new = new_resources(["cpu", "acme.example/fpga", "memory", "lab.example/laser"])
        >>> sorted(new, key=fnv1a) == sorted(new, key=lambda it: fnv1a(new[it]))
        True
        >>> sorted(new) == sorted(new, key=new.get)
        True
    """
    ordered, stay = sorted(set(names)), set(kept)
    custom = [entry for entry in ordered if not is_known_resource(entry) and entry not in stay]
    found = {entry: entry for entry in ordered if entry not in custom}
    numbers = new_names("", custom, seed=seed)
    beginnings = {entry: _beginning(entry, sorted(found), numbers[entry]) for entry in custom}
    by_hash = sorted(ordered, key=fnv1a)
    for place, name in enumerate(by_hash):
        if name in found:
            continue
        # Leave room for all others up to the next name that is already taken.
        low = fnv1a(found[by_hash[place - 1]]) if place else -1
        n_more, high = _room(by_hash[place:], found)
        found[name] = _with_hash(beginnings[name], low, low + (high - low) // n_more)
    return {name: found[name] for name in ordered}


def fnv1a(name: str) -> int:
    """The 64-bit FNV-1a hash of a name.

    Example:
        >>> hex(fnv1a("cpu"))
        '0xf5a8fa190cb314c9'
    """
    value = _FNV_OFFSET
    for byte in name.encode():
        value = (value ^ byte) * _FNV_PRIME % _BITS
    return value


def _room(names: Sequence[str], found: Mapping[str, str]) -> tuple[int, int]:
    """How many names, plus one, come before the next that has a new name, and the hash of that one."""
    for index, name in enumerate(names):
        if name in found:
            return index + 1, fnv1a(found[name])
    return len(names) + 1, _BITS


def _beginning(name: str, stay: Sequence[str], number: str) -> str:
    """A prefix that sorts a new name between the same kept names as the old one."""
    place = bisect(stay, name)
    before = stay[place - 1].partition("/")[0].lower() + "x" if place else "0"
    slash = f"{number}.example/r" if "/" in name else f"{number}r"
    return before + slash


def _with_hash(beginning: str, low: int, high: int) -> str:
    """The first name with this prefix whose hash is between `low` and `high`."""
    for number in count() if high - low > 1 else ():
        candidate = f"{beginning}{number}"
        if low < fnv1a(candidate) < high or number > _MAX_TRIES:
            return candidate
    return beginning
