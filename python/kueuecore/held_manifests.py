"""Objects of a state whose Workloads stay in the engine until they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import overload

from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.manifests import Manifest, Source

__all__ = ["HeldManifests"]

_WORKLOAD = "Workload"


class HeldManifests(Sequence[Manifest]):
    """Some objects, then all Workloads of an engine: there may be tens of thousands, and a question needs a few.

    Args:
        others: All objects except Workloads.
        engine: It holds the Workloads, and no longer changes.
        source: Where they come from.

    Example:
        >>> held = HeldManifests([], Engine(), Source("cluster"))
        >>> len(held), held.workload("train", namespace="team-a")
        (0, None)
    """

    def __init__(self, others: Iterable[Manifest], engine: Engine, source: Source) -> None:
        self.others = tuple(others)
        self._engine = engine
        self._source = source

    def workload(self, name: str, *, namespace: str) -> Manifest | None:
        """Return a Workload; None if there is none."""
        try:
            return Manifest(self._engine.object(_WORKLOAD, name, namespace=namespace), self._source)
        except UnknownObjectError:
            return None

    def of_kind(self, kind: str) -> tuple[Manifest, ...]:
        """Return the objects of a kind."""
        if kind == _WORKLOAD:
            return self._workloads
        return tuple(manifest for manifest in self.others if manifest.object.get("kind") == kind)

    @property
    def owners(self) -> list[tuple[str, str, list[tuple[str, str]]]]:
        """Namespace and name of each Workload that has owners, with their kinds and names."""
        return self._engine._core._workload_owners()

    def __len__(self) -> int:
        return len(self.others) + len(self._workloads)

    @overload
    def __getitem__(self, index: int) -> Manifest: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Manifest, ...]: ...
    def __getitem__(self, index: int | slice) -> Manifest | tuple[Manifest, ...]:
        return (*self.others, *self._workloads)[index]

    def __iter__(self) -> Iterator[Manifest]:
        yield from self.others
        yield from self._workloads

    @cached_property
    def _workloads(self) -> tuple[Manifest, ...]:
        return tuple(Manifest(plain, self._source) for plain in self._engine.objects(_WORKLOAD))
