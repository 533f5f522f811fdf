"""Translates Kueue's messages about topology placement into plain sentences (rules/08 §3, §10, §11, §13)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kueuecore._json import JsonValue, int_at, list_at, text_at
from kueuecore._text import counted

__all__ = [
    "HOSTNAME",
    "NODE_GATE",
    "NO_PLACE_EVER",
    "PODS",
    "AskedTopology",
    "excluded_by",
    "reasons_of",
    "why_not_placed",
]

NO_PLACE_EVER = "TopologyPlacementFailed"
"""Kueue's reason if the pods do not fit even without other workloads (rules/08 §11.5)."""

HOSTNAME = "kubernetes.io/hostname"
"""The level of single nodes."""

NODE_GATE = "TASNodeFeasibilityForAllLevels"
"""The gate with which nodes are one more level below those of every Topology (rules/08 §1.3)."""

PODS = "pods"
"""The resource of which each pod takes one: how many pods a node may hold."""

_FORM = r'(?:taint "[^"]*"|resource "[^"]*"|nodeSelector|affinity|topologyDomain|schedulerLibraryNoFit): \d+'
_EXCLUDED = rf"(?:\. Total nodes: (?P<total>\d+); excluded: (?P<excluded>{_FORM}(?:, {_FORM})*))?"
_FITS = re.compile(
    r'topology "(?P<topology>[^"]*)" (?:doesn\'t allow to fit any of|allows to fit only (?P<fit>\d+) out of) '
    rf"(?P<need>\d+) (?P<unit>pod|slice)\(s\){_EXCLUDED}"
)
_LAYERS = re.compile(
    r'topology "(?P<topology>[^"]*)" doesn\'t allow to fit'
    rf"(?P<layers>(?:; \d+/\d+ slice\(s\) fit on level [^\s;,.]+(?:\.[^\s;,.]+)*)+){_EXCLUDED}"
)
_LAYER = re.compile(r"; (\d+)/(\d+) slice\(s\) fit on level ([^\s;]+?)(?=;|\. Total|$|, )")
_NO_DOMAINS = re.compile(r"no topology domains at level: (\S+?)(?=[,;]|$)")
_LEVEL = re.compile(r'Flavor "([^"]*)" does not contain the requested level')
_ONLY = re.compile(r'Flavor "([^"]*)" supports only TopologyAwareScheduling')
_NOT = re.compile(r'Flavor "([^"]*)" does not support TopologyAwareScheduling')
_UNKNOWN = re.compile(r'Flavor "([^"]*)" information missing in TAS cache')
_STALE = re.compile(r"the existing topologyAssignment is invalid, as it contains the stale domain (\S+)")
_NO_REPLACEMENT = re.compile(
    r"(?:no replacement for unhealthy node\(s\)|cannot find replacement assignment for unhealthy node): ([^\s;]+)"
)
_SEVERAL = re.compile(r"multiple TAS assigned node failures, including: (.+)")
_OF_POD_SET = re.compile(r"(?:^|; |, )?(?:couldn't|failed to) assign flavors to pod set ([^\s:]+): ")


@dataclass(frozen=True, slots=True)
class AskedTopology:
    """The topology request of a pod set (rules/08 §2).

    Args:
        pod_set: Its name.
        required: The level, a node label, at which all pods must be in one domain; empty if none is required.
        preferred: The level at which they should be in one domain; empty if none is preferred.
        unconstrained: Whether any placement will do.
        slices: Level and size of its slices, the widest first.
    """

    pod_set: str
    required: str = ""
    preferred: str = ""
    unconstrained: bool = False
    slices: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, pod_set: JsonValue) -> AskedTopology:
        """Read it from a pod set of a Workload."""
        request = pod_set.get("topologyRequest") if isinstance(pod_set, dict) else None
        layers = list_at(request, "podsetSliceRequiredTopologyConstraints")
        slices = [(text_at(layer, "topology"), int_at(layer, "size")) for layer in layers]
        if not slices and text_at(request, "podSetSliceRequiredTopology"):
            slices = [(text_at(request, "podSetSliceRequiredTopology"), int_at(request, "podSetSliceSize"))]
        return cls(
            text_at(pod_set, "name") or "main",
            text_at(request, "required"),
            text_at(request, "preferred"),
            isinstance(request, dict) and "unconstrained" in request,
            tuple(slices),
        )

    @property
    def levels(self) -> tuple[str, ...]:
        """All levels that the request names."""
        return tuple(filter(None, (self.required, self.preferred, *(level for level, _ in self.slices))))

    def __str__(self) -> str:
        if self.required:
            asked = f"required {self.required}"
        elif self.preferred:
            asked = f"preferred {self.preferred}"
        else:
            asked = "unconstrained" if self.unconstrained else ""
        slices = [f"slices of {size} in {level}" for level, size in self.slices]
        return ", ".join(filter(None, (asked, *slices))) or "-"


def why_not_placed(
    message: str, asked: AskedTopology, *, levels: Mapping[str, Sequence[str]], looks_at_nodes: bool = False
) -> str:
    """Explain Kueue's message about pods that could not be placed.

    Args:
        message: Kueue's message about the workload, or the part about one pod set.
        asked: What the pod set asks for.
        levels: The levels of each Topology by its name, and by the name of each flavor with it.
        looks_at_nodes: Whether `NODE_GATE` is on.

    Returns:
        A sentence without a full stop; empty if the message is not about topology.
    """
    if found := _FITS.search(message):
        return _too_little(found, asked, levels) + _excluded(found, asked, levels, looks_at_nodes)
    if found := _LAYERS.search(message):
        layers = _LAYER.findall(found["layers"])
        each = ", ".join(f"{fit} of {need} slices on level {level}" for fit, need, level in layers)
        return f"the domain with the most room has room for {each}" + _excluded(found, asked, levels, looks_at_nodes)
    if found := _NO_DOMAINS.search(message):
        return "no ready and schedulable node has the flavor's nodeLabels and a label for every level"
    if found := _LEVEL.search(message):
        known = ", ".join(levels.get(found[1], ())) or "none"
        missing = [level for level in asked.levels if level not in levels.get(found[1], ())]
        return f"flavor {found[1]} has the levels {known}; {_named(missing)} none of them"
    if found := _ONLY.search(message):
        return (
            f"flavor {found[1]} has a topology, so it only takes pods that ask for one, with an annotation or a request"
        )
    if found := _NOT.search(message):
        return f"the pods ask for a topology, but flavor {found[1]} has no topologyName"
    if found := _UNKNOWN.search(message):
        return f"the Topology of flavor {found[1]} does not exist"
    return _about_nodes(message)


def _about_nodes(message: str) -> str:
    if found := _STALE.search(message):
        return f"a failed node can only be replaced while all others are there, but {found[1]} is gone or not ready"
    if found := _NO_REPLACEMENT.search(message):
        return f"no other node has room for the pods that were on {found[1].replace(',', ' and ')}"
    if found := _SEVERAL.search(message):
        return f"Kueue replaces one node of a workload at a time, and these have failed: {found[1]}"
    return ""


def _too_little(found: re.Match[str], asked: AskedTopology, levels: Mapping[str, Sequence[str]]) -> str:
    need, fit = int(found["need"]), int(found["fit"] or 0)
    size = asked.slices[0][1] if found["unit"] == "slice" and asked.slices else 1
    # When nodes are replaced, the message counts the pods to replace, not all pods of the workload.
    what = f"{need} {'pod' if need == 1 else 'pods'}" if size == 1 else f"{need} slices of {size} pods"
    if asked.required:
        most = f": the best has room for {fit}" if fit else "" if need == 1 else ", not even for one of them"
        domain = "node" if asked.required == HOSTNAME else asked.required
        return f"no single {domain} has room for {what}{most}"
    together = "all nodes together have" if _lowest(found, levels) == HOSTNAME else "all domains together have"
    return f"{together} room for {fit or 'none'} of {what}"


def _excluded(
    found: re.Match[str], asked: AskedTopology, levels: Mapping[str, Sequence[str]], looks_at_nodes: bool
) -> str:
    if not found["excluded"]:
        return ""
    noun = "node" if looks_at_nodes or _lowest(found, levels) == HOSTNAME else "domain"
    parts = []
    for form in re.findall(_FORM, found["excluded"]):
        kind, _, n = form.rpartition(": ")
        what, _, name = kind.partition(" ")
        name = name.strip('"')
        have, do, are = ("has", "does", "is") if n == "1" else ("have", "do", "are")
        match what:
            case "resource" if name == PODS:
                parts.append(f"{n} may hold no more pods")
            case "resource":
                parts.append(f"{n} {have} too little {name} for one pod")
            case "taint":
                parts.append(f"{n} {have} the taint {name}, which the pods do not tolerate")
            case "nodeSelector":
                parts.append(f"{n} {do} not match the nodeSelector")
            case "affinity":
                parts.append(f"{n} {do} not match the node affinity")
            case "topologyDomain":
                parts.append(f"{n} {are} outside the {asked.required or 'domain'} of the other pods")
            case _:
                parts.append(f"{n} {are} not ready, or kube-scheduler would refuse the pods")
    return f"; of {counted(int(found['total']), noun)} {', '.join(parts)}"


def _lowest(found: re.Match[str], levels: Mapping[str, Sequence[str]]) -> str:
    known = levels.get(found["topology"], ())
    return known[-1] if known else ""


def _named(missing: Sequence[str]) -> str:
    return f"the pods ask for {' and '.join(missing)}, which is" if missing else "what the pods ask for is"


def excluded_by(message: str) -> Mapping[str, tuple[str, ...]]:
    r"""Why nodes are left out according to a message: `taint`, `resource`, `nodeSelector` and the like, with names.

    Example:
        >>> excluded_by('topology "t" doesn\'t allow to fit any of 1 pod(s). Total nodes: 1; excluded: taint "a=b": 1')
        {'taint': ('a=b',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in (*_FITS.finditer(message), *_LAYERS.finditer(message)):
        for form in re.findall(_FORM, part["excluded"] or ""):
            what, _, name = form.rpartition(": ")[0].partition(" ")
            found[what] = (*found.get(what, ()), *filter(None, [name.strip('"')]))
    return found


def reasons_of(message: str, pod_set: str) -> str:
    """The part of a message that concerns one pod set; the whole message if it has no such parts."""
    parts = list(_OF_POD_SET.finditer(message))
    for part, after in zip(parts, [*parts, None][1:], strict=True):
        if part[1] == pod_set:
            return message[part.end() : len(message) if after is None else after.start()]
    return "" if parts else message
