"""The commands that a manager returns for its caller to carry out, as plain data."""

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
"""The name that stands for the manager itself among the clusters."""
ObjectKey: TypeAlias = tuple[str, str, str, str]
"""Cluster, kind, namespace and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create an object. If one of that name exists, call `refuse` with the existing object.

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
        """Namespace of the object."""
        return text_at(self.manifest, "metadata", "namespace")

    @property
    def name(self) -> str:
        """Name of the object."""
        return text_at(self.manifest, "metadata", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete an object, and in the background what it owns.

    Args:
        cluster: The worker; `MANAGER` for the manager itself, where only overflow deletes anything.
        api_version: Group and version of the object.
        kind: Its kind.
        namespace: Its namespace.
        name: Its name.
        uid: Its UID, a precondition: a new object with the same name is not deleted.
        resource_version: Its version, another precondition, unless empty.
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
    """Apply one merge patch (RFC 7386) to one object.

    Args:
        cluster: The cluster; `MANAGER` for the manager itself.
        api_version: Group and version of the object.
        kind: Its kind.
        namespace: Its namespace; empty if the kind has none.
        name: Its name.
        subresource: `status`, or empty for the object itself.
        patch: The patch. `metadata.uid`, and usually `metadata.resourceVersion`, name the version it was made for: an
            API server refuses it with a conflict (409) if the object has changed since.
        events: Events to emit on the manager's Workload once the patch is written.
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
    """Read the current version of an object: one watch may lag behind what another has delivered.

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
    """Connect to a worker: read the credentials, list and watch, and call `connected` once all watches are up.

    Args:
        cluster: The MultiKueueCluster.
        source: Its `spec.clusterSource`, which says where the credentials are.
        timeout_ns: How long the watches may take to come up.
        number: Number of the command, from 1.
    """

    cluster: str
    source: JsonObject
    timeout_ns: int
    number: int = 0


ObjectCommand: TypeAlias = Create | Delete | Patch | Read
"""A command about one object, answered with `confirm` or `refuse`."""
Command: TypeAlias = ObjectCommand | Connect
"""Any command that a manager returns."""


@dataclass(frozen=True, slots=True)
class ManagerProblem:
    """Something a manager could not do and will retry; Kueue logs it.

    Args:
        about: `namespace/name` of a Workload, or the name of a cluster.
        message: What is wrong.
    """

    about: str
    message: str


@dataclass(frozen=True, slots=True)
class ManagerTurn:
    """The result of one turn of a manager.

    Args:
        commands: What to carry out now, in any order or concurrently.
        problems: What could not be done.
    """

    commands: tuple[Command, ...]
    problems: tuple[ManagerProblem, ...]
