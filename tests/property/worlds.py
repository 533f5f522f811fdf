"""What the property tests have in common."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from kueuecore._json import JsonObject, text_at
from kueuecore.engine import Engine
from kueuecore.testing import START, History

Json = dict[str, Any]


def times(factor: int) -> settings:
    """So many times the worlds of the profile."""
    assert settings.default is not None, "tests/conftest.py loads a profile"
    return settings(max_examples=factor * settings.default.max_examples)


def engine_of(
    scenario: History,
    batches: list[list[Json]] | None = None,
    *,
    trusted: bool = False,
    evaluates_always: bool = False,
) -> Engine:
    """An engine with the objects of a scenario, in these batches if not all at once."""
    engine = Engine(scenario.parsed_configuration(), batches_retries=scenario.batches_retries)
    if evaluates_always:
        engine._core._evaluate_always()
    for batch in batches or [list(scenario.objects)]:
        engine.apply(json.dumps(batch).encode(), now=START, trusted=trusted)
    return engine


def without_order(history: History) -> History:
    """Leave out initial objects whose place among the others matters to Kueue.

    A WorkloadPriorityClass sets the Workloads that are there when it comes (rules/11 §5), and a cycle of Cohorts holds
    back the ClusterQueues that come after it (rules/02 §4).
    """
    cohorts = [object_ for object_ in history.objects if text_at(object_, "kind") == "Cohort"]
    parents = {text_at(cohort, "metadata", "name"): text_at(cohort, "spec", "parentName") for cohort in cohorts}

    def is_in_cycle(name: str) -> bool:
        above, seen = parents[name], set[str]()
        while above in parents and above != name and above not in seen:
            seen.add(above)
            above = parents[above]
        return above == name

    def matters(it: JsonObject) -> bool:
        kind = text_at(it, "kind")
        return kind == "WorkloadPriorityClass" or (kind == "Cohort" and is_in_cycle(text_at(it, "metadata", "name")))

    return replace(history, objects=tuple(object_ for object_ in history.objects if not matters(object_)))


@st.composite
def shuffled(draw: st.DrawFn, objects: tuple[Json, ...]) -> list[list[Json]]:
    """The objects in another order, some of them twice, in batches."""
    again = draw(st.lists(st.sampled_from(objects), max_size=3)) if objects else []
    batches: list[list[Json]] = [[]]
    for thing in draw(st.permutations([*objects, *again])):
        if draw(st.booleans()):
            batches.append([])
        batches[-1].append(thing)
    return batches
