"""What pods request, and what LimitRanges and RuntimeClasses change about it (rules/01 §7.3, §7.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from kueuecore.reference import quantity
from kueuecore.reference.settings import Json, Settings

Amounts = dict[str, Fraction]
Problem = tuple[str, list[str], str]
"""Where a problem is, with which resources, and what it is."""


def exact(quantities: Mapping[str, str] | None) -> Amounts:
    """Read a list of quantities."""
    return {name: quantity.parse(written) for name, written in (quantities or {}).items()}


def _first(a: str, b: str, **_: object) -> str:
    return a


def _merged(choose: Callable[..., str], *lists: Mapping[str, str] | None) -> dict[str, str]:
    """Merge lists of quantities; where several have a resource, `choose` picks one."""
    merged: dict[str, str] = {}
    for quantities in lists:
        for name, written in (quantities or {}).items():
            merged[name] = choose(merged.get(name, written), written, key=quantity.parse)
    return merged


def summarize(limit_ranges: Iterable[Json]) -> dict[str, Json]:
    """Merge all LimitRanges of a namespace into one, by type (rules/01 §7.3 1b)."""
    ways: dict[str, Callable[..., str]] = {"max": min, "min": max, "maxLimitRequestRatio": min}
    ways |= {"default": _first, "defaultRequest": _first}
    summary: dict[str, Json] = {}
    for item in (item for limit_range in limit_ranges for item in limit_range["spec"].get("limits") or ()):
        merged = summary.setdefault(item["type"], {})
        for name in [name for name in ways if item.get(name)]:
            merged[name] = _merged(ways[name], merged.get(name), item[name])
    return summary


def constraints(limit_range: Json) -> list[list[Any]]:
    """Return what a LimitRange may reject pods by, item by item (rules/05 §3.1)."""
    kinds = ("type", "max", "min", "maxLimitRequestRatio")
    return [[item.get(kind) or None for kind in kinds] for item in limit_range["spec"].get("limits") or ()]


def has_constraints(limit_range: Json) -> bool:
    """Return whether a LimitRange may reject any pods."""
    return any(any(item[1:]) for item in constraints(limit_range))


def adjusted(
    workload: Json, *, limit_ranges: Iterable[Json], runtime_classes: Mapping[str, Json], settings: Settings
) -> Json:
    """Return a Workload with overhead, limits as missing requests, and LimitRange defaults (rules/01 §7.3 1)."""
    own_first = settings.has("OwnLimitsBeforeDefaults")
    summary = summarize(limit_ranges)
    defaults = summary.get("Container")
    pod_sets = []
    for pod_set in workload["spec"]["podSets"]:
        pod = dict(pod_set["template"]["spec"])
        overhead = (runtime_classes.get(pod.get("runtimeClassName", "")) or {}).get("overhead")
        if overhead and not pod.get("overhead"):
            pod["overhead"] = overhead.get("podFixed") or {}
        for kind in ("initContainers", "containers"):
            if kind in pod:
                pod[kind] = [
                    {**c, "resources": _filled(c.get("resources"), defaults, own_first=own_first)} for c in pod[kind]
                ]
        if pod.get("resources") is not None:
            pod["resources"] = _filled(pod["resources"], summary.get("Pod"), own_first=own_first)
        pod_sets.append({**pod_set, "template": {**pod_set["template"], "spec": pod}})
    return {**workload, "spec": {**workload["spec"], "podSets": pod_sets}}


def _filled(resources: Json | None, defaults: Json | None, *, own_first: bool) -> Json:
    given, defaults = resources or {}, defaults or {}
    limits = _merged(_first, given.get("limits"), defaults.get("default"))
    # Before the change, limits came last, those of LimitRanges among them.
    after = (
        (given.get("limits"), defaults.get("defaultRequest")) if own_first else (defaults.get("defaultRequest"), limits)
    )
    requests = _merged(_first, given.get("requests"), *after)
    return {**given, **({"limits": limits} if limits else {}), **({"requests": requests} if requests else {})}


def _asked(thing: Json) -> Amounts:
    """Return the requests of a container or a pod."""
    return exact((thing.get("resources") or {}).get("requests"))


def _most(a: Amounts, b: Amounts) -> Amounts:
    return a | {name: max(a.get(name, number), number) for name, number in b.items()}


def pod_requests(pod: Json, settings: Settings) -> Amounts:
    """Sum the containers, or take the init container that needs most beside its sidecars (rules/01 §7.3 2)."""
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in pod.get("initContainers") or ():
        needed = quantity.total(sidecars, _asked(container))
        starting = _most(starting, needed)
        if container.get("restartPolicy") == "Always":
            sidecars = needed
    running = _most(quantity.total(*map(_asked, pod.get("containers") or ()), sidecars), starting)
    whole = {n: q for n, q in _asked(pod).items() if n in ("cpu", "memory") or n.startswith("hugepages-")}
    needed = _most(running, whole) if settings.has("ContainersBoundPodLevelRequests") else running | whole
    return quantity.total(needed, exact(pod.get("overhead")))


def _pods(workload: Json) -> Iterator[tuple[str, Json]]:
    for index, pod_set in enumerate(workload["spec"]["podSets"]):
        yield f"spec.podSets[{index}].template.spec", pod_set["template"]["spec"]


def _containers(path: str, pod: Json) -> Iterator[tuple[str, Json]]:
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(kind) or ()):
            yield f"{path}.{kind}[{index}]", container.get("resources") or {}


def _greater(where: str, a: Amounts, b: Amounts, what: str) -> list[Problem]:
    """Return a problem if a exceeds b for a resource that both have (rules/01 §7.6)."""
    names = sorted(n for n in a if n in b and quantity.value(n, a[n]) > quantity.value(n, b[n]))
    return [(where, names, what)] if names else []


def resource_problems(workload: Json) -> list[Problem]:
    """Return requests above limits (rules/01 §7.6)."""
    problems = []
    for path, pod in _pods(workload):
        for where, given in [*_containers(path, pod), (f"{path}.resources", pod.get("resources") or {})]:
            requests, limits = exact(given.get("requests")), exact(given.get("limits"))
            problems += _greater(where, requests, limits, "requests must not exceed its limits")
    return problems


def limit_range_problems(workload: Json, summary: dict[str, Json], settings: Settings) -> list[Problem]:
    """Return violations of LimitRanges (rules/01 §7.6)."""
    pods = _pods(workload) if summary else ()
    return [problem for path, pod in pods for problem in pod_problems(path, pod, summary, settings)]


def pod_problems(path: str, pod: Json, summary: dict[str, Json], settings: Settings) -> list[Problem]:
    """Return violations of LimitRanges in one pod (rules/01 §7.6)."""
    whole = pod_requests(pod, settings)
    asked = [("Pod", path, whole, whole)]
    for where, given in _containers(path, pod):
        most, least = (_merged(way, given.get("requests"), given.get("limits")) for way in (max, min))
        asked.append(("Container", where, exact(most), exact(least)))
    problems = []
    for kind, where, high, low in sorted(asked, key=lambda each: each[0]):
        limits = summary.get(kind) or {}
        problems += _greater(where, high, exact(limits.get("max")), "requests must not be above the limitRange max")
        problems += _greater(where, exact(limits.get("min")), low, "requests must not be below the limitRange min")
    return problems


def problem_text(problems: list[Problem]) -> str:
    """Format problems as Kubernetes prints a list of errors (rules/01)."""
    texts = []
    for where, names, what in problems:
        listed = ",".join(f'"{name}"' for name in names)
        texts.append(f"{where}: Invalid value: [{listed}]: {what}")
    unique = list(dict.fromkeys(texts))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
