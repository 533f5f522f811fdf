"""What an engine says of input that it refuses."""

import json
import pickle

import pytest

from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, UnknownObjectError
from tests.builders import T0, at, cluster_queue, workload


def test_a_refusal_also_warns_of_a_misspelled_field() -> None:
    manifest = cluster_queue().to_manifest()
    manifest["spec"]["stopPolice"] = "Hold"  # type: ignore[index, call-overload]
    manifest["spec"]["queueingStrategy"] = "FIFO"  # type: ignore[index, call-overload]
    with pytest.raises(ManifestError) as caught:
        Engine().apply(manifest)
    (warning,) = caught.value.warnings
    assert warning.field == "spec.stopPolice"
    assert str(caught.value).endswith(f"warning: {warning}")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.problems, again.warnings) == (caught.value.problems, caught.value.warnings)


@pytest.mark.parametrize("trusted", [True, False])
def test_a_workload_without_a_name_is_refused(trusted: bool) -> None:
    manifest = workload("w").to_manifest()
    manifest["metadata"] = {"namespace": "ns", "generateName": "w-"}
    engine = Engine()
    with pytest.raises(ManifestError, match=r"metadata\.name: Required value: give a name"):
        engine.apply(manifest, trusted=trusted)
    assert len(engine) == 0


def test_a_duplicate_key_is_a_warning() -> None:
    text = json.dumps(workload("w").to_manifest()).replace('"queueName":', '"queueName": "other", "queueName":')
    (warning,) = Engine().apply(text.encode()).warnings
    assert str(warning) == ('Workload "ns/w": spec.queueName: duplicate field "spec.queueName": the last one counts')


def test_a_long_value_is_cut() -> None:
    manifest = workload("w").to_manifest()
    manifest["metadata"] = {"namespace": "ns", "name": "x" * 100_000}
    with pytest.raises(ManifestError) as caught:
        Engine().apply(manifest)
    (problem,) = caught.value.problems
    assert len(problem.message) < 500
    assert f'"{"x" * 253}..."' in problem.message


def test_a_call_that_is_refused_does_not_move_the_time() -> None:
    engine = Engine()
    engine.reconcile(T0)
    with pytest.raises(ManifestError):
        engine.apply({"kind": "Workload"}, now=at(9))
    with pytest.raises(UnknownObjectError):
        engine.finish("w", namespace="ns", now=at(9))
    assert engine.now == T0
