"""Copies and jobs on workers that nothing here belongs to any more (rules/06 §4.6)."""

from __future__ import annotations

from kueuecore.multikueue import MultiKueueSettings
from kueuecore.times import SECOND_NS
from kueuecore.writes import Verb
from tests.unit.multikueue.stage import MINUTE, OUR_LABEL, POD_SETS, Stage


def stage_with_garbage() -> Stage:
    """A job and its copy on a worker that nothing here is about."""
    stage = Stage("west", start=False)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "old", "uid": "u", "controller": True}
    more = {"labels": OUR_LABEL, "namespace": "ns"}
    stage.create("Job", "old", {}, cluster="west", **more)
    stage.create("Workload", "old", {"podSets": POD_SETS}, cluster="west", ownerReferences=[owner], **more)
    return stage


def test_garbage_is_what_is_ours_and_has_nothing_here_any_more() -> None:
    stage = stage_with_garbage()
    stage.create("Workload", "theirs", {"podSets": POD_SETS}, cluster="west", namespace="ns")
    of_another = {"kueue.x-k8s.io/multikueue-origin": "another"}
    stage.create("Workload", "of-another", {"podSets": POD_SETS}, cluster="west", namespace="ns", labels=of_another)
    stage.wait(59 * SECOND_NS)
    assert stage.copies("old") == ["west"]
    stage.wait(2 * SECOND_NS)
    assert (stage.copies("old"), stage.copies("old", kind="Job")) == ([], [])
    assert (stage.copies("theirs"), stage.copies("of-another")) == (["west"], ["west"])


def test_a_copy_stays_until_its_job_has_gone_even_if_the_deletion_of_the_job_gets_lost() -> None:
    stage = stage_with_garbage()
    stage.loses = Verb.DELETE
    stage.wait(61 * SECOND_NS)
    assert (stage.copies("old"), stage.copies("old", kind="Job")) == (["west"], ["west"])
    stage.wait(60 * SECOND_NS)
    assert (stage.copies("old"), stage.copies("old", kind="Job")) == ([], [])


def test_nothing_is_collected_without_an_interval() -> None:
    stage = Stage("west", start=False, settings=MultiKueueSettings(gc_interval_ns=0))
    stage.create("Workload", "old", {"podSets": POD_SETS}, cluster="west", namespace="ns", labels=OUR_LABEL)
    stage.wait(10 * MINUTE)
    assert stage.copies("old") == ["west"]
