"""Reads files of Kueue's performance tests (`generator.yaml`): cohorts, queues, nodes and their work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kueuecore._fields import Fields, shown
from kueuecore._files import contents
from kueuecore._json import JsonObject, object_at, text_at, texts_at
from kueuecore._kinds import KUEUE
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import Manifest, parse_mappings, plain_object
from kueuecore.simulation import Happening, JobPlan, Operation
from kueuecore.simulation.copies import Copies, joined_names, no_copies

__all__ = ["GeneratedRun", "read_generator", "work_class"]

_CLASS = "kueue.x-k8s.io/performance-scheduler-class"
_NODE_GROUP = "tas-node-group"
_FLAVOR = "rf"
_PODS_OF_A_NODE = "110"
_POLICIES = ("Never", "LowerPriority", "LowerOrNewerEqualPriority")
_RECLAIM = ("Never", "LowerPriority", "Any")
_CONSTRAINTS = ("required", "preferred", "balanced")
_MOST = 1_000_000
_MAX_MS = 2**31
_TOO_MANY = f"write counts that make at most {_MOST} of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedRun:
    """The contents of a `generator.yaml`, as `simulate` takes them.

    Args:
        objects: The initial objects: nodes, a Topology, a ResourceFlavor, namespaces, queues.
        copies: The Workloads, in order of arrival.
    """

    objects: tuple[JsonObject, ...]
    copies: Copies

    @property
    def events(self) -> tuple[Happening, ...]:
        """The Workloads as single events."""
        return tuple(map(self._event, range(len(self.copies))))

    def _event(self, row: int) -> Happening:
        copies = self.copies
        template = copies.templates[int(copies.template[row])].object
        plain = {} if template is None else plain_object(template)
        workload: JsonObject = {**plain, "metadata": {**object_at(plain, "metadata"), "name": copies.name(row)}}
        plan = JobPlan(run_seconds=float(copies.run_seconds[row]))
        return Happening(at=float(copies.at[row]), op=Operation.CREATE, object=workload, plan=plan)


@dataclass(frozen=True, slots=True)
class _Work:
    """Workloads of one class: their common fields, and when they arrive."""

    class_name: str
    run_seconds: float
    spec: JsonObject


@dataclass(frozen=True, slots=True)
class _WorkSet:
    count: int
    interval_ms: int
    work: tuple[_Work, ...]


@dataclass(frozen=True, slots=True)
class _QueueSet:
    class_name: str
    count: int
    spec: JsonObject
    sets: tuple[_WorkSet, ...]


@dataclass(frozen=True, slots=True)
class _CohortSet:
    class_name: str
    count: int
    queue_sets: tuple[_QueueSet, ...]


def read_generator(path: str | Path) -> GeneratedRun:
    """Read a file in the format of Kueue's test/performance/scheduler/configs/*/generator.yaml.

    Names, labels and times are those of Kueue's generator. It creates Workloads of the same time in any order; here
    they are ordered by their number in their set, then by set, cohort and queue.

    Args:
        path: The file.

    Raises:
        ManifestError: Everything that is wrong with it, with field paths, lines and remedies.

    Example:
        >>> text = '''
        ... cohorts:
        ... - className: cohort
        ...   count: 1
        ...   queuesSets:
        ...   - className: cq
        ...     count: 2
        ...     nominalQuota: 20
        ...     workloadsSets:
        ...     - count: 3
        ...       creationIntervalMs: 100
        ...       workloads: [{className: small, runtimeMs: 200, priority: 50, request: 1}]
        ... '''
        >>> import tempfile
        >>> from kueuecore import simulate
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "generator.yaml")
        ...     n_written = file.write_text(text)
        ...     given = read_generator(file)
        >>> run = simulate(given.objects, given.events, now="2026-01-01T00:00:00Z", cycle_seconds=0.001)
        >>> len(given.events), (run.end - run.start) / 1e9
        (6, 0.5)
    """
    document = _document(path)
    top = Fields(document, document.object, "", [])
    flavor = _flavor(top)
    objects = [*_nodes(top), flavor]
    top.has("cohorts", "write at least one cohort")
    cohorts = tuple(_cohort_set(part, text_at(flavor, "metadata", "name")) for part in top.parts("cohorts"))
    top.end()
    n_workloads = sum(
        cohort.count * queues.count * sum(set_.count * len(set_.work) for set_ in queues.sets)
        for cohort in cohorts
        for queues in cohort.queue_sets
    )
    if n_workloads > _MOST:
        top.complain("cohorts", f"{n_workloads} Workloads are too many", _TOO_MANY)
    n_queues = sum(cohort.count * queues.count for cohort in cohorts for queues in cohort.queue_sets)
    if n_queues > _MOST:
        top.complain("cohorts", f"{n_queues} ClusterQueues are too many", _TOO_MANY)
    if top.problems:
        raise ManifestError(top.problems)
    queues_of = [(queue, other) for _, queue, _, other in _queues(cohorts)]
    for _, queue, cohort, other in _queues(cohorts):
        objects += _queue(queue, cohort, other)
    return GeneratedRun(objects=tuple(objects), copies=_copies(queues_of))


def _document(path: str | Path) -> Manifest:
    """Read the only mapping in a file."""
    problems: list[Problem] = []
    files = contents(path, problems, recursive=False)
    found = [mapping for file in files for mapping in parse_mappings(file.data, file=file.name, strict=True)]
    if len(found) != 1 and not problems:
        problems.append(Problem(f"{len(found)} documents", file=str(path), remedy="give one document"))
    if problems:
        raise ManifestError(problems)
    return found[0]


def work_class(workload: JsonObject) -> str:
    """Return the class of a Workload from such a file."""
    return texts_at(workload, "metadata", "labels").get(_CLASS, "")


def _queues(cohorts: Sequence[_CohortSet]) -> Iterator[tuple[int, str, str, _QueueSet]]:
    """Yield number and name of each ClusterQueue, its cohort and its set."""
    place = 0
    for cohort_set in cohorts:
        for number in range(cohort_set.count):
            cohort = f"{cohort_set.class_name}-{number}"
            for index, queue_set in enumerate(cohort_set.queue_sets):
                for queue in range(queue_set.count):
                    yield place, f"{queue_set.class_name}-{index}-{queue}-{cohort}", cohort, queue_set
                    place += 1


def _queue(name: str, cohort: str, queues: _QueueSet) -> Iterator[JsonObject]:
    spec: JsonObject = {**queues.spec, "cohortName": cohort}
    labels: JsonObject = {_CLASS: queues.class_name}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name, "labels": labels}, "spec": spec}
    place: JsonObject = {"name": name, "namespace": name}
    yield {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": place, "spec": {"clusterQueue": name}}


def _copies(queues: Sequence[tuple[str, _QueueSet]]) -> Copies:
    """Return the Workloads of ClusterQueues, in order of arrival."""
    templates: list[Happening] = []
    names: list[str] = []
    parts: list[npt.NDArray[np.int64]] = []
    # Workloads of queues in the same set have the same names.
    names_of: dict[tuple[int, int], list[str]] = {}
    for place, (queue, queue_set) in enumerate(queues):
        for index, work_set in enumerate(queue_set.sets):
            n_classes, n = len(work_set.work), work_set.count * len(work_set.work)
            if not n:
                continue
            # They arrive one after the other, regardless of class.
            step = np.arange(n)
            rows = np.empty((6, n), np.int64)
            rows[0], rows[1], rows[2], rows[3] = (step + 1) * work_set.interval_ms, step, index, place
            rows[4] = len(templates) + step % n_classes
            rows[5] = np.tile([round(work.run_seconds * 1000) for work in work_set.work], work_set.count)
            parts.append(rows)
            templates += (_template(queue, work) for work in work_set.work)
            key = (id(queue_set), index)
            if key not in names_of:
                numbered = product(range(work_set.count), enumerate(work_set.work))
                names_of[key] = [
                    f"{manifest.class_name}-{index}-{number}-{kind}" for number, (kind, manifest) in numbered
                ]
            names += names_of[key]
    if not parts:
        return no_copies()
    at_ms, steps, indices, places, template, run_ms = np.concatenate(parts, axis=1)
    order = np.lexsort((places, indices, steps, at_ms))
    text, ends = joined_names([names[row] for row in order.tolist()])
    return Copies(
        templates=templates,
        template=template[order].astype(np.uint32),
        names=text,
        ends=ends,
        at=at_ms[order] / 1000,
        run_seconds=run_ms[order] / 1000,
    )


def _template(queue: str, work: _Work) -> Happening:
    metadata: JsonObject = {"name": work.class_name, "namespace": queue, "labels": {_CLASS: work.class_name}}
    spec: JsonObject = {**work.spec, "queueName": queue}
    workload: JsonObject = {"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": spec}
    return Happening(at=0, op=Operation.CREATE, object=workload)


def _nodes(top: Fields) -> Iterator[JsonObject]:
    """Return the Topology and its nodes."""
    section = top.part("topology")
    if section is None:
        return
    section.has("name", "write the name of the Topology")
    name, levels = section.text("name"), list[tuple[str, int, str]]()
    cpu, memory = "96", "256Gi"
    for part in section.parts("levels"):
        for required in ("name", "nodeLabel"):
            part.has(required, "write it for each level")
        levels.append((part.text("name"), part.whole("count", 0, most=_MOST), part.text("nodeLabel")))
        capacity = part.part("capacity")
        if capacity is not None:
            # As in Kueue, the last level's counts.
            cpu, memory = _quantity(capacity, "cpu") or "96", _quantity(capacity, "memory") or "256Gi"
            capacity.end()
        else:
            cpu, memory = "96", "256Gi"
        part.end()
    section.end()
    if len(levels) < 2:
        section.complain("levels", f"{len(levels)} levels", "write at least two")
    n_nodes = prod(count for _, count, _ in levels)
    if n_nodes > _MOST:
        section.complain("levels", f"{n_nodes} nodes are too many", _TOO_MANY)
    if top.problems:
        return
    labels = [label for _, _, label in levels]
    yield {
        "apiVersion": KUEUE,
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": [{"nodeLabel": label} for label in labels]},
    }
    ready: JsonObject = {"type": "Ready", "status": "True", "lastTransitionTime": None}
    for numbers in product(*(range(count) for _, count, _ in levels)):
        domains = [f"{level}-{number}" for (level, _, _), number in zip(levels, numbers, strict=True)]
        short = (f"{level[0]}{number}" for (level, _, _), number in zip(levels, numbers, strict=True))
        own: JsonObject = {_NODE_GROUP: "tas", **dict(zip(labels, domains, strict=True))}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "-".join(["node", *short]), "labels": own},
            "spec": {},
            "status": {
                "allocatable": {"cpu": cpu, "memory": memory, "pods": _PODS_OF_A_NODE},
                "conditions": [ready],
            },
        }


def _flavor(top: Fields) -> JsonObject:
    section = top.part("resourceFlavor")
    name, spec = _FLAVOR, JsonObject()
    if section is not None:
        section.has("name", "write the name of the ResourceFlavor")
        name, topology, label = section.text("name"), section.text("topologyName"), section.text("nodeLabel")
        if topology:
            section.has("nodeLabel", "write the label of its nodes")
            spec = {"topologyName": topology, "nodeLabels": {label: "tas"}}
        section.end()
    return {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def _cohort_set(section: Fields, flavor: str) -> _CohortSet:
    section.has("className", "write the name of the cohorts")
    name, count = section.text("className"), section.whole("count", 0, most=_MOST)
    queues = tuple(_queue_set(part, flavor) for part in section.parts("queuesSets"))
    section.end()
    return _CohortSet(name, count, queues)


def _queue_set(section: Fields, flavor: str) -> _QueueSet:
    for required in ("className", "nominalQuota"):
        section.has(required, "write it for each set of queues")
    name, count = section.text("className"), section.whole("count", 0, most=_MOST)
    quota: JsonObject = {"name": "cpu"}
    preemption: JsonObject = {}
    for field in ("nominalQuota", "borrowingLimit"):
        amount = _quantity(section, field)
        if amount:
            quota[field] = amount
    for field, policies in (("reclaimWithinCohort", _RECLAIM), ("withinClusterQueue", _POLICIES)):
        policy = section.text(field, one_of=policies)
        if policy:
            preemption[field] = policy
    sets = tuple(_work_set(part) for part in section.parts("workloadsSets"))
    section.end()
    spec: JsonObject = {
        "namespaceSelector": {},
        "preemption": preemption,
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": flavor, "resources": [quota]}]}],
    }
    return _QueueSet(name, count, spec, sets)


def _work_set(section: Fields) -> _WorkSet:
    count = section.whole("count", 0, most=_MOST)
    interval = section.whole("creationIntervalMs", 0, most=_MAX_MS)
    work = tuple(_work(part) for part in section.parts("workloads"))
    section.end()
    return _WorkSet(count, interval, work)


def _work(section: Fields) -> _Work:
    for required in ("className", "request"):
        section.has(required, "write it for each class of workloads")
    name, runtime = section.text("className"), section.whole("runtimeMs", 0, most=_MAX_MS)
    priority = section.whole("priority", 0, least=-(2**31), most=2**31 - 1)
    container: JsonObject = {"name": "c", "resources": {"requests": {"cpu": _quantity(section, "request")}}}
    level, constraint = section.text("tasLevel"), section.text("tasConstraint", one_of=_CONSTRAINTS)
    # 0 means absent.
    count, size = section.whole("podCount", 0, most=2**31 - 1), section.whole("sliceSize", 0, most=2**31 - 1)
    pods: JsonObject = {
        "name": "main",
        "count": count or 1,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    for field in ("tasConstraint", "podCount", "sliceSize") if not level else ():
        # Kueue's generator silently ignores these.
        if section.value(field):
            section.complain(field, "only applies with tasLevel", "add tasLevel, or remove it")
    match constraint:
        case "required" | "preferred":
            pods["topologyRequest"] = {constraint: level}
        case "balanced":
            slices: JsonObject = {"podSetSliceRequiredTopology": level}
            pods["topologyRequest"] = {**slices, "podSetSliceSize": size} if size else slices
    section.end()
    return _Work(name, runtime / 1000, {"priority": priority, "podSets": [pods]})


def _quantity(section: Fields, name: str) -> str:
    """Read a quantity, which may be a number; a bad string is reported later, with the objects."""
    value = section.value(name)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        section.complain(name, f"not a quantity: {shown(value)}", "write a quantity, such as 8, 500m or 36Gi")
        return ""
    return str(value)
