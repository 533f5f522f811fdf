"""Answers to recorded cases about single parts of Kueue. Holds no rule: it asks the modules and names what they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from kueuecore.conformance import shapes
from kueuecore.conformance.decisions_by_reference import assign, find_victims
from kueuecore.conformance.reading import (
    Amounts,
    by_flavor,
    configuration_of,
    from_flavors,
    settings_of,
    texts,
    workload_of,
    world_of,
)
from kueuecore.conformance.runs_by_reference import cycle, cycles, trace
from kueuecore.conformance.topology_by_reference import topology, use_told
from kueuecore.conformance.worlds import with_checks
from kueuecore.reference import conditions, pods, quantity, reconcile, share, times, totals
from kueuecore.reference.amount import UNLIMITED
from kueuecore.reference.cache import Cache
from kueuecore.reference.forest import Node
from kueuecore.reference.objects import ClusterQueue, complete, key
from kueuecore.reference.quota import Usage
from kueuecore.reference.settings import Json
from kueuecore.reference.totals import Info
from kueuecore.reference.world import World

__all__ = ["answer"]


def answer(case: Mapping[str, Any]) -> Json:
    """What the rules say to a recorded case, in the shape of its `expect`.

    Raises:
        NotImplementedError: Cases of this kind have no answer here.
    """
    kinds: dict[str, Callable[[Json], Json]] = {
        "adjust_resources": _adjust_resources,
        "admission_checks": _admission_checks,
        "amount_from_quantity": _amount_from_quantity,
        "assign": assign,
        "cache_ops": _cache_ops,
        "cycle": cycle,
        "cycles": cycles,
        "limit_range_summary": lambda case: {"summary": pods.summarize(case.get("objects", ()))},
        "limit_range_validation": _limit_range_validation,
        "preempt": find_victims,
        "queue_order_timestamp": _queue_order_timestamp,
        "quota": _quota,
        "readiness": _readiness,
        "resource_quantity": _resource_quantity,
        "resource_value": _resource_value,
        "scheduling_hash": _scheduling_hash,
        "sync_admitted": _sync_admitted,
        "topology": topology,
        "total_requests": _total_requests,
        "trace": trace,
        "usage": _usage,
        "validate_limit_range": _validate_limit_range,
        "validate_resources": _validate_resources,
    }
    if case["kind"] not in kinds:
        raise NotImplementedError(f"cases of kind {case['kind']}")
    return kinds[case["kind"]](dict(case))


# Numbers and pods.


def _amount_from_quantity(case: Json) -> Json:
    amount = quantity.limit(case["input"]["resource"], case["input"]["quantity"])
    return {"amount": "unlimited" if amount == UNLIMITED else amount}


def _resource_value(case: Json) -> Json:
    return {"value": quantity.value(case["input"]["resource"], case["input"]["quantity"])}


def _resource_quantity(case: Json) -> Json:
    given = case["input"]
    in_bytes = given.get("binaryFormatted", False)
    return {"quantity": quantity.text(given["resource"], given["value"], in_bytes=in_bytes)}


def _adjust_resources(case: Json) -> Json:
    world, workload = world_of(case), case["input"]["workload"]
    limits = world.limit_ranges(workload_of(workload))
    classes = world.kind("RuntimeClass")
    return {
        "workload": pods.adjusted(
            workload_of(workload), limit_ranges=limits, runtime_classes=classes, settings=settings_of(case)
        )
    }


def _limit_range_validation(case: Json) -> Json:
    given = case["input"]
    return _errors(pods.pod_problems(given["path"], given["podSpec"], given.get("summary") or {}, settings_of(case)))


def _validate_limit_range(case: Json) -> Json:
    summary = pods.summarize(case.get("objects", ()))
    return _errors(pods.limit_range_problems(workload_of(case["input"]["workload"]), summary, settings_of(case)))


def _validate_resources(case: Json) -> Json:
    return _errors(pods.resource_problems(workload_of(case["input"]["workload"])))


def _errors(problems: list[pods.Problem]) -> Json:
    kind = "FieldValueInvalid"
    return {"errors": [{"type": kind, "field": f, "badValue": names, "detail": what} for f, names, what in problems]}


def _total_requests(case: Json) -> Json:
    if case["input"].get("preserveTotalRequests"):
        return {"totalRequests": case["input"]["initialTotalRequests"]}
    info = Info(workload_of(case["input"]["workload"]), settings_of(case))
    totals = [
        {
            "name": t.name,
            "count": t.count,
            "requests": texts(t.requests),
            "flavors": dict(t.flavors),
            "topologyRequest": None if t.topology is None else use_told(t.topology),
            "delayedTopologyRequest": t.delayed,
        }
        for t in info.totals
    ]
    return {"clusterQueue": info.cluster_queue, "totalRequests": totals}


def _scheduling_hash(case: Json) -> Json:
    shapes = [Info(workload_of(workload), settings_of(case)).shape for workload in case["input"]["workloads"]]
    return {"same": shapes[0] == shapes[1]}


# Statuses.


def _queue_order_timestamp(case: Json) -> Json:
    workload = case["input"]["workload"]
    moments = {w: totals.queue_time(workload_of(workload), settings_of(case), w) for w in ("Eviction", "Creation")}
    return {name: times.text(moment) for name, moment in moments.items()}


def _admission_checks(case: Json) -> Json:
    queue = ClusterQueue(complete({"kind": "ClusterQueue", **case["input"]["clusterQueue"]}))
    workload = workload_of(case["input"]["workload"])
    return {"admissionChecks": reconcile.required_checks(workload, queue, settings_of(case))}


def _sync_admitted(case: Json) -> Json:
    workload = conditions.own(workload_of(case["input"]["workload"]))
    changed = conditions.sync_admitted(workload, times.moment(case["config"]["now"]), settings_of(case))
    return {"changed": changed, "status": workload["status"]}


def _readiness(case: Json) -> Json:
    world = World(with_checks(case), configuration=configuration_of(case), now=case["config"]["now"], trusted=True)
    return shapes.readiness(
        *world.cache.readiness(case["input"]["clusterQueue"]), terminates=case["input"].get("terminate", False)
    )


def _usage(case: Json) -> Json:
    world, given = world_of(case), case["input"]
    local_queue = given.get("localQueue")
    name = world.local_queues.get(local_queue, "") if local_queue else given["clusterQueue"]
    answered: Json = {}
    for word, admitted in (("reserv", False), ("admitt", True)):
        infos = [
            info
            for info in world.cache.workloads.get(name, {}).values()
            if local_queue in (None, info.local_queue)
            and (not admitted or conditions.is_true(info.workload, "Admitted"))
        ]
        answered[f"{word}edResources"] = _used(world, name, infos, local_queue is None)
        answered["admittedWorkloads" if admitted else "reservingWorkloads"] = len(infos)
    return answered


def _used(world: World, name: str, infos: list[Info], tells_borrowed: bool) -> list[Json]:
    node = world.cache.forest.cluster_queues.get(name)
    if node is None or node.spec is None:
        return []
    usage = Usage()
    for info in infos:
        usage.add(node, info.usage)
    listed = []
    for group in node.spec.groups:
        for flavor in group.flavors:
            rows: list[Json] = []
            for resource in sorted(group.resources):
                used, nominal = usage.at(node, (flavor, resource)), node.quota((flavor, resource)).nominal
                rows.append({"name": resource, "total": quantity.text(resource, used)})
                if tells_borrowed:
                    borrowed = max(0, used - nominal) if node.parent else 0
                    rows[-1]["borrowed"] = quantity.text(resource, borrowed)
            listed.append({"name": flavor, "resources": rows})
    return listed


# Quota.


def _quota(case: Json) -> Json:
    world, given = world_of(case), case.get("input", {})
    snapshot = world.snapshot()
    for name, used in given.get("usage", {}).items():
        snapshot.usage.add(world.cache.forest.cluster_queues[name], from_flavors(used))
    removed = {name: world.cache.find(name) for name in given.get("remove", ())}
    for info in removed.values():
        assert info is not None, "what is removed was there"
        snapshot.remove(info)
    for name in given.get("add", ()):
        info = removed.get(name) or Info(world.kind("Workload")[name], world.settings)
        snapshot.add(info)
    requests = from_flavors(given.get("requests", {}))
    extra = {} if "clusterQueue" in given else requests
    with_workloads = not ("requests" in given and "clusterQueue" not in given)
    cohorts = {n: node for n, node in world.cache.forest.cohorts.items() if not node.has_cycle}
    answered: Json = {
        "clusterQueues": {name: _node(snapshot.usage, node, extra) for name, node in snapshot.nodes.items()},
        "cohorts": {name: _node(snapshot.usage, node, extra) for name, node in cohorts.items()},
        "inactiveClusterQueues": sorted(world.cache.forest.cluster_queues.keys() - snapshot.nodes.keys()),
        "lendable": {name: texts(node.lendable) for name, node in cohorts.items()},
    }
    if with_workloads:
        for name, node in snapshot.nodes.items():
            answer = answered["clusterQueues"][name]
            answer["workloads"] = sorted(snapshot.workloads[name])
            answer["cohort"] = node.parent.name if node.parent else ""
        for name, node in cohorts.items():
            answered["cohorts"][name]["parent"] = node.parent.name if node.parent else ""
    if "clusterQueue" in given:
        node = snapshot.nodes[given["clusterQueue"]]
        found = share.share(snapshot.usage, node)
        answered["isBorrowing"] = bool(found.borrowed)
        answered["isBorrowingOnRequested"] = found.is_borrowing_on(requests)
    return answered


def _node(usage: Usage, node: Node, extra: Amounts) -> Json:
    below = {fr for each in node.tree() for fr in {*each.subtree, *usage.of(each)}} | set(node.subtree)
    found = share.share(usage, node, extra)
    weighted = found.weighted
    limits = {
        "borrowingLimit": {fr: q.borrowing_limit for fr, q in node.quotas.items()},
        "lendingLimit": {fr: q.lending_limit for fr, q in node.quotas.items()},
    }
    return {
        "nominal": by_flavor({fr: q.nominal for fr, q in node.quotas.items()}),
        **{n: by_flavor({fr: v for fr, v in of.items() if v is not None}) for n, of in limits.items()},
        "subtreeQuota": by_flavor(node.subtree),
        "usage": by_flavor({fr: usage.at(node, fr) for fr in below}),
        "localQuota": by_flavor({fr: node.local(fr) for fr in below}),
        "available": by_flavor({fr: usage.raw_available(node, fr) for fr in below}),
        "potentialAvailable": by_flavor({fr: node.potential.get(fr, 0) for fr in below}),
        "dominantResourceShare": {
            "weightedShare": "+Inf" if math.isinf(weighted) else repr(weighted).removesuffix(".0"),
            "roundedWeightedShare": UNLIMITED if math.isinf(weighted) else math.ceil(weighted),
            "dominantResource": found.resource,
            "borrowing": bool(found.borrowed),
            "fairWeight": found.weight,
            "unweightedRatio": found.ratio,
        },
    }


def _cache_ops(case: Json) -> Json:
    cache = Cache(settings_of(case), flavors={}, checks={})
    objects = [complete(manifest) for manifest in case.get("objects", ())]
    workloads = {key(o): o for o in objects if o["kind"] == "Workload"}
    for manifest in objects:
        _store(cache, manifest)
    states = []
    orphans: set[str] = set()
    for op in case["input"]["ops"]:
        error = _cache_op(cache, op, workloads, orphans)
        states.append(_cache_state(cache) | ({"error": error} if error else {}))
    return {"states": states}


def _store(cache: Cache, manifest: Json) -> None:
    name = manifest["metadata"]["name"]
    if manifest["kind"] == "ResourceFlavor":
        cache.flavors[name] = manifest
    if manifest["kind"] == "AdmissionCheck":
        cache.checks[name] = manifest


def _cache_op(cache: Cache, op: Json, workloads: dict[str, Json], orphans: set[str]) -> str:
    """Returns an error. `orphans` are workloads whose ClusterQueue is gone."""
    name, manifest = op.get("name", ""), complete(op["object"]) if "object" in op else {}
    match op["op"]:
        case "addOrUpdateCohort":
            return "" if cache.forest.set_cohort(manifest) else "cohort has a cycle"
        case "deleteCohort":
            if name in cache.forest.cohorts:
                cache.forest.delete_cohort(name)
        case "addClusterQueue" | "updateClusterQueue":
            cache.set_cluster_queue(manifest, workloads.values())
            return "cohort has a cycle" if cache.forest.cluster_queues[manifest["metadata"]["name"]].has_cycle else ""
        case "deleteClusterQueue":
            orphans |= set(cache.workloads.get(name, ()))
            if name in cache.workloads:
                cache.delete_cluster_queue(name)
        case "terminateClusterQueue":
            cache.terminating.add(name)
        case "addOrUpdateWorkload":
            cache.set_workload(manifest)
        case "deleteWorkload":
            cache.delete_workload(name)
            return "cluster queue not found" if name in orphans else ""
        case "addOrUpdateResourceFlavor" | "addOrUpdateAdmissionCheck":
            _store(cache, manifest)
        case "deleteResourceFlavor":
            cache.flavors.pop(name, None)
        case "deleteAdmissionCheck":
            cache.checks.pop(name, None)
    return ""


def _cache_state(cache: Cache) -> Json:
    usage, admitted = cache.used, Usage()
    for infos in cache.workloads.values():
        for info in infos.values():
            if conditions.is_true(info.workload, "Admitted"):
                admitted.add(cache.forest.cluster_queues[info.cluster_queue], info.usage)
    queues: Json = {}
    for name, node in cache.forest.cluster_queues.items():
        held = cache.workloads[name].values()
        queues[name] = {
            "status": shapes.queue_status(cache.readiness(name)[0]),
            "cohort": node.parent.name if node.parent else "",
            "workloads": sorted(info.key for info in held),
            "usage": by_flavor(usage.of(node)),
            "subtreeQuota": by_flavor(node.subtree),
            "admittedUsage": by_flavor(admitted.of(node)),
            "admittedWorkloads": sum(conditions.is_true(info.workload, "Admitted") for info in held),
            "allocatableResourceGeneration": node.generation,
            "fairWeight": node.weight,
        }
    cohorts = {
        name: {
            "parent": node.parent.name if node.parent else "",
            "subtreeQuota": by_flavor(node.subtree),
            "usage": by_flavor(usage.of(node)),
            "hasCycle": node.has_cycle,
            "clusterQueues": sorted(child.name for child in node.children if child.is_cluster_queue),
        }
        for name, node in cache.forest.cohorts.items()
    }
    return {"clusterQueues": queues, "cohorts": cohorts}
