"""Workloads of a dump as jobs of the past."""

import pytest

from kueuecore._json import JsonObject, JsonValue, object_at
from kueuecore.forecasts.past_jobs import EXPECTED_RUN_SECONDS, PastJob, past_jobs_of
from kueuecore.forecasts.present_workloads import present_workloads
from kueuecore.manifests import Manifest
from kueuecore.times import nanoseconds


def workload(status: JsonObject, **spec: JsonValue) -> Manifest:
    pod: JsonObject = {
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}
    }
    return Manifest(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {
                "namespace": "ml",
                "name": "job-train-1a2b3",
                "uid": "7",
                "creationTimestamp": "2026-01-05T01:00:00Z",
                "labels": {"kueue.x-k8s.io/job-uid": "5", "team": "blue"},
                "ownerReferences": [{"kind": "Job", "name": "train", "controller": True}],
            },
            "spec": {
                "queueName": "lq",
                "priority": 3,
                "active": True,
                "podSets": [{"name": "main", "count": 4, "template": pod}],
                **spec,
            },
            "status": status,
        }
    )


def past_job(manifest: Manifest) -> PastJob:
    queue = Manifest(
        {"kind": "LocalQueue", "metadata": {"namespace": "ml", "name": "lq"}, "spec": {"clusterQueue": "cq"}}
    )
    (found,) = past_jobs_of(present_workloads([queue, manifest]))
    return found


def condition(kind: str, time: str) -> JsonObject:
    return {"type": kind, "status": "True", "lastTransitionTime": time}


def test_a_finished_workload_has_all_its_times_and_what_it_used() -> None:
    finished = workload(
        {
            "admission": {
                "clusterQueue": "other",
                "podSetAssignments": [{"name": "main", "count": 2, "resourceUsage": {"cpu": "1", "memory": "2Gi"}}],
            },
            "conditions": [
                condition("QuotaReserved", "2026-01-05T01:05:00Z"),
                condition("Admitted", "2026-01-05T01:10:00Z"),
                condition("Finished", "2026-01-05T02:10:00Z"),
            ],
        },
        maximumExecutionTimeSeconds=7200,
    )
    found = past_job(finished)
    assert found.template is not None
    assert found == PastJob(
        namespace="ml",
        local_queue="lq",
        cluster_queue="other",
        name="train",
        priority=3,
        requests={"cpu": 1000, "memory": 2 << 30},
        n_pods=4,
        limit_seconds=7200.0,
        labels={"team": "blue"},
        created=nanoseconds("2026-01-05T01:00:00Z"),
        started=nanoseconds("2026-01-05T01:10:00Z"),
        ended=nanoseconds("2026-01-05T02:10:00Z"),
        template=found.template,
        uid="7",
    )
    assert found.run_seconds == 3600
    assert sorted(found.template) == ["apiVersion", "kind", "metadata", "spec"]
    assert found.template["metadata"] == {"namespace": "ml", "name": "template", "labels": {"team": "blue"}}


def test_a_waiting_workload_has_what_it_asks_for_and_neither_start_nor_end() -> None:
    found = past_job(workload({}))
    assert (found.requests, found.n_pods) == ({"cpu": 2000, "memory": 4 << 30}, 4)
    assert (found.cluster_queue, found.limit_seconds) == ("cq", None)
    assert (found.started, found.ended, found.run_seconds) == (None, None, None)


def test_what_a_cycle_has_counted_comes_before_what_containers_say() -> None:
    counted: JsonObject = {"resourceRequests": [{"name": "main", "resources": {"cpu": "3"}}]}
    assert past_job(workload(counted)).requests == {"cpu": 3000}


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("3600", 3600.0),
        ("0", None),
        ("-5", None),
        ("1e3", None),
        (" 60", None),
        ("\u0663", None),
        ("1" + "0" * 400, None),
        ("9" * 5000, None),
    ],
)
def test_what_an_annotation_expects_is_a_whole_number_or_nothing(text: str, limit: float | None) -> None:
    manifest = workload({})
    object_at(manifest.object, "metadata")["annotations"] = {EXPECTED_RUN_SECONDS: text}
    assert past_job(manifest).limit_seconds == limit


def test_a_time_limit_has_an_end() -> None:
    assert past_job(workload({}, maximumExecutionTimeSeconds=10**400)).limit_seconds == 2**31 - 1
