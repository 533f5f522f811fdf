"""For each change of Kueue, a small world ends otherwise with it and without it, by engine and reference alike.

`scripts/change_worlds.py` found those in `worlds.jsonl`; the others are by hand. A line is a case of kind `trace` with
the change that it shows, or the gate: one that only older releases have, or one of 0.20.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.conformance import answer
from kueuecore.errors import ConfigurationError
from kueuecore.releases import changes
from kueuecore.testing.play import first_difference

Json = dict[str, Any]

ROOT = Path(__file__).parents[3]

WORLDS: list[Json] = [
    json.loads(line)
    for name in ("worlds.jsonl", "worlds-by-hand.jsonl", "worlds-of-0.20-queues.jsonl")
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
]

# What the engine does not decide is tested where it is decided.
ELSEWHERE = {
    "tests/unit/controller/test_turns.py": "RetriesAreBatched",
    "tests/unit/releases/test_changes.py": """
        GateDependenciesAreChecked GateDependenciesAreListed SchedulerLibraryNeedsTopology""",
    "tests/unit/jobs/test_changes_of_kueue.py": """
        RayAutoscalerCounted RaySubmitterSidecarCounted RayRedisCleanupCounted CompletedIndexesReclaimed
        FailedIndexesReclaimed RayValidationFailedOnHold DefaultQueueNeedsManagedNamespace AncestorUidsChecked
        NoUngateOntoFailedNode SlicesFollowPriority ReplacedSlicesAreNamed ActiveSliceReleasesPods
        PriorityClassMissingEvent LwsPodsGetQueueName JobTextsAreCorrected RayAutoscalingNeedsOneCluster
        LwsQueueMayChange WorkerPodsAreMarked ElasticAnnotationNeedsSupport FastAdmissionNeedsTrue
        PodSetsUpToTen PodSetsUpToEighteen RaySubmitterIsConstrained PrebuiltNameByAnnotation""",
    "tests/unit/releases/test_topology_of_0_20.py": """
        DonePodSetsLeaveNodes CycleUsageReachesAllFlavors ReplacedSliceLeavesNodes FailuresByHostname OwnPodsProgress
        NodeChangesRetryTheirQueues LostDomainStopsReplacement""",
    "tests/unit/jobs/test_topology_of_0_20.py": """
        PodIndexOffsetIsChecked PrebuiltTopologyIsCompared StatefulSetTopologyIsChecked""",
    "tests/unit/jobs/test_changes_of_0_20.py": """
        JobReclaimsFromItsPodSet SparkRequestsAreSparks SparkNodeSelectorCounts PodLevelPartsAreCompared
        StatefulSetCountFollowsScaleUp EvictedSlicesWaitForTheirPods LwsSurgeMayBePercentage
        OldRevisionsWaitForAdmission QueueChangesReachGatedPods DefaultPriorityClassNeedsManagedNamespace""",
    "tests/unit/jobs/test_groups_of_0_20.py": "EndedServingPodsAreLetGo GroupsWithoutPodsEndEvictions",
    "tests/unit/jobs/test_ray_and_spark_of_0_20.py": """
        FailedSubmissionsMayBeRetried SparkIsReadyWithMinExecutors RayAutoscalingNeedsItsGate
        ReservedPriorityKeepsItsKind""",
    "tests/unit/concurrent_admission/test_family.py": "UnevaluatedVariantsAreAwaited",
    "tests/unit/multikueue/test_changes_of_0_20.py": "WorkersWithoutOwnerAreRetried EvictedSlicesLoseTheirCopies",
    "rust/core/src/pods/totals/tests.rs": "DevicesReplaceContainerRequests",
    "rust/wire/src/validate/tests/changes_of_0_20.rs": "MinCountMayBeZero ConcurrentFlavorsUpTo32 SchemaFieldsOf020",
    "tests/unit/cli/test_convert.py": "OldVersionIsNotServed",
    "tests/unit/test_provisioning.py": "ProvisioningSkipsEmptyPodSets ProvisioningMessageCleared",
    "tests/unit/multikueue/test_connections.py": "MultiKueueBackoffInMessage MultiKueueCheckEditsRequeue",
    "rust/wire/src/configuration/tests.rs": """
        WaitForPodsReadyByDefault ClientConnectionIsFast ClientConnectionIsFaster DeviceClassesShareMappings
        LocalQueueSelectorIsChecked CapacityNamesHaveOneSlash""",
    "rust/wire/src/decode/tests.rs": "PreemptionConfigIsAKind",
    "rust/core/src/pods/devices/tests.rs": "UnresolvedDevicesAreNamed ResolvedDevicesAreNamed",
    "rust/wire/src/validate/tests/workload.rs": "PodsKeyIsReserved SchemaFieldsOf017 SchemaFieldsOf018",
}
# An API server decides these by the schemas of the release that is installed there.
SCHEMAS = """
    LocalQueueStatusLimit64 QueueNameFixedWhileReserved PodSetSliceSizeMinimum SubGroupCountMinimum
    TopologyLevelsMutable TopologyFlavorLabelsMutable TopologyFlavorTaintsMutable"""


def sides(world: Json) -> list[Json]:
    """The world with what it shows, and without."""
    switch, name = ("featureGates", world["gate"]) if "gate" in world else ("changes", world["change"])
    return [{**world, switch: {**world.get(switch, {}), name: is_on}} for is_on in (True, False)]


def compared(of: Any) -> Any:
    """What is compared: events of a cycle have no order, and nothing is as good as 0 or an empty list."""
    if isinstance(of, list):
        return [compared(entry) for entry in of]
    if not isinstance(of, dict):
        return of
    if "messages" in of:
        of = {
            **of,
            "messages": sorted(
                of["messages"], key=lambda message: (message["key"], message["reason"], message["message"])
            ),
        }
    found = {name: compared(entry) for name, entry in of.items()}
    return {name: error for name, error in found.items() if error not in (None, {}, [], "", 0, "0")}


@pytest.mark.parametrize("world", WORLDS, ids=lambda entry: str(entry["id"]))
def test_a_world(world: Json) -> None:
    by_engine = [compared(answer(side)) for side in sides(world)]
    assert by_engine[0] != by_engine[1]
    by_reference = [compared(answer(side, by="reference")) for side in sides(world)]
    assert first_difference(by_engine, by_reference) is None


def test_every_change_is_tested() -> None:
    shown = {world["change"] for world in WORLDS if "change" in world}
    elsewhere = {name for names in (*ELSEWHERE.values(), SCHEMAS) for name in names.split()}
    assert shown.isdisjoint(elsewhere)
    assert shown | elsewhere == {change.name for change in changes()}
    assert [path for path in ELSEWHERE if not (ROOT / path).is_file()] == []


def test_the_gates_that_only_older_releases_have_are_played() -> None:
    assert {world["gate"] for world in WORLDS if "gate" in world} >= {
        "FlavorFungibilityImplicitPreferenceDefault",
        "SchedulerTimestampPreemptionBuffer",
        "TASProfileLeastFreeCapacity",
    }


@pytest.mark.parametrize(
    ("gate", "before", "since", "words"),
    [
        ("TopologyAwareScheduling", "0.17.3", "0.17.4", "requires TopologyAwareScheduling to be enabled"),
        ("FlavorFungibility", "0.19.2", "0.20.0-devel", "depends on features that are disabled"),
    ],
    ids=["GateDependenciesAreChecked", "GateDependenciesAreListed"],
)
def test_gates_that_others_need(gate: str, before: str, since: str, words: str) -> None:
    manifest = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    Configuration.of([manifest], feature_gates={gate: False}, release=before)
    with pytest.raises(ConfigurationError, match=words):
        Configuration.of([manifest], feature_gates={gate: False}, release=since)


def test_the_gate_of_the_scheduler_library_needs_that_of_topology() -> None:
    def refusal(release: str) -> str:
        manifest = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
        gates = {"SchedulerLibraryIntegration": True, "TopologyAwareScheduling": False}
        with pytest.raises(ConfigurationError) as refused:
            Configuration.of([manifest], feature_gates=gates, release=release)
        return str(refused.value)

    assert "SchedulerLibraryIntegration is enabled" not in refusal("0.20.0-devel")
    assert "SchedulerLibraryIntegration is enabled" in refusal("0.20.0")
