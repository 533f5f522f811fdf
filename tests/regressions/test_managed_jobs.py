"""Jobs that Kueue manages, whether they get a Workload or not."""

from __future__ import annotations

import pytest

from kueuecore.api_server import RefusedError
from kueuecore.fleet import Fleet
from kueuecore.jobs import workloads_for
from tests.jobs import job


def test_a_job_that_has_its_workload_is_named_as_well() -> None:
    (workload,) = workloads_for([job("Job")]).workloads
    # It was left out, and whoever asked for its defaults had to make them by hand.
    result = workloads_for([job("Job"), workload])
    assert (result.workloads, result.problems) == ((), ())
    assert [(other["metadata"]["name"], other["spec"]["suspend"]) for other in result.jobs] == [("j", True)]  # type: ignore[index,call-overload]


def test_a_fleet_refuses_a_job_whose_owner_is_gone_before_anything_changes() -> None:
    child = job("Job")
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "gone", "uid": "u", "controller": True}
    child["metadata"]["ownerReferences"] = [owner]
    fleet = Fleet(["one"], now="2026-01-01T00:00:00Z")
    with pytest.raises(RefusedError, match="workload owner not found") as refused:
        fleet.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, child])
    assert refused.value.code == 403
    assert not fleet.objects("Namespace")
