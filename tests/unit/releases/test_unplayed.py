"""What a release does that is not imitated is reported, and only there."""

import pytest

from kueuecore._json import JsonObject, object_at
from kueuecore.releases import Release
from kueuecore.releases.unplayed import unplayed

READ = "none of it was compared with a running one"


def queue(amount: str, *, cohort: str = "", policy: str = "Never") -> JsonObject:
    resource: JsonObject = {"name": "cpu", "nominalQuota": amount}
    group: JsonObject = {"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [resource]}]}
    preemption: JsonObject = {"withinClusterQueue": policy}
    spec: JsonObject = {"resourceGroups": [group], "cohortName": cohort, "preemption": preemption}
    return {"kind": "ClusterQueue", "metadata": {"name": "team"}, "spec": spec}


def effective(given: JsonObject, amount: str) -> JsonObject:
    """A ClusterQueue whose status gives it other quotas than its spec."""
    groups = object_at(queue(amount), "spec")["resourceGroups"]
    return {**given, "status": {"effectiveQuotas": {"resourceGroups": groups}}}


def workload(requested: str, *, used: str = "0") -> JsonObject:
    pod: JsonObject = {"containers": [{"name": "c", "resources": {"requests": {"cpu": requested}}}]}
    assigned: JsonObject = {"name": "main", "resourceUsage": {"cpu": used}}
    return {
        "kind": "Workload",
        "metadata": {"name": "job"},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}]},
        "status": {"admission": {"podSetAssignments": [assigned]}},
    }


@pytest.mark.parametrize(
    ("release", "thing", "fair_sharing", "words"),
    [
        ("0.17", queue("10"), True, []),
        ("0.17", queue("9e15"), False, ["an amount near 2^63"]),
        ("0.18", queue("9e15"), False, []),
        ("0.20.0-devel", queue("9e15"), False, []),
        ("0.20.0", queue("9e15"), False, [READ, "counts such amounts exactly; kueuecore stops at 2^63-1"]),
        ("0.20.0", {**queue("9e15"), "kind": "Cohort"}, False, [READ, "Cohort team has an amount near 2^63"]),
        ("0.20.0", queue("4e12"), True, [READ]),
        ("0.20.0", effective(queue("1"), "9e15"), False, [READ, "ClusterQueue team has an amount near 2^63"]),
        ("0.20.0", effective(queue("1"), "9"), False, [READ]),
        ("0.20.0", workload("9e15"), False, [READ, "Workload job has an amount near 2^63"]),
        ("0.20.0", workload("1", used="9e15"), False, [READ, "Workload job has an amount near 2^63"]),
        ("0.20.0", workload("4e12"), False, [READ]),
        ("0.20.0-devel", workload("9e15"), False, []),
        ("0.17", queue("10", policy="Any"), False, []),
        ("0.17", queue("10", policy="Any"), True, ["crashes when a workload preempts in ClusterQueue team"]),
        ("0.17", queue("10", policy="Any", cohort="all"), True, []),
        ("0.18", queue("10", policy="Any"), True, []),
        ("0.17.1", queue("10"), False, ["not the newest of 0.17"]),
    ],
)
def test_a_note(release: str, thing: JsonObject, fair_sharing: bool, words: list[str]) -> None:
    notes = [*unplayed(Release.named(release), [thing], fair_sharing=fair_sharing)]
    assert len(notes) == len(words)
    assert all(word in note for word, note in zip(words, notes, strict=True))
