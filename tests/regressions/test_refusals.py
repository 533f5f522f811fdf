"""What an API server answers when it refuses something."""

import json
import pickle

from kueuecore.api_server import RefusedError


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
