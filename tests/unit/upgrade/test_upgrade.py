"""What an upgrade changes about a state, and what it finds to be the cause."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.dumps import Deciding
from kueuecore.errors import ManifestError
from kueuecore.manifests import as_manifest, read_manifests
from kueuecore.upgrades import Kept, SwitchKind, Upgrade, switches_between, upgrade
from kueuecore.upgrades.mixtures import Mixtures, OutOfRunsError
from tests.unit.upgrade.test_rows_that_are_run import CPU, flavor, queue, workload

GATED = {"kueue.x-k8s.io/admission-gated-by": "example.com/budget"}
LABELS = [
    flavor("plain", nodeLabels={"pool": "plain"}),
    flavor("fast", nodeLabels={"disk": "ssd"}),
    *queue({"plain": {"cpu": 4}, "fast": {"cpu": 4}}),
    workload(
        "w",
        {},
        template={
            "spec": {
                "nodeSelector": {"disk": "ssd"},
                "containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}],
            }
        },
    ),
]


def upgraded(*objects: dict[str, Any], old: str = "0.16.9", new: str = "0.19.2", **options: Any) -> Upgrade:
    deciding = Deciding(now=0, trusted=options.pop("trusted", False))
    configurations = (Configuration(release=old), Configuration(release=new))
    return upgrade([as_manifest(object_) for object_ in objects], deciding, *configurations, **options)


def causes(found: Upgrade) -> dict[tuple[str, ...], list[str]]:
    return {cause.names: [difference.key for difference in cause.differences] for cause in found.causes}


def test_a_state_about_which_both_decide_the_same() -> None:
    found = upgraded(flavor(), *queue(CPU), workload("w", {"cpu": 1}))
    assert (found.is_any, found.causes, found.texts, found.refusals, found.n_runs) == (False, (), (), (), 0)
    assert found.n_workloads == 1


def test_a_gate_is_the_cause_and_keeps_the_old_decision() -> None:
    found = upgraded(flavor(), *queue(CPU), workload("w", {"cpu": 1}, annotations=GATED))
    assert causes(found) == {("AdmissionGatedBy",): ["default/w"]}
    (cause,) = found.causes
    assert [entry.stage for entry in (cause.differences[0].before, cause.differences[0].after) if entry] == [
        "Admitted",
        "Pending",
    ]
    assert cause.kept == Kept({"AdmissionGatedBy": False}, 1)
    assert 9792 in cause.switches[0].pulls


def test_a_change_without_a_gate_is_the_cause_and_nothing_keeps_the_old_decision() -> None:
    found = upgraded(*LABELS)
    assert causes(found) == {("FlavorsAreMatchedByTheirOwnLabels",): ["default/w"]}
    (cause,) = found.causes
    before, after = cause.differences[0].before, cause.differences[0].after
    assert before is not None
    assert after is not None
    assert (before.flavors, after.flavors) == ({"main": {"cpu": "fast"}}, {"main": {"cpu": "plain"}})
    assert cause.kept is None
    assert cause.switches[0].kind is SwitchKind.CHANGE
    assert cause.switches[0].pulls == (12449,)


def test_each_decision_has_its_own_cause() -> None:
    found = upgraded(*LABELS, *queue({"plain": {"cpu": 4}}, "other"), workload("v", {"cpu": 1}, annotations=GATED))
    assert causes(found) == {
        ("AdmissionGatedBy",): ["default/v"],
        ("FlavorsAreMatchedByTheirOwnLabels",): ["default/w"],
    }


def test_a_gate_needs_others_to_keep_the_old_decision() -> None:
    found = {
        cause.names: cause.kept
        for cause in upgraded(*(manifest.object for manifest in read_manifests("examples/upgrade"))).causes
    }
    kept = found["KueueDRAIntegration",]
    assert kept is not None
    assert kept.n_kept == 1
    assert "KueueDRARejectWorkloadsWhenDRADisabled" in kept.gates
    assert not any(kept.gates.values())


def test_another_message_is_not_another_decision() -> None:
    found = upgraded(flavor(), *queue(CPU), workload("w", {"cpu": 5}), new="0.20.0-devel")
    assert found.causes == ()
    (text,) = found.texts
    assert text.names == ("UnadmittedWorkloadsObservability",)
    (difference,) = text.differences
    assert difference.is_of_text
    assert [entry.reason for entry in (difference.before, difference.after) if entry] == ["Pending", "ExceedsMaxQuota"]


NEGATIVE = [flavor(), *queue(CPU), workload("w", {"cpu": -1}), workload("v", {"cpu": 1}, second=1)]


@pytest.mark.parametrize("trusted", [False, True])
def test_an_object_that_the_new_release_refuses(trusted: bool) -> None:
    found = upgraded(*NEGATIVE, new="0.20.0-devel", trusted=trusted)
    (refusal,) = found.refusals
    assert refusal.problem.object is not None
    assert (refusal.problem.object.key, refusal.is_warning) == ("default/w", False)
    assert [switch.name for switch in refusal.switches] == ["WorkloadValidateResourcesAreNonNegative"]
    # It is there already in a dump, but cannot be created anew.
    assert (("Workload", "default/w") in found.after.fates) == trusted


def test_what_both_refuse_is_an_error() -> None:
    with pytest.raises(ManifestError, match="should be greater than or equal to 0") as error:
        upgraded(flavor(), *queue(CPU), workload("w", {"cpu": 1}, count=-1))
    assert len(error.value.problems) == 1


def test_runs_are_limited() -> None:
    found = upgraded(*LABELS, most_runs=2)
    assert (found.n_runs, found.is_stopped, found.causes[0].names) == (2, True, ())


def test_progress_counts_runs_and_differences() -> None:
    seen: list[tuple[int, int, int]] = []
    found = upgraded(*LABELS, progress=lambda *counts: seen.append(counts))
    assert [runs for runs, _, _ in seen] == list(range(found.n_runs))
    assert {all_of_them for _, _, all_of_them in seen} == {len(found.causes[0].differences)}


def test_all_switches_together_make_one_release_of_the_other() -> None:
    old, new = Configuration(release="0.16"), Configuration(release="0.19")
    switches = switches_between(old, new)
    as_old = new.switched({switch.name: switch.before for switch in switches})
    assert switches_between(old, as_old) == ()
    assert {switch.kind for switch in switches} == {SwitchKind.GATE, SwitchKind.CHANGE}


def test_the_smallest_set_of_switches_is_found_once_for_all() -> None:
    old, new = Configuration(release="0.16"), Configuration(release="0.19")
    switches = switches_between(old, new)
    wanted = {"AdmissionGatedBy", "TASHandleOverlappingFlavors"}
    n_runs = 0

    def run(configuration: Configuration) -> bool:
        nonlocal n_runs
        n_runs += 1
        return all(configuration.is_enabled(name) for name in wanted)

    mixtures = Mixtures(old, new, switches, run)
    assert {switch.name for switch in mixtures.cause(bool)} == wanted
    before = n_runs
    assert {switch.name for switch in mixtures.cause(bool)} == wanted
    assert n_runs == before
    with pytest.raises(OutOfRunsError):
        Mixtures(old, new, switches, run, most=0).cause(bool)
