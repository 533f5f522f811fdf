"""An object of the same name with another UID is another object, not an update that changes too much."""

from __future__ import annotations

import pytest

from kueuecore.errors import ManifestError
from tests.builders import T0, admitted, usage, workload, world


def test_a_workload_over_one_of_another_uid_that_holds_quota() -> None:
    engine = world()
    engine.apply([workload("w", 3, uid="one")], now=T0)
    assert admitted(engine.cycle(T0)) == ["w"]
    with pytest.raises(ManifestError) as caught:
        engine.apply([workload("w", 2, uid="two")], now=T0)
    (problem,) = caught.value.problems
    assert problem.field == "metadata.uid"
    assert problem.message.endswith('this is a different object: the existing one has UID "one"; delete it first')
    assert usage(engine) == "3"
    assert engine.delete("Workload", "w", namespace="ns", now=T0)
    engine.apply([workload("w", 2, uid="two")], now=T0)
    engine.cycle(T0)
    assert usage(engine) == "2"
