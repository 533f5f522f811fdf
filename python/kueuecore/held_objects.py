"""The objects that an engine holds, as plain data."""

from __future__ import annotations

from kueuecore._arguments import text
from kueuecore._core import Engine as CoreEngine
from kueuecore._json import JsonObject
from kueuecore._kinds import KINDS
from kueuecore.errors import ObjectRef, UnknownObjectError

__all__ = ["HELD_KINDS", "HeldObjects"]

HELD_KINDS = tuple(kind.name for kind in KINDS if kind.is_given_back)
"""The kinds whose objects an engine returns, in an order in which they can be applied one by one."""


class HeldObjects:
    """`objects` and `object` of an `Engine`."""

    _core: CoreEngine

    def objects(self, kind: str) -> tuple[JsonObject, ...]:
        """Return the objects of a kind, by namespace and name; Kueue's kinds in version v1beta2.

        They have only the fields that scheduling reads: an engine drops the others, such as container images.
        Workloads include their status. An engine that you apply them to as trusted returns the same objects.
        LimitRanges, RuntimeClasses, Pods and the kinds that describe devices are kept, but not returned.

        Args:
            kind: One of `HELD_KINDS`.

        Raises:
            ValueError: The engine does not keep enough of this kind.

        Example:
            >>> from kueuecore import Engine
            >>> engine = Engine()
            >>> _ = engine.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: spot}}")
            >>> [flavor["metadata"]["name"] for flavor in engine.objects("ResourceFlavor")]
            ['spot']
        """
        found = self._core.objects(text("kind", kind), None)
        if found is None:
            raise ValueError(f"kind: {kind!r} is not one of {', '.join(HELD_KINDS)}")
        return tuple(found)

    def object(self, kind: str, name: str, *, namespace: str = "") -> JsonObject:
        """Return one object; see `objects`.

        Args:
            kind: One of `HELD_KINDS`.
            name: Its name.
            namespace: Its namespace, if it has one.

        Raises:
            UnknownObjectError: There is no such object.
            ValueError: The engine does not keep enough of this kind.
        """
        only = text("namespace", namespace), text("name", name)
        found = self._core.objects(text("kind", kind), only)
        if found is None:
            raise ValueError(f"kind: {kind!r} is not one of {', '.join(HELD_KINDS)}")
        if not found:
            raise UnknownObjectError(ObjectRef(kind, name, namespace))
        return dict(found[0])
