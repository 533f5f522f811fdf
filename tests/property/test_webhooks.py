"""What holds of every object that is stored, and of every refusal."""

# What was refused is looked at where it is caught, as most input may be taken, too.
# ruff: noqa: PT017
from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from kueuecore.api_server import RefusedError
from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.jobs import INTEGRATIONS
from kueuecore.testing import START, History, Limits, worlds
from kueuecore.webhooks import admit
from tests.jobs import ALL_KINDS, job
from tests.property.test_bad_input import damaged
from tests.property.worlds import times

_ALL = Configuration.trusted(
    {"integrations": {"frameworks": sorted({integration.framework for integration in INTEGRATIONS.values()})}},
    feature_gates={"SparkApplicationIntegration": True},
)


@times(1)
@given(worlds())
def test_what_is_stored_is_stored_again_as_it_is_and_an_engine_takes_it(world: History) -> None:
    configuration = world.parsed_configuration()
    stored = []
    for plain in world.objects:
        once = admit(plain, configuration=configuration).object
        assert admit(once, configuration=configuration).object == once
        assert admit(once, old=once, configuration=configuration).object == once
        stored.append(once)
    engine = Engine(configuration)
    engine.apply(stored, now=START)
    # It comes to the same as what was given.
    given = Engine(configuration)
    given.apply(world.objects, now=START)
    assert engine.workloads() == given.workloads()
    assert engine.quota() == given.quota()


@st.composite
def _odd(draw: st.DrawFn) -> Any:
    objects = list(draw(worlds(Limits(workloads=2, cluster_queues=2))).objects)
    objects += [job(kind) for kind in draw(st.lists(st.sampled_from(sorted(ALL_KINDS)), max_size=2))]
    return draw(damaged(objects))


@times(2)
@example([{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "\ud800", "metadata": {"name": "w"}}])
@given(_odd())
def test_an_odd_object_is_stored_or_refused_as_a_server_would(objects: list[Any]) -> None:
    for plain in objects:
        if not isinstance(plain, dict):
            continue
        try:
            stored = admit(
                plain, around=[object_ for object_ in objects if isinstance(object_, dict)], configuration=_ALL
            ).object
        except RefusedError as refused:
            assert refused.code in (403, 404, 422), refused
            assert json.loads(json.dumps(refused.status)) == refused.status
            assert refused.code != 422 or refused.causes
        except ManifestError as error:
            # What JSON cannot hold never reaches a server.
            assert str(error)
        else:
            assert admit(stored, configuration=_ALL).object == stored
