"""Walks through objects twice: first to collect names by category, then to replace them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore.dumps.new_names import new_names, new_resources
from kueuecore.jobs import INTEGRATIONS
from kueuecore.times import format_time, nanoseconds

__all__ = ["Names", "Rule", "Walk", "each", "fields", "keep", "mapping", "name", "put", "resources", "time"]

HOSTNAME = "kubernetes.io/hostname"
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
# Domains of Kubernetes and its projects, which do not identify anyone.
_KNOWN_DOMAINS = ("kubernetes.io", "k8s.io")
_TRUTHS = ("", "true", "false", "True", "False")
# The prefix of new names, by category.
_PREFIXES = {
    "check": "check-",
    "claim": "claim-",
    "class": "class-",
    "cluster": "cluster-",
    "clusterQueue": "cq-",
    "cohort": "cohort-",
    "condition": "example.com/condition-",
    "controller": "example.com/controller-",
    "device": "device-",
    "deviceClass": "device-class-",
    "flavor": "flavor-",
    "gate": "example.com/gate-",
    "group": "group-",
    "label": "example.com/label-",
    "limitRange": "limits-",
    "localQueue": "lq-",
    "namespace": "ns-",
    "node": "node-",
    "owner": "owner-",
    "ownerGroup": "group-",
    "ownerKind": "Owner",
    "pod": "pod-",
    "podSet": "ps-",
    "priorityClass": "priority-",
    "runtimeClass": "runtime-",
    "topology": "topology-",
    "value": "value-",
    "workload": "wl-",
}
# Standard names of Kueue and Kubernetes, which do not identify anyone.
_KEPT = {
    "podSet": ("main",),
    "priorityClass": ("system-cluster-critical", "system-node-critical"),
    "localQueue": ("default",),
}
# The conditions that Kueue and the kubelet write.
_KNOWN_CONDITIONS = frozenset(
    (
        "Active",
        "Admitted",
        "BlockedOnPreemptionGates",
        "DeactivationTarget",
        "DiskPressure",
        "Evicted",
        "Finished",
        "MemoryPressure",
        "NetworkUnavailable",
        "PIDPressure",
        "PodsReady",
        "Preempted",
        "QuotaReserved",
        "Ready",
        "Requeued",
        "WaitingForReplacementPods",
    )
)
# Labels whose values are names of other objects.
_NAMED_BY = {
    HOSTNAME: "node",
    _NAMESPACE_NAME: "namespace",
    "kueue.x-k8s.io/queue-name": "localQueue",
    "kueue.x-k8s.io/priority-class": "class",
    "kueue.x-k8s.io/job-uid": "uid",
    "kueue.x-k8s.io/workload": "workload",
    "kueue.x-k8s.io/podset": "podSet",
    "kueue.x-k8s.io/pod-group-name": "group",
}


@dataclass(frozen=True, slots=True)
class Names:
    """The mapping of old to new names, by category.

    Args:
        by_category: New names by old ones, by category: `flavor`, `namespace` and so on.
    """

    by_category: Mapping[str, Mapping[str, str]]

    def new(self, category: str, old: str) -> str:
        """The new name; the old one if it has none."""
        return self.by_category.get(category, {}).get(old, old)

    def new_key(self, category: str, key: str) -> str:
        """The new form of `namespace/name`."""
        namespace, slash, name = key.partition("/")
        return f"{self.new('namespace', namespace)}/{self.new(category, name)}" if slash else key


@dataclass(slots=True)
class Walk:
    """A walk through objects: collects names, or replaces them if new ones are given.

    Args:
        names: The new names; None to collect names.
        shift_ns: By how much to shift times.
    """

    names: Names | None = None
    shift_ns: int = 0
    found: dict[str, set[str]] = field(default_factory=dict)
    # Labels that something compares as numbers.
    numeric: set[str] = field(default_factory=set)

    def name(self, category: str, old: str) -> str:
        """Replace or collect a name."""
        if not old or old in _KEPT.get(category, ()):
            return old
        if self.names is None:
            self.found.setdefault(category, set()).add(old)
            return old
        return self.names.new(category, old)

    def key(self, category: str, old: str) -> str:
        """Replace or collect `namespace/name`, or a name without a namespace."""
        namespace, slash, name = old.rpartition("/")
        return f"{self.name('namespace', namespace)}{slash}{self.name(category, name)}"

    def label(self, key: str) -> str:
        """Replace or collect the key of a label or taint; those of Kubernetes stay."""
        domain = key.partition("/")[0] if "/" in key else ""
        return key if _is_known_domain(domain) else self.name("label", key)

    def label_value(self, key: str, value: str) -> str:
        """Replace or collect the value of a label or taint; booleans stay, and values that are compared as numbers."""
        if value in _TRUTHS or key in self.numeric:
            return value
        return self.name(_NAMED_BY.get(key, "value"), value)

    def owner_type(self, api_version: str, kind: str) -> tuple[str, str]:
        """Replace or collect the type of an owner, unless it is one that Kubernetes or Kueue knows."""
        group, slash, version = api_version.rpartition("/")
        is_known = group in ("", "apps", "batch") or (group, kind) in INTEGRATIONS or _is_known_domain(group)
        if is_known:
            return api_version, kind
        return f"{self.name('ownerGroup', group)}{slash}{version}", self.name("ownerKind", kind)

    def condition(self, kind: str, reason: str) -> tuple[str, str]:
        """Replace or collect the type of a condition, unless it is one that Kueue or Kubernetes writes; its reason."""
        if kind in _KNOWN_CONDITIONS:
            return kind, reason
        return self.name("condition", kind), "Other"

    def is_asked_for(self, key: str) -> bool:
        """Whether anything selects nodes or namespaces by this label."""
        return key in self.found.get("asked", ())

    def asks_for(self, key: str) -> str:
        """Note that something selects by a label; returns its new key."""
        self.found.setdefault("asked", set()).add(key)
        return self.label(key)

    def taken(self, *, seed: int | None, kept: tuple[str, ...]) -> Names:
        """Create new names for all that were collected.

        Args:
            seed: As for `new_names`.
            kept: Names to keep.
        """
        given = {category: sorted(row - set(kept)) for category, row in self.found.items() if category != "asked"}
        names = {
            category: new_names(_PREFIXES[category], item, seed=seed)
            for category, item in sorted(given.items())
            if category not in ("resource", "uid")
        }
        uids = new_names("", given.get("uid", ()), seed=seed)
        names["uid"] = {old: f"00000000-0000-4000-8000-{number:>012}" for old, number in uids.items()}
        names["resource"] = new_resources(self.found.get("resource", ()), kept, seed=seed)
        return Names({category: item for category, item in sorted(names.items()) if item})


def _is_known_domain(domain: str) -> bool:
    return any(domain == other or domain.endswith(f".{other}") for other in _KNOWN_DOMAINS)


Rule: TypeAlias = Callable[[Walk, JsonValue], JsonValue]
"""Returns the replacement for a value; None to remove it."""


def keep(_: Walk, value: JsonValue) -> JsonValue:
    """Keep the value: a quantity, a number, a keyword of Kueue."""
    return value


def put(value: JsonValue) -> Rule:
    """Replace any value by this one."""
    return lambda _, __: value


def time(walk: Walk, value: JsonValue) -> JsonValue:
    """Shift a time."""
    if not isinstance(value, str) or not walk.shift_ns:
        return value
    try:
        return format_time(nanoseconds(value) + walk.shift_ns)
    except ValueError:
        return value


def name(category: str) -> Rule:
    """Rename a name of this category."""
    return lambda walk, value: walk.name(category, value) if isinstance(value, str) else None


def each(rule: Rule) -> Rule:
    """Apply a rule to each element of a list."""
    return lambda walk, value: [rule(walk, row) for row in value] if isinstance(value, list) else None


def mapping(key: Callable[[Walk, str], str], value: Callable[[Walk, str, JsonValue], JsonValue]) -> Rule:
    """Apply functions to the keys and values of a mapping with user-chosen keys."""
    return lambda walk, given: (
        {key(walk, other): value(walk, other, inner) for other, inner in given.items()}
        if isinstance(given, dict)
        else None
    )


def fields(rules: Mapping[str, Rule]) -> Rule:
    """Apply rules to the fields of a mapping, and drop all other fields."""

    def rule(walk: Walk, value: JsonValue) -> JsonValue:
        if not isinstance(value, dict):
            return None
        found: JsonObject = {}
        for field_name, inner in rules.items():
            if field_name in value and (new := inner(walk, value[field_name])) is not None:
                found[field_name] = new
        return found

    return rule


resources = mapping(lambda walk, entry: walk.name("resource", entry), lambda _, __, amount: amount)
"""Quantities by resource."""


def numeric_key(requirement: JsonValue) -> str:
    """The label that a requirement compares as a number; empty if there is none."""
    return text_at(requirement, "key") if text_at(requirement, "operator") in ("Gt", "Lt") else ""
