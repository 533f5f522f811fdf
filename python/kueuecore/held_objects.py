"""The objects that an engine holds, as plain data."""

from __future__ import annotations

from kueuecore._arguments import text
from kueuecore._core import Engine as CoreEngine
from kueuecore._json import JsonObject
from kueuecore._kinds import KINDS
from kueuecore.errors import ObjectRef, UnknownObjectError

__all__ = ["HELD_KINDS", "HeldObjects"]

HELD_KINDS = tuple(kind.name for kind in KINDS if kind.is_given_back)
"""The kinds whose objects an engine gives back, in an order in which they can be applied one after the other."""


class HeldObjects:
    """`objects` and `object` of an `Engine`."""

    _core: CoreEngine

    def objects(self, kind: str) -> tuple[JsonObject, ...]:
        """The objects of a kind, by namespace and name, in the version v1beta2 of Kueue's kinds.

        They have the fields that scheduling reads and no others: what nobody reads, such as images of containers, an
        engine does not keep. Workloads have their status. Another engine to which they are applied as trusted gives
        back the same. LimitRanges, RuntimeClasses, Pods and what describes devices are kept, but not given back.

        Args:
            kind: One of `HELD_KINDS`.

        Raises:
            ValueError: Of another kind not enough is kept.

        Example:
            >>> from kueuecore import Engine
            >>> engine = Engine()
            >>> _ = engine.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: spot}}")
            >>> [flavor["metadata"]["name"] for flavor in engine.objects("ResourceFlavor")]
            ['spot']
        """
        found = self._core.objects(text("kind", kind), None)
        if found is None:
            raise ValueError(f"kind: {kind!r} is none of {', '.join(HELD_KINDS)}")
        return tuple(found)

    def object(self, kind: str, name: str, *, namespace: str = "") -> JsonObject:
        """One object; see `objects`.

        Args:
            kind: One of `HELD_KINDS`.
            name: Its name.
            namespace: Its namespace, if it has one.

        Raises:
            UnknownObjectError: There is none.
            ValueError: Of this kind not enough is kept.
        """
        only = text("namespace", namespace), text("name", name)
        found = self._core.objects(text("kind", kind), only)
        if found is None:
            raise ValueError(f"kind: {kind!r} is none of {', '.join(HELD_KINDS)}")
        if not found:
            raise UnknownObjectError(ObjectRef(kind, name, namespace))
        return dict(found[0])
