"""Builds names and owners of Workloads (rules/10 §3.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from kueuecore._arguments import flag, text
from kueuecore._json import JsonObject, list_at, object_at, text_at

__all__ = ["NO_UID", "is_variant", "owner_reference", "uid_of", "variant_name", "workload_name", "workload_names"]

NO_UID = "00000000-0000-0000-0000-000000000000"
"""Stands for the owner's UID in a Workload if the job has none, as a job in a file before a server stores it."""

_HASH_LENGTH = 5


def workload_name(
    owner_name: str, *, kind: str, group: str, uid: str = "", extra: str = "", short: bool = False
) -> str:
    """Return the name of the Workload of an object (rules/10 §3.1).

    Args:
        owner_name: Name of the object.
        kind: Its kind.
        group: Its API group; empty for the core group.
        uid: Its UID.
        extra: What distinguishes the Workloads of one object, such as its generation.
        short: At most 63 bytes instead of 253 (gate ShortWorkloadNames).

    Example:
        >>> workload_name("sample-job", kind="Job", group="batch")
        'job-sample-job-4b8c4'
    """
    kind, group, extra = text("kind", kind), text("group", group), text("extra", extra)
    owner_name, uid, short = text("owner_name", owner_name), text("uid", uid), flag("short", short)
    hashed = [kind, group, owner_name, uid, *([extra] if extra else [])]
    return _hashed(f"{kind.lower()}-{owner_name}", "\n".join(hashed), short=short)


def workload_names(owner_names: Iterable[str], *, kind: str, group: str, short: bool) -> list[str]:
    """Return the names of the Workloads of many objects without UIDs."""
    hashed, prefix = f"{kind}\n{group}\n", f"{kind.lower()}-"
    return [_hashed(f"{prefix}{name}", f"{hashed}{name}\n", short=short) for name in owner_names]


def variant_name(parent_name: str, *, kind: str, group: str, uid: str, flavor: str, short: bool = False) -> str:
    """Return the name of the variant of a Workload for one flavor (rules/09 §4.2).

    Args:
        parent_name: Name of the parent; its last part, a hash, is left out.
        kind: Kind of the parent: `Workload`.
        group: API group of the parent.
        uid: UID of the parent.
        flavor: The flavor.
        short: At most 63 bytes instead of 253 (gate ShortWorkloadNames).

    Example:
        >>> variant_name("job-a-8077b", kind="Workload", group="kueue.x-k8s.io", uid="1", flavor="spot")
        'job-a-variant-spot-5fc5a'
    """
    # Kueue fails for a name without a hyphen; here the whole name is used.
    base = parent_name.rpartition("-")[0] if "-" in parent_name else parent_name
    return _hashed(f"{base}-variant-{flavor}", "\n".join([kind, group, parent_name, uid, flavor]), short=short)


def _hashed(prefix: str, text: str, *, short: bool) -> str:
    """Return a prefix, cut if it is too long, and a hash of a text."""
    digest = hashlib.sha1(text.encode(errors="replace"), usedforsecurity=False).hexdigest()
    longest = (63 if short else 253) - 1 - _HASH_LENGTH
    if len(prefix) > longest or not prefix.isascii():
        prefix = prefix.encode(errors="replace")[:longest].decode(errors="ignore")
    return f"{prefix}-{digest[:_HASH_LENGTH]}"


def owner_reference(job: JsonObject, *, controller: bool) -> JsonObject:
    """Return a reference to an object as the owner of another one."""
    reference: JsonObject = {
        "apiVersion": text_at(job, "apiVersion"),
        "kind": text_at(job, "kind"),
        "name": text_at(job, "metadata", "name"),
        "uid": uid_of(job),
    }
    return {**reference, "controller": True, "blockOwnerDeletion": True} if controller else reference


def uid_of(job: JsonObject) -> str:
    """Return the UID by which a Workload names its owner; no server takes an owner without one."""
    return text_at(job, "metadata", "uid") or NO_UID


def is_variant(workload: JsonObject) -> bool:
    """Return whether concurrent admission has made a Workload for another one: it belongs to no job (rules/09 §4)."""
    owners = (
        reference
        for reference in list_at(workload, "metadata", "ownerReferences")
        if object_at(reference).get("controller") is True
    )
    owner = next(owners, None)
    return text_at(owner, "kind") == "Workload" and text_at(owner, "apiVersion").startswith("kueue.x-k8s.io/")
