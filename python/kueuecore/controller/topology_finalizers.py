"""Keeps Topologies while a flavor names them, as Kueue's topology controller does (rules/08 §1 rule 6)."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, list_at, text_at
from kueuecore.controller.sent_writes import SentWrites
from kueuecore.controller.side_controllers import SideController
from kueuecore.controller.versions import Key
from kueuecore.jobs.workload_builder import RESOURCE_IN_USE
from kueuecore.writes import Answer, Verb, Write, patch_of

__all__ = ["TopologyFinalizers"]


class TopologyFinalizers(SideController):
    """The Topologies, and the flavors that name them."""

    def __init__(self) -> None:
        self._topologies: dict[Key, JsonObject] = {}
        self._topology_of_flavor: dict[Key, str] = {}
        self._sent = SentWrites()

    def note(self, key: Key, manifest: JsonObject | None, at: int) -> None:
        """Take in the stored version of an object; `None` if it was deleted."""
        if key[0] == "Topology":
            self._topologies.pop(key, None)
            if manifest is not None:
                self._topologies[key] = manifest
            self._sent.forget(key)
        elif key[0] == "ResourceFlavor":
            self._topology_of_flavor.pop(key, None)
            if manifest is not None and (name := text_at(manifest, "spec", "topologyName")):
                self._topology_of_flavor[key] = name

    def take_writes(self, at: int) -> list[Write]:
        """Return the due writes: finalizers to add, and to remove from deleted Topologies that no flavor names."""
        writes: list[Write] = []
        for key, stored, finalizers in self._open():
            if self._sent.may_send(key, stored, at):
                self._sent.send(key, stored, at)
                writes.append(Write(Verb.PATCH, patch_of(stored, {"metadata": {"finalizers": finalizers}})))
        return writes

    def refused(self, write: Write, answer: Answer, *, at: int) -> bool:
        """Retry a refused write after a pause, or as soon as a watch shows another version."""
        ref = write.object
        is_own = ref.kind == "Topology"
        if is_own:
            self._sent.refuse((ref.kind, ref.namespace, ref.name), at)
        return is_own

    def next_wake(self) -> int | None:
        """Return when the next write is due; 0: at once; `None`: none is."""
        return min((self._sent.next_time(key, stored) for key, stored, _ in self._open()), default=None)

    def _open(self) -> list[tuple[Key, JsonObject, list[JsonValue]]]:
        """Return the Topologies whose finalizers have to change, with the new finalizers."""
        found: list[tuple[Key, JsonObject, list[JsonValue]]] = []
        for key, stored in self._topologies.items():
            finalizers: list[JsonValue] = [*list_at(stored, "metadata", "finalizers")]
            if not text_at(stored, "metadata", "deletionTimestamp"):
                if RESOURCE_IN_USE not in finalizers:
                    found.append((key, stored, [*finalizers, RESOURCE_IN_USE]))
            elif RESOURCE_IN_USE in finalizers and key[2] not in self._topology_of_flavor.values():
                found.append((key, stored, [finalizer for finalizer in finalizers if finalizer != RESOURCE_IN_USE]))
        return found
