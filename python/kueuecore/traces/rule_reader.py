"""Reads a file of rules for traces, and reports everything that is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from kueuecore._fields import Fields, shown
from kueuecore._json import JsonValue, text_at
from kueuecore._names import label_key_problems, label_problems, subdomain_problems
from kueuecore._quantities import number
from kueuecore._text import quoted
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import read_manifests
from kueuecore.traces.csv_columns import date_seconds
from kueuecore.traces.queue_names import PLACEHOLDER
from kueuecore.traces.rules import STANDARD_RESOURCES, ColumnSource, GpuFractions, JobRule, TraceRules
from kueuecore.traces.scaling import Scale

__all__ = ["API_VERSION", "KIND", "read_rules"]

API_VERSION = "kueuecore/v1"
KIND = "TraceRules"

_MAX_PRIORITY = 2**31 - 1
_MAX_AMOUNT = 2**62
_MAX_FACTOR = 1000.0
_MAX_SEED = 2**53
_PATTERN = 'write a pattern such as "alice*", or a list of them'


def read_rules(path: str | Path) -> TraceRules:
    """Read rules from a file.

    Args:
        path: The file, one document of kind TraceRules.

    Raises:
        ManifestError: Everything that is wrong with it, with field paths, lines and remedies.

    Example:
        >>> rules = read_rules("examples/traces/rules.yaml")
        >>> rules.default.queue, rules.gpu_fractions.value
        ('{virtualCluster}/jobs', 'up')
    """
    manifests = read_manifests(str(path), strict=True)
    if len(manifests) != 1 or text_at(manifests[0].object, "kind") != KIND:
        remedy = f"begin it with `apiVersion: {API_VERSION}` and `kind: {KIND}`"
        raise ManifestError.of(f"rules for a trace are one document of kind {KIND}", remedy=remedy, file=str(path))
    problems: list[Problem] = []
    top = Fields(manifests[0], manifests[0].object, "", problems)
    if top.has("apiVersion", f"write {API_VERSION}"):
        top.text("apiVersion", one_of=[API_VERSION])
    top.text("kind")
    top.part("metadata")
    rules = TraceRules(
        rules=tuple(_rule(part) for part in top.parts("rules")),
        default=_default(top),
        resources=_resources(top),
        gpu_fractions=GpuFractions(top.text("gpuFractions", GpuFractions.UP, one_of=[*GpuFractions])),
        scale=_scale(top.part("scale")),
        columns=_columns(top.part("columns")),
        begin=_begin(top),
        source=manifests[0].source,
    )
    if not rules.all_rules() and not problems:
        top.complain("default", "there are no rules", "write `default: {queue: namespace/localqueue}`")
    top.end()
    if problems:
        raise ManifestError(problems)
    return rules


def _default(top: Fields) -> JobRule | None:
    if isinstance(top.value("default"), str):
        top.complain("default", "must be a mapping, not a string", "write `default: {queue: namespace/localqueue}`")
        return None
    section = top.part("default")
    return None if section is None else _rule(section, is_default=True)


def _rule(section: Fields, *, is_default: bool = False) -> JobRule:
    when = {} if is_default else _when(section.part("when"))
    queue = section.text("queue")
    if section.has("queue", "write namespace/localqueue"):
        _check_queue(section, queue)
    priority = section.value("priority")
    rule = JobRule(
        queue=queue,
        when=when,
        priority=None
        if priority is None
        else section.whole("priority", 0, least=-_MAX_PRIORITY - 1, most=_MAX_PRIORITY),
        requests=_requests(section.part("requests")),
    )
    section.end()
    return rule


def _when(section: Fields | None) -> dict[str, tuple[str, ...]]:
    """Read patterns by field; numbers become strings, because some traces number their queues."""
    found: dict[str, tuple[str, ...]] = {}
    for name in section.plain if section is not None else ():
        assert section is not None, "only a mapping has names"
        value = section.value(name)
        patterns = [_pattern(row) for row in (value if isinstance(value, list) else [value])]
        if not patterns or None in patterns:
            section.complain(name, f"not a pattern: {shown(value)}", _PATTERN)
        found[name] = tuple(pattern for pattern in patterns if pattern is not None)
    return found


def _pattern(value: JsonValue) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def _check_queue(section: Fields, queue: str) -> None:
    """Check for a namespace and a LocalQueue. Fields in braces are filled in later, as valid names."""
    if not queue:
        return
    parts = queue.split("/")
    if len(parts) != 2:
        section.complain("queue", f"Invalid value: {quoted(queue)}", "write namespace/localqueue")
        return
    if "" in PLACEHOLDER.findall(queue):
        section.complain("queue", "the braces are empty", "name a field of the trace, such as {user}")
    # A part with braces becomes a label as a whole.
    for part, problems_of in zip(parts, (label_problems, subdomain_problems), strict=True):
        for problem in [] if PLACEHOLDER.search(part) else problems_of(part):
            section.complain("queue", f"Invalid value: {quoted(part)}: {problem}", "write namespace/localqueue")


def _requests(section: Fields | None) -> dict[str, int]:
    """Read amounts in the units of requests: thousandths of cpu, whole units of the rest."""
    found: dict[str, int] = {}
    for resource in section.plain if section is not None else ():
        assert section is not None, "only a mapping has names"
        value = section.value(resource)
        amount = number(value)
        scaled = None if amount is None else math.ceil(amount * (1000 if resource == "cpu" else 1))
        if scaled is None or not 0 <= scaled <= _MAX_AMOUNT:
            section.complain(resource, f"not a quantity: {shown(value)}", "write a quantity, such as 500m or 4Gi")
            continue
        for problem in _resource_problems(resource):
            section.complain(resource, problem, "name a resource such as cpu or nvidia.com/gpu")
        found[resource] = scaled
    return found


def _resource_problems(resource: str) -> list[str]:
    return ["Kueue counts the pods itself"] if resource == "pods" else label_key_problems(resource)


def _resources(top: Fields) -> Mapping[str, str | None]:
    section = top.part("resources")
    resources: dict[str, str | None] = dict(STANDARD_RESOURCES)
    for name in section.plain if section is not None else ():
        assert section is not None, "only a mapping has names"
        value = section.value(name)
        if value is None:
            resources[name] = None
            continue
        called = section.text(name)
        for problem in _resource_problems(called) if called else ["must be a name"]:
            section.complain(name, problem, "name a resource such as nvidia.com/gpu, or write null to leave it out")
        resources[name] = called
    names = [resource for resource in resources.values() if resource is not None]
    if section is not None and (repeated := sorted({name for name in names if names.count(name) > 1})):
        section.complain("", f"two resources are named {quoted(repeated[0])}", "give each its own name")
    return resources


def _begin(top: Fields) -> float | None:
    """Read when time starts: a number of seconds, or a date."""
    value = top.value("begin")
    if value is None:
        return None
    seconds = _seconds_of(value) if isinstance(value, str) else top.number("begin")
    if not math.isfinite(seconds):
        top.complain("begin", f"Invalid value: {shown(value)}", "write seconds, or a date: 2026-03-01T08:00:00")
    return seconds


def _seconds_of(date: str) -> float:
    """Return seconds since 1970; NaN if it is no date."""
    try:
        return float(date_seconds([date])[0])
    except (ValueError, OverflowError):
        return math.nan


def _scale(section: Fields | None) -> Scale:
    if section is None:
        return Scale()
    time, runs, sample = (section.number(text, 1.0) for text in ("time", "runs", "sample"))
    for name, value in (("time", time), ("runs", runs)):
        if not 0 <= value <= _MAX_FACTOR:
            section.complain(name, f"Invalid value: {value:g}", f"write a factor from 0 to {_MAX_FACTOR:g}")
    if not 0 < sample <= 1:
        section.complain("sample", f"Invalid value: {sample:g}", "write a share above 0 up to 1, such as 0.1")
    scale = Scale(time=time, runs=runs, sample=sample, seed=section.whole("seed", 0, most=_MAX_SEED))
    section.end()
    return scale


def _columns(section: Fields | None) -> dict[str, ColumnSource]:
    """Read where columns come from: a name, or a name and a factor."""
    found: dict[str, ColumnSource] = {}
    for name in section.plain if section is not None else ():
        assert section is not None, "only a mapping has names"
        value = section.value(name)
        part = section.below(value, name) if isinstance(value, dict) else None
        column = section.text(name) if part is None else part.text("column")
        times = 1.0 if part is None else part.number("times", 1.0)
        if not column and isinstance(value, str | dict | None):
            section.complain(name, "must be a column", "write the name of a column, or {column: cores}")
        if part is not None:
            if not 0 < times <= 2.0**53:
                part.complain("times", f"Invalid value: {times:g}", "write a factor above 0, such as 1000")
            part.end()
        found[name] = ColumnSource(column=column, times=times)
    names = [source.column for source in found.values()]
    if section is not None and (repeated := sorted({name for name in names if name and names.count(name) > 1})):
        section.complain("", f"two columns come from {quoted(repeated[0])}", "give each its own column")
    return found
