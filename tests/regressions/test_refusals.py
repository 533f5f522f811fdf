"""What an API server answers when it refuses something."""

import json
import pickle

import pytest

from kueuecore.api_server import RefusedError
from kueuecore.trials.faults import FaultyHistory


def test_what_is_forbidden_can_be_told_from_what_is_invalid() -> None:
    # Both had a code and a text, and the fields that are wrong stood in the text alone.
    causes = [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.podSets"}]
    details = {"group": "kueue.x-k8s.io", "kind": "Workload", "name": "w", "causes": causes}
    status = {
        "kind": "Status",
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": "no",
        "details": details,
    }
    invalid = RefusedError.of(json.loads(json.dumps(status)))
    assert (invalid.code, invalid.reason, invalid.causes) == (422, "Invalid", tuple(causes))
    assert invalid.status == {**status, "apiVersion": "v1", "metadata": {}}
    forbidden = RefusedError(403, "no")
    assert (forbidden.reason, forbidden.causes) == ("Forbidden", ())


def test_a_refusal_survives_a_process_pool() -> None:
    refused = RefusedError(409, "there is one", reason="AlreadyExists", details={"name": "w"})
    again = pickle.loads(pickle.dumps(refused))
    assert (again.status, str(again)) == (refused.status, "there is one")


def test_the_server_of_a_history_refuses_what_a_real_one_would() -> None:
    # A history wrote conditions without lastTransitionTime, and its server took them.
    cluster = FaultyHistory(1).cluster
    name = cluster.list("Workload")[0][0]["metadata"]["name"]
    condition = {"type": "Mine", "status": "True", "reason": "Version", "message": "1"}
    with pytest.raises(RefusedError) as caught:
        cluster.patch(
            "Workload", name, {"status": {"conditions": [condition]}}, namespace="default", subresource="status"
        )
    assert caught.value.causes[0]["field"] == "status.conditions[0].lastTransitionTime"
