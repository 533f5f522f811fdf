"""Finds objects that Kueue's webhooks would have refused: without webhooks, an API server takes them (rules/01 §11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kueuecore._json import JsonObject, int_at, list_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.configuration import Configuration
from kueuecore.controller import Controller
from kueuecore.controller.object_store import Follower
from kueuecore.controller.versions import Key
from kueuecore.errors import ManifestError
from kueuecore.jobs import JobEvent
from kueuecore.webhooks import admit

__all__ = ["Objection", "WebhookObjections"]

# The kinds whose validating webhooks see more than the schema does, which the server checks itself.
_KINDS = frozenset({"ClusterQueue", "Cohort", "ResourceFlavor", "Workload"})
_FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class Objection:
    """What a webhook has against an object that is in use.

    Args:
        object: The object.
        message: The fields and what is wrong with them, in the webhook's words.
    """

    object: JsonObject
    message: str

    @property
    def event(self) -> JobEvent:
        """A warning for the object. Kueue has none, as its webhooks refuse it, and no condition that would say it."""
        message = f"Kueue's webhooks would refuse it, and it is used all the same: {self.message}"
        return JobEvent(self.object, "Warning", "ValidationFailed", message)


class WebhookObjections:
    """Looks at each new version of an object, once; a change of its status or metadata makes none.

    Workloads of jobs are left out: they are made by the rules that a webhook would check.

    Args:
        loop: Sees the objects.
        configuration: Kueue's Configuration.
    """

    def __init__(self, loop: Controller, configuration: Configuration | None) -> None:
        self._configuration = configuration
        # Objects to look at, with the version before; None if they are new.
        self._open: dict[Key, tuple[JsonObject | None, JsonObject]] = {}
        kinds: Mapping[str, tuple[str, str]] = {kind: place for kind, place in loop.kinds.items() if kind in _KINDS}
        follower = Follower(kinds, lambda _: None, self._note, lambda _kind, _at: None)
        loop._objects.store.follow(follower, loop.engine.now)

    def _note(self, key: Key, before: JsonObject | None, after: JsonObject | None, _at: int) -> None:
        if key[0] not in _KINDS:
            return
        if after is None:
            self._open.pop(key, None)
            return
        is_of_job = key[0] == "Workload" and bool(list_at(after, "metadata", "ownerReferences"))
        if is_of_job or (before is not None and _version(before) == _version(after)):
            return
        first, _ = self._open.get(key, (before, after))
        self._open[key] = first, after

    def take(self) -> list[Objection]:
        """Return the objections to what has come or changed since the last call."""
        found = [self._objection(*versions) for versions in self._open.values()]
        self._open.clear()
        return [objection for objection in found if objection is not None]

    def _objection(self, before: JsonObject | None, after: JsonObject) -> Objection | None:
        is_other = before is not None and text_at(before, "metadata", "uid") != text_at(after, "metadata", "uid")
        try:
            admit(after, old=None if is_other else before, configuration=self._configuration)
        except RefusedError as refused:
            if refused.code == _FORBIDDEN:
                return Objection(after, str(refused).partition(" denied the request: ")[2])
        except (ManifestError, ValueError):
            # What cannot be read is said when it is taken in.
            return None
        return None


def _version(manifest: JsonObject) -> tuple[str, int]:
    """Return what changes when an object is replaced, or its spec changes."""
    return text_at(manifest, "metadata", "uid"), int_at(manifest, "metadata", "generation")
