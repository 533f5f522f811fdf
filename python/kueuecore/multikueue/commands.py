"""What a manager asks whoever embeds it to carry out, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from kueuecore._json import JsonObject, text_at
from kueuecore.decisions import Event

__all__ = [
    "MANAGER",
    "Command",
    "Connect",
    "Create",
    "Delete",
    "ManagerProblem",
    "ManagerTurn",
    "ObjectCommand",
    "ObjectKey",
    "Patch",
    "Read",
]

MANAGER = ""
"""The name of the manager itself among the clusters."""
ObjectKey: TypeAlias = tuple[str, str, str, str]
"""Cluster, kind, namespace and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create an object. If there is one of that name, `refuse` it and hand over what is there.

    Args:
        cluster: The worker; `MANAGER` for the manager itself, where only overflow creates anything.
        manifest: The object.
        number: Number of the command, from 1.
    """

    cluster: str
    manifest: JsonObject = field(repr=False)
    number: int = 0

    @property
    def api_version(self) -> str:
        """Group and version of the object."""
        return text_at(self.manifest, "apiVersion")

    @property
    def kind(self) -> str:
        """Kind of the object."""
        return text_at(self.manifest, "kind")

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return text_at(self.manifest, "metadata", "namespace")

    @property
    def name(self) -> str:
        """Its name."""
        return text_at(self.manifest, "metadata", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete an object, what it owns in the background.

    Args:
        cluster: The worker; `MANAGER` for the manager itself, where only overflow deletes anything.
        api_version: Group and version of the object.
        kind: Its kind.
        namespace: Its namespace.
        name: Its name.
        uid: Its UID, a precondition: another object of that name is not meant.
        resource_version: Its version, another precondition, unless it is empty.
        number: Number of the command, from 1.
    """

    cluster: str
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One merge patch (RFC 7386) of one object.

    Args:
        cluster: Where; `MANAGER` for the manager itself.
        api_version: Group and version of the object.
        kind: Its kind.
        namespace: Its namespace; empty if the kind has none.
        name: Its name.
        subresource: `status`, or empty for the object itself.
        patch: The patch. `metadata.uid`, and mostly `metadata.resourceVersion`, say for which version it was made: an
            API server refuses it with a conflict (409) if somebody else was quicker.
        events: Events on the manager's Workload to emit once it is written.
        number: Number of the command, from 1.
    """

    cluster: str
    api_version: str
    kind: str
    namespace: str
    name: str
    subresource: str
    patch: JsonObject
    events: tuple[Event, ...] = ()
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Get an object as it is now: its watch may be behind what another watch has said.

    Args:
        cluster: The worker.
        api_version: Group and version of the object.
        kind: Its kind.
        namespace: Its namespace.
        name: Its name.
        number: Number of the command, from 1.
    """

    cluster: str
    api_version: str
    kind: str
    namespace: str
    name: str
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    """Connect to a worker: read the credentials, list and watch, and say `connected` once all watches are up.

    Args:
        cluster: The MultiKueueCluster.
        source: Its `spec.clusterSource`: where the credentials are.
        timeout_ns: How long the watches may take to come up.
        number: Number of the command, from 1.
    """

    cluster: str
    source: JsonObject
    timeout_ns: int
    number: int = 0


ObjectCommand: TypeAlias = Create | Delete | Patch | Read
"""What is about one object, and answered by `confirm` or `refuse`."""
Command: TypeAlias = ObjectCommand | Connect
"""Whatever a manager asks for."""


@dataclass(frozen=True, slots=True)
class ManagerProblem:
    """What a manager could not do, and tries again later; Kueue logs it.

    Args:
        about: `namespace/name` of a Workload, or the name of a cluster.
        message: What is wrong.
    """

    about: str
    message: str


@dataclass(frozen=True, slots=True)
class ManagerTurn:
    """What one turn of a manager came to.

    Args:
        commands: What is to be carried out now; in any order, and at once.
        problems: What could not be done.
    """

    commands: tuple[Command, ...]
    problems: tuple[ManagerProblem, ...]
