"""Random moves in a world: objects are created, changed and deleted, jobs end, cycles run."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.testing.chance import Chance, SeededChance
from kueuecore.testing.drawn_worlds import (
    CLASSES,
    NAMESPACE,
    Limits,
    Stock,
    admission_checks,
    cluster_queues,
    cohorts,
    contents,
    in_a_cycle,
    local_queues,
    manifest,
    namespaces,
    priority_classes,
    resource_flavors,
    stocks,
    workloads,
)
from kueuecore.testing.history import START, History, Move, MoveKind, key_of
from kueuecore.times import format_time

__all__ = ["history", "move", "random_history", "rival"]

CYCLE = Move(kind=MoveKind.CYCLE)
# New workloads usually have higher priority, or nothing would be preempted.
_LATE_PRIORITIES = (2, 3, 1, 2, 3, 4, 0)
# Twenty shares: cycles and new workloads make up most of a history.
_KINDS = (
    *[MoveKind.APPLY] * 9,
    *[MoveKind.CYCLE] * 4,
    MoveKind.LINGER,
    MoveKind.FINISH,
    MoveKind.FINISH,
    MoveKind.EVICT,
    MoveKind.DELETE,
    MoveKind.FORK,
    MoveKind.WAIT,
)


def random_history(seed: int, limits: Limits | None = None, *, max_moves: int = 14, forks: bool = True) -> History:
    """Return the world of a seed, with its moves.

    Much faster than the strategy `histories`, but failures are not shrunk: see `smallest`.

    Args:
        seed: The same seed gives the same history.
        limits: How large the world may become, and what may be in it.
        max_moves: The maximum number of moves, not counting the first cycles.
        forks: Whether the engine may be forked.

    Example:
        >>> random_history(1) == random_history(1)
        True
    """
    return history(SeededChance(seed), limits or Limits(), max_moves=max_moves, forks=forks)


def history(chance: Chance, limits: Limits, *, max_moves: int, forks: bool) -> History:
    """Draw a world with its moves; see `random_history`."""
    stock = stocks(chance, limits)
    objects, _, configuration = contents(chance, stock)
    happened = [CYCLE] * chance.integer(1, 3)
    known = [thing for thing in objects if thing["kind"] == "Workload"]
    # First workloads that compete for the room of others, then anything.
    n_rivals = min(chance.one(4, 3, 5, 2), max_moves)
    for number in range(chance.integer(min(n_rivals + 2, max_moves), max_moves)):
        if number < n_rivals and known:
            happens = Move(kind=MoveKind.APPLY, object=rival(chance, stock, tuple(known), number))
        else:
            happens = move(chance, stock, tuple(known), number=number, forks=forks)
        if happens.object is not None and happens.object["kind"] == "Workload" and "status" not in happens.object:
            known = [thing for thing in known if key_of(thing) != key_of(happens.object)] + [happens.object]
        happened.append(happens)
        # A change takes effect in the cycle after it.
        if happens.kind not in (MoveKind.CYCLE, MoveKind.LINGER) and chance.boolean():
            happened.append(CYCLE)
    if chance.rarely(12) and stock.cohorts:
        at = chance.integer(1, len(happened))
        happened[at:at] = _a_broken_cycle(chance, stock)
    if chance.rarely(3 if stock.is_usage_based else 30):
        at = chance.integer(1, len(happened))
        happened[at:at] = _a_moved_local_queue(chance, stock)
    batches = chance.rarely(4)
    return History(objects, (*happened, CYCLE, CYCLE), configuration, batches_retries=batches)


def _a_broken_cycle(chance: Chance, stock: Stock) -> list[Move]:
    """Draw a Cohort that may close a cycle, ClusterQueues that change below it, and what may break it again."""
    closing = in_a_cycle(chance, stock, manifest("Cohort", chance.one(*stock.cohorts), {}))
    changed = [cluster_queues(chance, stock, chance.one(*stock.queues)) for _ in range(chance.one(1, 2, 0))]
    moves = [Move(kind=MoveKind.APPLY, object=number) for number in (closing, *changed)]
    if chance.boolean():
        moves.append(CYCLE)
    if chance.boolean():
        moves.append(Move(kind=MoveKind.DELETE, object_kind="Cohort", key=key_of(closing)))
    else:
        moves.append(Move(kind=MoveKind.APPLY, object=manifest("Cohort", key_of(closing), {})))
    if chance.boolean():
        # Only this lets a ClusterQueue that failed take effect.
        again = changed[0] if changed else cluster_queues(chance, stock, chance.one(*stock.queues))
        moves.append(Move(kind=MoveKind.APPLY, object=again))
    return [*moves, CYCLE]


def _a_moved_local_queue(chance: Chance, stock: Stock) -> list[Move]:
    """Draw a LocalQueue that is deleted and created anew, perhaps in another ClusterQueue."""
    name = chance.one(*stock.queues, *stock.others)
    moves = [Move(kind=MoveKind.DELETE, object_kind="LocalQueue", key=f"{NAMESPACE}/{name}")]
    if chance.boolean():
        moves.append(CYCLE)
    anew = local_queues(chance, stock, name, target=chance.one(*stock.queues))
    return [*moves, Move(kind=MoveKind.APPLY, object=anew), CYCLE]


def move(
    chance: Chance,
    stock: Stock,
    known: tuple[JsonObject, ...],
    *,
    number: int,
    kind: MoveKind | None = None,
    forks: bool = True,
) -> Move:
    """Draw one move.

    Args:
        chance: Makes the choices.
        stock: What the objects of the world have in common.
        known: The workloads created so far.
        number: Number of the move, from which names and times of new workloads follow.
        kind: Kind of the move; `None`: any.
        forks: Whether the engine may be forked.
    """
    if kind is None:
        kind = chance.one(*_KINDS)
    if kind is MoveKind.FORK and not forks:
        kind = MoveKind.CYCLE
    if kind in (MoveKind.CYCLE, MoveKind.LINGER, MoveKind.FORK):
        return Move(kind=kind)
    if kind is MoveKind.WAIT:
        return Move(kind=kind, seconds=chance.one(1, 60, 3600))
    if kind is MoveKind.APPLY:
        return Move(kind=kind, object=_applied(chance, stock, known, number))
    if kind is MoveKind.DELETE and chance.one(False, False, False, False, True):
        return _a_deletion(chance, stock)
    if not known:
        return CYCLE
    key = key_of(chance.one(*known))
    if kind is MoveKind.DELETE:
        return Move(kind=kind, object_kind="Workload", key=key)
    if kind is MoveKind.EVICT:
        return Move(kind=kind, key=key, reason=chance.one("Preempted", "Preempted", "NodeFailures"))
    return Move(kind=kind, key=key)


def _a_deletion(chance: Chance, stock: Stock) -> Move:
    """Draw the deletion of an object other than a workload."""
    names = {
        "LocalQueue": stock.queues,
        "ClusterQueue": stock.queues,
        "Cohort": stock.cohorts,
        "ResourceFlavor": stock.flavors,
        "AdmissionCheck": stock.checks,
        "WorkloadPriorityClass": CLASSES,
    }
    kind = chance.one(*(kind for kind, found in names.items() if found))
    name = chance.one(*names[kind])
    return Move(kind=MoveKind.DELETE, object_kind=kind, key=f"{NAMESPACE}/{name}" if kind == "LocalQueue" else name)


def _applied(chance: Chance, stock: Stock, known: tuple[JsonObject, ...], number: int) -> JsonObject:
    """Draw a new workload, or a new version of an existing object."""
    if known and stock.checks and chance.boolean():
        return _answered(chance, stock, chance.one(*known))
    what = chance.one(*range(12))
    if what == 11 and chance.boolean():
        return _of_infrastructure(chance, stock)
    # Where sums saturate, what a slice leaves behind depends on the order of events, which Kueue leaves open.
    if what == 10 and known and stock.limits.slices and not stock.edges and chance.boolean():
        return _larger_slice(chance, chance.one(*known), number)
    if what == 9:
        return cluster_queues(chance, stock, chance.one(*stock.queues))
    if what == 8 and stock.cohorts and (found := cohorts(chance, stock)):
        cohort = chance.one(*found)
        return in_a_cycle(chance, stock, cohort) if chance.rarely(8) else cohort
    if what == 7 and chance.boolean():
        return local_queues(chance, stock, chance.one(*stock.queues))
    if what in (6, 7) and known:
        return _changed(chance, stock, chance.one(*known))
    is_rival: bool = chance.boolean()
    if known and is_rival:
        return rival(chance, stock, known, number)
    # Some are older than others that wait: creation time differs from arrival.
    created = chance.one(number, number, 0, 1)
    return workloads(chance, stock, f"n{number}", uid=f"uid-n{number:02}", created=created, priorities=_LATE_PRIORITIES)


def _of_infrastructure(chance: Chance, stock: Stock) -> JsonObject:
    """Draw a new version of a flavor, a class, a check or the namespace."""
    kind: str = chance.one("flavor", "namespace", "class", "class", *["check"] * bool(stock.checks))
    if kind == "class":
        return priority_classes(chance, chance.one(*CLASSES))
    if kind == "flavor":
        return resource_flavors(chance, chance.one(*stock.flavors))
    return admission_checks(chance, chance.one(*stock.checks)) if kind == "check" else namespaces(chance)


def _answered(chance: Chance, stock: Stock, workload: JsonObject) -> JsonObject:
    """Return a workload for which a check answers; its spec stays the same."""
    check: JsonObject = {
        "name": chance.one(*stock.checks),
        "state": chance.one("Ready", "Ready", "Ready", "Retry", "Pending", "Rejected"),
        "message": "",
    }
    if check["state"] == "Retry" and chance.boolean():
        check["requeueAfterSeconds"] = chance.one(1, 60)
    return {**workload, "status": {"admissionChecks": [check]}}


def _larger_slice(chance: Chance, workload: JsonObject, number: int) -> JsonObject:
    """Return a workload of another size that replaces this one (rules/09 §2)."""
    spec = object_at(workload, "spec")
    changed: list[JsonValue] = []
    for pod_set in list_at(spec, "podSets"):
        plain = {name: value for name, value in object_at(pod_set).items() if name != "minCount"}
        changed.append({**plain, "count": chance.integer(1, 5)})
    replaces: JsonObject = {"kueue.x-k8s.io/workload-slice-replacement-for": key_of(workload)}
    created = format_time(START + number * 1_000_000_000)
    return manifest(
        "Workload",
        f"n{number}",
        {**spec, "podSets": changed},
        namespace=NAMESPACE,
        uid=f"uid-n{number:02}",
        creationTimestamp=created,
        annotations=replaces,
    )


def rival(chance: Chance, stock: Stock, known: tuple[JsonObject, ...], number: int) -> JsonObject:
    """Return a new workload that asks for as much as another: it competes for its place, if that has one."""
    asked = object_at(chance.one(*known), "spec")
    spec: JsonObject = {
        "queueName": chance.one(*[text_at(asked, "queueName")] * 2, *stock.others, *stock.queues[::-1]),
        "priority": chance.one(*_LATE_PRIORITIES),
        "podSets": asked["podSets"],
    }
    created = format_time(START + chance.one(number, 0) * 1_000_000_000)
    return manifest(
        "Workload", f"n{number}", spec, namespace=NAMESPACE, uid=f"uid-n{number:02}", creationTimestamp=created
    )


def _changed(chance: Chance, stock: Stock, workload: JsonObject) -> JsonObject:
    """Return a new version of a workload; the status is left to the engine, except for pods that are ready or done."""
    spec = object_at(workload, "spec")
    changed: JsonObject = {name: value for name, value in workload.items() if name != "status"}
    what: str = chance.one("priority", "reclaimable", "queue", "pods", *["active"] * stock.limits.deactivation)
    match what:
        case "priority":
            changed["spec"] = {**spec, "priority": chance.one(2, 0, -1, 3)}
        case "active":
            changed["spec"] = {**spec, "active": not spec.get("active", True)}
        case "queue":
            # Refused while the workload holds quota.
            changed["spec"] = {**spec, "queueName": chance.one("q1", "q2")}
        case "pods":
            status, reason = chance.one(("True", "Started"), ("False", "WaitForRecovery"), ("True", "Recovered"))
            changed["status"] = {
                "conditions": [{"type": "PodsReady", "status": status, "reason": reason, "message": ""}]
            }
        case _:
            pod_set = chance.one(*spec["podSets"] if isinstance(spec["podSets"], list) else [])
            count = object_at(pod_set)["count"]
            done = chance.integer(0, count if isinstance(count, int) else 0)
            changed["status"] = {"reclaimablePods": [{"name": text_at(pod_set, "name"), "count": done}]}
    return changed
