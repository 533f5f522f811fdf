"""Calls about objects that an engine does not know."""

import pytest

from kueuecore.errors import UnknownObjectError
from tests.builders import (
    at,
    world,
)


@pytest.mark.parametrize("call", ["finish", "evict", "release", "forget"])
def test_calls_about_an_unknown_workload_are_errors(call: str) -> None:
    engine = world()
    with pytest.raises(UnknownObjectError, match='there is no Workload "ns/nobody"'):
        getattr(engine, call)("nobody", namespace="ns", now=at(1))


def test_asking_about_an_unknown_queue_is_an_error() -> None:
    engine = world(empty=True)
    for ask in (
        lambda: engine.cluster_queue("x"),
        lambda: engine.pending("x"),
        lambda: engine.local_queue("x", namespace="ns"),
    ):
        with pytest.raises(UnknownObjectError, match='Queue "'):
            ask()


def test_deleting_a_kind_that_is_not_kept_lists_those_that_are() -> None:
    with pytest.raises(ValueError, match='"PriorityClass" are not kept; supported: Namespace, ResourceFlavor'):
        world().delete("PriorityClass", "p", now=at(1))
