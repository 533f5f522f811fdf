"""A base for classes about one namespaced object."""

from __future__ import annotations


class Keyed:
    """Something with the namespace and name of a workload."""

    __slots__ = ()
    namespace: str
    name: str

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"
