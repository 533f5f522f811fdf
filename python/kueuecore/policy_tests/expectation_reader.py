"""Reads the entries of `expect`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kueuecore._fields import Fields, shown
from kueuecore._json import JsonValue
from kueuecore._quantities import number
from kueuecore.policy_tests.checks import Admitted, Check, Finished, Flavors, Pending, Preempted, Waits
from kueuecore.policy_tests.expectations import (
    Amounts,
    Expectation,
    QueueExpectation,
    SettlesExpectation,
    WorkloadExpectation,
)

__all__ = ["read_expectations"]

_SUBJECTS = ("workload", "clusterQueue", "cohort", "settles")
_OF_WORKLOADS = ("admitted", "pending", "finished", "preempted", "waits")
_OF_QUEUES = ("usage", "borrowed")
_FLAVORS = "write `RESOURCE: FLAVOR`, or `POD_SET: {RESOURCE: FLAVOR}`"
_AMOUNTS = "write `FLAVOR: {RESOURCE: QUANTITY}`"


def read_expectations(case: Fields) -> Iterator[Expectation]:
    """Read the expectations of a case, one per field, so that each has its own line."""
    for section in case.parts("expect"):
        at = section.seconds("at")
        named = [subject for subject in _SUBJECTS if section.plain.get(subject) is not None]
        if len(named) != 1:
            section.complain(
                "", f"it has {len(named)} subjects", "write exactly one of workload, clusterQueue, cohort and settles"
            )
            continue
        (subject,) = named
        if subject == "settles":
            if not section.truth("settles", default=True):
                section.complain("settles", "Invalid value: false", "write `settles: true`, or leave it out")
            yield SettlesExpectation(at=at, place=_place(section, "settles"))
            section.end()
            continue
        name = section.text(subject)
        if subject == "workload":
            yield from _of_workloads(section, name, at)
        else:
            kind = "ClusterQueue" if subject == "clusterQueue" else "Cohort"
            yield from _of_queue(section, kind, name, at)
        section.end()


def _of_workloads(section: Fields, name: str, at: float | None) -> Iterator[Expectation]:
    count = section.whole("count", 0) if section.value("count") is not None else None
    checks = {
        workload: _READERS[workload](section) for workload in _OF_WORKLOADS if section.value(workload) is not None
    }
    if not checks:
        section.complain("", "nothing is expected", f"write one of {', '.join(_OF_WORKLOADS)}")
    elif count is not None:
        every = tuple(checks.values())
        yield WorkloadExpectation(name=name, checks=every, count=count, at=at, place=_place(section, ""))
    else:
        for field, check in checks.items():
            yield WorkloadExpectation(name=name, checks=(check,), at=at, place=_place(section, field))


def _of_queue(section: Fields, kind: str, name: str, at: float | None) -> Iterator[Expectation]:
    found = {queue: _amounts(section, queue) for queue in _OF_QUEUES if section.value(queue) is not None}
    if not found:
        section.complain("", "nothing is expected", f"write one of {', '.join(_OF_QUEUES)}")
    for field, amounts in found.items():
        usage, borrowed = (amounts, {}) if field == "usage" else ({}, amounts)
        place = _place(section, field)
        yield QueueExpectation(kind=kind, name=name, usage=usage, borrowed=borrowed, at=at, place=place)


def _place(section: Fields, field: str) -> str:
    path = ".".join(filter(None, (section.path, field)))
    return f"{section.document.source.file}:{section.document.source.line_of(path)}"


def _admitted(section: Fields) -> Check:
    if isinstance(section.value("admitted"), bool):
        return Admitted(is_expected=section.truth("admitted", default=True))
    part = section.part("admitted")
    if part is None:
        return Admitted()
    nodes = _names(part, "nodes")
    check = Admitted(
        cluster_queue=part.text("clusterQueue"), flavors=_flavors(part), nodes=nodes, domains=_domains(part)
    )
    part.end()
    return check


def _pending(section: Fields) -> Check:
    if section.value("pending") is True:
        return Pending()
    if section.value("pending") is False:
        section.complain("pending", "Invalid value: false", "write `admitted: true`, or `finished: true`")
        return Pending()
    part = section.part("pending")
    if part is None:
        return Pending()
    check = Pending(message=part.text("message"), reason=part.text("reason"))
    part.end()
    return check


def _finished(section: Fields) -> Check:
    return Finished(is_expected=section.truth("finished", default=True))


def _preempted(section: Fields) -> Check:
    if isinstance(section.value("preempted"), bool):
        return Preempted(is_expected=section.truth("preempted", default=True))
    part = section.part("preempted")
    if part is None:
        return Preempted()
    check = Preempted(by=part.text("by"), reason=part.text("reason", one_of=_REASONS))
    part.end()
    return check


def _waits(section: Fields) -> Check:
    part = section.part("waits")
    if part is None:
        return Waits()
    check = Waits(below_seconds=part.seconds("below"), at_least_seconds=part.seconds("atLeast"))
    if check == Waits():
        part.complain("", "nothing is expected", "write `below: 5m` or `atLeast: 1m`")
    part.end()
    return check


# rules/04 §1, and migrations of variants.
_REASONS = (
    "InClusterQueue",
    "InCohortReclamation",
    "InCohortReclaimWhileBorrowing",
    "InCohortFairSharing",
    "FlavorMigration",
)
_READERS: Mapping[str, Callable[[Fields], Check]] = {
    "admitted": _admitted,
    "pending": _pending,
    "finished": _finished,
    "preempted": _preempted,
    "waits": _waits,
}


def _flavors(part: Fields) -> Flavors:
    section, found = part.part("flavors"), dict[str, str | Mapping[str, str]]()
    for name, value in section.plain.items() if section is not None else ():
        if isinstance(value, str):
            found[name] = value
        elif isinstance(value, dict) and all(isinstance(row, str) for row in value.values()):
            found[name] = {resource: str(flavor) for resource, flavor in value.items()}
        elif section is not None:
            section.complain(name, "not a flavor", _FLAVORS)
    return found


def _names(part: Fields, name: str) -> tuple[str, ...] | None:
    if part.value(name) is None:
        return None
    found = part.entries(name)
    for index, entry in enumerate(found):
        if not isinstance(entry, str):
            part.complain(f"{name}[{index}]", f"must be a string, not {shown(entry)}", "put it in quotes")
    return tuple(entry for entry in found if isinstance(entry, str))


def _domains(part: Fields) -> Mapping[str, int | tuple[str, ...]]:
    section, found = part.part("domains"), dict[str, int | tuple[str, ...]]()
    for level, value in section.plain.items() if section is not None else ():
        if isinstance(value, list) and all(isinstance(row, str) for row in value):
            found[level] = tuple(map(str, value))
        elif _is_count(value):
            found[level] = int(str(value))
        elif section is not None:
            section.complain(level, "neither a list of domains nor a count", "write a list of names, or their number")
    return found


def _is_count(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _amounts(section: Fields, name: str) -> Amounts:
    part, found = section.part(name), dict[str, dict[str, str]]()
    for flavor, resources in part.plain.items() if part is not None else ():
        if part is None or not isinstance(resources, dict):
            section.complain(f"{name}.{flavor}", "not amounts", _AMOUNTS)
            continue
        for resource, amount in resources.items():
            if number(amount) is None:
                section.complain(f"{name}.{flavor}.{resource}", f"not a quantity: {shown(amount)}", _AMOUNTS)
            else:
                found.setdefault(flavor, {})[resource] = str(amount)
    return found
