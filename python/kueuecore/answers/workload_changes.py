"""Tries changes of the workload itself: fewer pods, smaller requests, a higher priority."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.answers.amounts import quantity_of, units_of
from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.dials import Dial, Failure, change_of, least_changes
from kueuecore.answers.trials import Step, Trials
from kueuecore.answers.workload_edits import edit_of
from kueuecore.scenarios.edits import Edit
from kueuecore.states import QuotaRow

__all__ = ["pod_changes", "priority_changes", "request_changes"]

_KUEUE_GROUP = "kueue.x-k8s.io"
_MAX_PRIORITY = 2**31 - 1


def pod_changes(trials: Trials, workload: JsonObject) -> Iterator[Change | Failure]:
    """The most pods of each pod set that would get quota, and the highest `minCount` with which some would."""
    pod_sets = [object_at(entry) for entry in list_at(workload, "spec", "podSets")]
    edit = partial(edit_of, workload)
    fewer: list[Dial] = []
    for index, pod_set in enumerate(pod_sets):
        count, minimum = int_at(pod_set, "count"), int_at(pod_set, "minCount")
        path = f"spec.podSets[{index}]"
        name = text_at(pod_set, "name")
        if count > 1:

            def fewer_pods(turn: int, path: str = path, count: int = count, least: int = minimum) -> tuple[Edit, ...]:
                edits = (edit(f"{path}.count", count - turn),)
                return (*edits, edit(f"{path}.minCount", count - turn)) if least > count - turn else edits

            fewer.append(_counting(ChangeKind.PODS, f"pods of pod set {name}", count, fewer_pods))
    yield from least_changes(trials, fewer)
    if not (trials.engine.configuration.is_enabled("PartialAdmission") and _may_have_min_count(workload)):
        return
    for index, pod_set in enumerate(pod_sets):
        others = (other for other in pod_sets if other is not pod_set)
        highest = int_at(pod_set, "minCount") or int_at(pod_set, "count")
        # Only one pod set may have a minCount (rules/03 §9).
        if highest <= 1 or any(int_at(other, "minCount") for other in others):
            continue
        path = f"spec.podSets[{index}].minCount"

        def lower(turn: int, path: str = path, highest: int = highest) -> tuple[Edit, ...]:
            return (edit(path, highest - turn),)

        what = f"minCount of pod set {text_at(pod_set, 'name')}"
        dial = _counting(ChangeKind.MIN_COUNT, what, highest, lower)
        yield from least_changes(trials, [dial])


def _may_have_min_count(workload: JsonObject) -> bool:
    """Whether its job can ask for partial admission: of Kueue's kinds only Job can (rules/10 §5.1)."""
    owners = list_at(workload, "metadata", "ownerReferences")
    is_of_job = any((text_at(owner, "apiVersion"), text_at(owner, "kind")) == ("batch/v1", "Job") for owner in owners)
    return (
        not owners or is_of_job or any(int_at(pod_set, "minCount") for pod_set in list_at(workload, "spec", "podSets"))
    )


def request_changes(trials: Trials, workload: JsonObject, queue: str) -> Iterator[Change | Failure]:
    """The largest request of each container, per resource, with which the workload gets quota."""
    free = [row for row in trials.engine.quota() if (row.kind, row.name) == ("ClusterQueue", queue)]
    dials: list[Dial] = []
    for index, pod_set in enumerate(list_at(workload, "spec", "podSets")):
        name, count = text_at(pod_set, "name"), max(1, int_at(pod_set, "count"))
        for field in ("initContainers", "containers"):
            for place, container in enumerate(list_at(pod_set, "template", "spec", field)):
                path = f"spec.podSets[{index}].template.spec.{field}[{place}].resources.requests"
                of = f"container {text_at(container, 'name')} of pod set {name}"
                requests = object_at(container, "resources", "requests")
                found = (
                    _request_dial(workload, path, of, resource, quantity, _shares(free, resource, count))
                    for resource, quantity in requests.items()
                )
                dials += [dial for dial in found if dial is not None]
    yield from least_changes(trials, dials)


def priority_changes(trials: Trials, workload: JsonObject) -> Iterator[Change | Failure]:
    """The lowest priority, and the lowest WorkloadPriorityClass, with which the workload gets quota."""
    now = int_at(workload, "spec", "priority")
    most = _MAX_PRIORITY - now

    def raised(turn: int) -> tuple[Edit, ...]:
        return (edit_of(workload, "spec.priority", now + turn),)

    if most > 0:
        dial = Dial(
            kind=ChangeKind.PRIORITY,
            what="priority",
            most=most,
            edits=raised,
            shown=lambda turn: str(now + turn),
            weight=max(1, abs(now)),
            likely=sorted(
                {workload.priority + 1 - now for workload in trials.engine.workloads() if workload.priority >= now}
            ),
        )
        yield from least_changes(trials, [dial])
    lower: tuple[Step, ...] = ()
    classes = [(int_at(class_, "value"), text_at(class_, "metadata", "name")) for class_ in _classes(trials)]
    for value, name in sorted(pair for pair in classes if pair[0] > now):
        ref: JsonObject = {"group": _KUEUE_GROUP, "kind": "WorkloadPriorityClass", "name": name}
        edits = edit_of(workload, "spec.priorityClassRef", ref), edit_of(workload, "spec.priority", value)
        step = Step(edits)
        if trials.admits(step):
            before, after = text_at(workload, "spec", "priorityClassRef", "name") or "-", f"{name} ({value})"
            kind, what = ChangeKind.PRIORITY_CLASS, "WorkloadPriorityClass"
            change = change_of(trials, kind, what, before=before, after=after, step=step, less=lower)
            if change is not None:
                yield change
            return
        lower = (step,)


def _classes(trials: Trials) -> tuple[JsonObject, ...]:
    return trials.engine.objects("WorkloadPriorityClass")


def _counting(kind: ChangeKind, what: str, count: int, edits: Callable[[int], tuple[Edit, ...]]) -> Dial:
    return Dial(kind=kind, what=what, most=count - 1, edits=edits, shown=lambda turn: str(count - turn), weight=count)


def _shares(free: Sequence[QuotaRow], resource: str, count: int) -> set[int]:
    """What each of so many pods may request at most in each flavor, if nothing else of them counts."""
    return {max(0, units_of(resource, row.available)) // count for row in free if row.resource == resource}


def _request_dial(
    workload: JsonObject, path: str, of: str, resource: str, quantity: JsonValue, shares: Collection[int]
) -> Dial | None:
    units = units_of(resource, quantity)
    if units <= 1:
        return None

    def smaller(turn: int) -> tuple[Edit, ...]:
        return (edit_of(workload, f'{path}["{resource}"]', quantity_of(resource, units - turn)),)

    return Dial(
        kind=ChangeKind.REQUEST,
        what=f"request of {of} for {resource}",
        most=units - 1,
        edits=smaller,
        shown=lambda turn: quantity_of(resource, units - turn),
        weight=units,
        likely=sorted(turn for share in shares for turn in (units - share - 1, units - share)),
    )
