"""What pods ask for, and what LimitRanges and RuntimeClasses make of it (rules/01 §7.3, §7.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from kueuecore.reference import quantity
from kueuecore.reference.settings import Json

__all__ = ["adjusted", "limit_range_problems", "pod_requests", "problem_text", "resource_problems", "summarize"]

Amounts = dict[str, Fraction]
_ABOVE = "requests must not be above the limitRange max"
_BELOW = "requests must not be below the limitRange min"
_OVER_LIMIT = "requests must not exceed its limits"


def _exact(quantities: Mapping[str, str] | None) -> Amounts:
    return {name: quantity.parse(written) for name, written in (quantities or {}).items()}


def _merged(
    a: Mapping[str, str] | None, b: Mapping[str, str] | None, choose: Callable[[Fraction, Fraction], Fraction]
) -> dict[str, str]:
    """Two lists of quantities; where both have one, that which `choose` picks, the first if they are equal."""
    merged = dict(a or {})
    for name, written in (b or {}).items():
        if name not in merged or choose(quantity.parse(merged[name]), quantity.parse(written)) != quantity.parse(
            merged[name]
        ):
            merged[name] = written
    return merged


def _first(a: Fraction, b: Fraction) -> Fraction:
    return a


def summarize(limit_ranges: Iterable[Json]) -> dict[str, Json]:
    """All LimitRanges of a namespace as one, by type (rules/01 §7.3 1b)."""
    ways: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
        "max": min,
        "min": max,
        "default": _first,
        "defaultRequest": _first,
        "maxLimitRequestRatio": min,
    }
    summary: dict[str, Json] = {}
    for limit_range in limit_ranges:
        for item in limit_range["spec"].get("limits") or ():
            merged = summary.setdefault(item["type"], {})
            for name, choose in ways.items():
                if item.get(name):
                    merged[name] = _merged(merged.get(name), item[name], choose)
    return summary


def adjusted(workload: Json, *, limit_ranges: Iterable[Json], runtime_classes: Mapping[str, Json]) -> Json:
    """A Workload with overhead, defaults of LimitRanges, and limits as missing requests (rules/01 §7.3 1)."""
    summary = summarize(limit_ranges)
    pod_sets = []
    for pod_set in workload["spec"].get("podSets") or ():
        template = pod_set.get("template") or {}
        pod = dict(template.get("spec") or {})
        runtime = runtime_classes.get(pod.get("runtimeClassName", ""))
        if runtime is not None and not pod.get("overhead") and runtime.get("overhead"):
            pod["overhead"] = runtime["overhead"].get("podFixed") or {}
        for name, kind in (("initContainers", "Container"), ("containers", "Container")):
            if name in pod:
                pod[name] = [
                    {**container, "resources": _filled(container.get("resources"), summary.get(kind))}
                    for container in pod[name]
                ]
        if pod.get("resources") is not None:
            pod["resources"] = _filled(pod["resources"], summary.get("Pod"))
        pod_sets.append({**pod_set, "template": {**template, "spec": pod}})
    return {**workload, "spec": {**workload["spec"], "podSets": pod_sets}}


def _filled(resources: Json | None, defaults: Json | None) -> Json:
    given = resources or {}
    limits = _merged(given.get("limits"), (defaults or {}).get("default"), _first)
    requests = _merged(given.get("requests"), (defaults or {}).get("defaultRequest"), _first)
    filled = {"limits": limits, "requests": _merged(requests, limits, _first)}
    return {**given, **{name: amounts for name, amounts in filled.items() if amounts}}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction(0)) + amount


def _raise(total: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        total[name] = max(total.get(name, amount), amount)


def pod_requests(pod: Json) -> Amounts:
    """Containers together, or the init container that needs most beside its sidecars (rules/01 §7.3 2)."""
    running: Amounts = {}
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in pod.get("containers") or ():
        _add(running, _exact((container.get("resources") or {}).get("requests")))
    for container in pod.get("initContainers") or ():
        needed = _exact((container.get("resources") or {}).get("requests"))
        if container.get("restartPolicy") == "Always":
            _add(running, needed)
            _add(sidecars, needed)
            _raise(starting, sidecars)
        else:
            _add(needed, sidecars)
            _raise(starting, needed)
    _raise(running, starting)
    for name, amount in _exact((pod.get("resources") or {}).get("requests")).items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            running[name] = amount
    _add(running, _exact(pod.get("overhead")))
    return running


def _greater(a: Amounts, b: Amounts) -> list[str]:
    """Names of which a has more than b, of those that both have (rules/01 §7.6)."""
    return sorted(n for n in a if n in b and quantity.value(n, a[n]) > quantity.value(n, b[n]))


def _problem(field: str, names: list[str], detail: str) -> list[Json]:
    return [{"type": "FieldValueInvalid", "field": field, "badValue": names, "detail": detail}] if names else []


def _pods(workload: Json) -> Iterable[tuple[str, Json]]:
    for index, pod_set in enumerate(workload["spec"].get("podSets") or ()):
        yield f"spec.podSets[{index}].template.spec", (pod_set.get("template") or {}).get("spec") or {}


def resource_problems(workload: Json) -> list[Json]:
    """Requests above limits (rules/01 §7.6)."""
    problems = []
    for path, pod in _pods(workload):
        places = [
            (f"{path}.{kind}[{index}]", container.get("resources") or {})
            for kind in ("initContainers", "containers")
            for index, container in enumerate(pod.get(kind) or ())
        ]
        for place, resources in [*places, (f"{path}.resources", pod.get("resources") or {})]:
            over = _greater(_exact(resources.get("requests")), _exact(resources.get("limits")))
            problems += _problem(place, over, _OVER_LIMIT)
    return problems


def limit_range_problems(workload: Json, summary: dict[str, Json]) -> list[Json]:
    """Violations of LimitRanges (rules/01 §7.6)."""
    return [problem for path, pod in _pods(workload) for problem in pod_problems(pod, path, summary)]


def pod_problems(pod: Json, path: str, summary: dict[str, Json]) -> list[Json]:
    """Violations of LimitRanges in one pod (rules/01 §7.6)."""
    problems = []
    if "Container" in summary:
        least, most = (_exact(summary["Container"].get(end)) for end in ("min", "max"))
        for kind in ("initContainers", "containers"):
            for index, container in enumerate(pod.get(kind) or ()):
                resources = container.get("resources") or {}
                lists = resources.get("requests"), resources.get("limits")
                place = f"{path}.{kind}[{index}]"
                problems += _problem(place, _greater(_exact(_merged(*lists, max)), most), _ABOVE)
                problems += _problem(place, _greater(least, _exact(_merged(*lists, min))), _BELOW)
    if "Pod" in summary:
        total = pod_requests(pod)
        problems += _problem(path, _greater(total, _exact(summary["Pod"].get("max"))), _ABOVE)
        problems += _problem(path, _greater(_exact(summary["Pod"].get("min")), total), _BELOW)
    return problems


def problem_text(problems: list[Json]) -> str:
    """As Kubernetes prints a list of errors (rules/01)."""
    texts = []
    for problem in problems:
        names = ", ".join(f'"{name}"' for name in problem["badValue"]).replace(", ", ",")
        texts.append(f"{problem['field']}: Invalid value: [{names}]: {problem['detail']}")
    unique = list(dict.fromkeys(texts))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
