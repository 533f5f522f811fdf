"""Finds the smallest dump that still shows a decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kueuecore._json import JsonObject
from kueuecore.dumps.decided import Deciding
from kueuecore.dumps.kin import kin
from kueuecore.dumps.shown import Showing
from kueuecore.dumps.smaller import with_simpler_objects, without_parts
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest
from kueuecore.shrinking import smallest_by

__all__ = ["Shrunk", "shrink"]

_Objects: TypeAlias = tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest dump that was found.

    Args:
        objects: Its objects.
        n_before: How many there were.
        n_tries: How many dumps were tried.
        is_interrupted: Whether Ctrl-C stopped the search, so that a smaller dump may exist.
    """

    objects: _Objects
    n_before: int
    n_tries: int
    is_interrupted: bool = False


def shrink(
    manifests: Iterable[Manifest],
    deciding: Deciding,
    showing: Showing,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Shrunk:
    """Shrink a dump as long as it shows a decision: remove objects, then fields, flavors and pod sets, lower numbers.

    Every object left is needed to show it. The same dump always shrinks to the same result.

    Args:
        manifests: The objects.
        deciding: How to decide about them.
        showing: The decision to keep.
        progress: Called with the number of tries and the number of objects left.

    Raises:
        ManifestError: Everything that is wrong with the objects, or they do not show the decision.

    Example:
        >>> from kueuecore import read_manifests
        >>> from kueuecore.dumps.shown import Preempts
        >>> given = read_manifests("examples/taking-back")
        >>> found = shrink(given, Deciding(now=0), Preempts(preemptor="team-a/release-build", victim="team-b/sweep"))
        >>> len(given), len(found.objects)
        (9, 7)
    """
    given = tuple(manifests)
    decided = deciding.of(given)
    wanted = showing.as_in(decided)
    first: _Objects = tuple(manifest.object for manifest in given)
    smallest, n_tries = first, 0

    def note(tries: int, found: _Objects) -> None:
        nonlocal smallest, n_tries
        smallest, n_tries = found, tries
        if progress is not None:
            progress(tries, len(found))

    def shows(objects: _Objects) -> bool:
        try:
            return wanted.is_in(deciding.of(map(Manifest, objects)))
        except ManifestError:
            return False

    try:
        near = (row for row in reversed([*kin(first, decided, showing.about(decided))]) if shows(row))
        smallest = next(near, first)
        smallest_by(smallest, _candidates_of, shows, progress=note)
    except KeyboardInterrupt:
        return Shrunk(smallest, len(first), n_tries, is_interrupted=True)
    return Shrunk(smallest, len(first), n_tries)


def _candidates_of(current: Callable[[], _Objects]) -> Iterator[_Objects]:
    yield from without_parts(current)
    yield from with_simpler_objects(current)
