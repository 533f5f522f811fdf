"""The smallest dump that still shows a decision."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kueuecore import World, read_manifests
from kueuecore.cli import main
from kueuecore.dumps import Admits, Deciding, KeepsPending, Preempts, Showing, Shrunk, Unsettled, shrink
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.testing import START
from kueuecore.testing.drawn_contests import random_contest
from tests.command import Ran

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
LOOP = (ROOT / "docs/anomalies.md").read_text(encoding="utf-8").split("## Preemption comes to an end")[1]
LOOP = LOOP.split("```yaml\n")[1].split("```")[0]
SHOWN = [
    ("taking-back", Preempts(preemptor="team-a/release-build", victim="team-b/sweep")),
    ("taking-back", KeepsPending(name="team-b/report")),
    ("two-teams", KeepsPending(name="team-a/release-build")),
    ("two-teams", KeepsPending(name="team-b/everything-at-once", message="maximum capacity")),
    ("two-teams", Admits(name="team-b/hotfix")),
    ("topology", KeepsPending(name="research/pretrain")),
    ("topology", Admits(name="research/tune")),
]


def given(folder: str) -> tuple[tuple[Manifest, ...], Deciding]:
    manifests = read_manifests(EXAMPLES / folder)
    return manifests, Deciding(now=World.of(manifests).newest_time() or 0)


def still_shows(objects: tuple[Manifest, ...], deciding: Deciding, wanted: Showing) -> bool:
    try:
        return wanted.is_in(deciding.of(objects))
    except ManifestError:
        return False


def assert_minimal(found: Shrunk, deciding: Deciding, wanted: Showing) -> None:
    """It shows it, and without any one object it does not."""
    objects = tuple(map(Manifest, found.objects))
    assert still_shows(objects, deciding, wanted)
    for index in range(len(objects)):
        assert not still_shows(objects[:index] + objects[index + 1 :], deciding, wanted), objects[index].object


@pytest.mark.parametrize(("folder", "showing"), SHOWN)
def test_every_object_left_is_needed(folder: str, showing: Showing) -> None:
    manifests, deciding = given(folder)
    wanted = showing.as_in(deciding.of(manifests))
    found = shrink(manifests, deciding, showing)
    assert len(found.objects) < len(manifests)
    assert_minimal(found, deciding, wanted)
    assert shrink(manifests, deciding, showing) == found


def test_preemptions_of_random_contests_shrink() -> None:
    n_shrunk = 0
    for seed in range(30):
        history = random_contest(seed)
        moves = (move.object for move in history.moves if move.object is not None and move.object["kind"] == "Workload")
        manifests = [Manifest(object_) for object_ in (*history.objects, *moves)]
        settings = history.parsed_configuration()
        deciding = Deciding(configuration=settings, now=START, trusted=True, max_cycles=100)
        preemptions = deciding.of(manifests).preemptions
        if not preemptions or len(manifests) > 30 or n_shrunk == 4:
            continue
        showing = Preempts(preemptor=preemptions[0].preemptor, victim=preemptions[0].key)
        wanted = showing.as_in(deciding.of(manifests))
        assert_minimal(shrink(manifests, deciding, showing), deciding, wanted)
        n_shrunk += 1
    assert n_shrunk > 3


def test_an_unsettled_dump_stays_unsettled() -> None:
    manifests = parse_manifests(LOOP)
    deciding = Deciding(now=0)
    extra = parse_manifests("{apiVersion: v1, kind: Namespace, metadata: {name: else}}")
    found = shrink([*manifests, *extra], deciding, Unsettled())
    assert len(found.objects) == len(manifests)
    assert_minimal(found, deciding, Unsettled())


def test_fields_flavors_and_numbers_go_too() -> None:
    manifests, deciding = given("two-teams")
    found = shrink(manifests, deciding, Admits(name="team-b/hotfix"))
    (job,) = (object_ for object_ in found.objects if object_["kind"] == "Job")
    assert job["spec"] == {
        "template": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "600m"}}}]}}
    }
    (queue,) = (
        object_
        for object_ in found.objects
        if object_["kind"] == "ClusterQueue" and object_["metadata"] == {"name": "team-b"}
    )
    assert "namespaceSelector" in queue["spec"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("showing", "problem"),
    [
        (KeepsPending(name="team-b/hotfix"), "team-b/hotfix is not pending; it is Admitted"),
        (KeepsPending(name="team-b/benchmark", message="x y"), 'team-b/benchmark is not pending with "x y"'),
        (
            Admits(name="team-b/benchmark"),
            "team-b/benchmark is not admitted; it is Pending: couldn't assign",
        ),
        (Admits(name="team-b/none"), 'there is no Workload and no job "team-b/none"; write one of team-a/'),
        (Preempts(preemptor="team-a/notebook", victim="team-b/lint"), "there are no preemptions here"),
        (Unsettled(), "it settles"),
    ],
)
def test_a_decision_that_the_dump_does_not_show_is_an_error(showing: Showing, problem: str) -> None:
    manifests, deciding = given("two-teams")
    with pytest.raises(ManifestError, match=re.escape(problem)):
        shrink(manifests, deciding, showing)


def test_ctrl_c_writes_the_smallest_so_far() -> None:
    manifests, deciding = given("two-teams")

    def stop(n_tries: int, n_objects: int) -> None:
        if n_objects < 10:
            raise KeyboardInterrupt

    found = shrink(manifests, deciding, Admits(name="team-b/hotfix"), progress=stop)
    assert found.is_interrupted
    assert len(found.objects) < 10
    assert Admits(name="team-b/hotfix").is_in(deciding.of(map(Manifest, found.objects)))


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Ran:
    return Ran(main(list(map(str, arguments))), *capsys.readouterr())


def test_the_command_writes_what_run_reads(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "small.yaml"
    names = ("--preempts", "team-a/release-build", "team-b/sweep")
    ran = run(capsys, "shrink", EXAMPLES / "taking-back", *names, "-o", out)
    assert (ran.code, ran.out) == (0, "")
    assert re.fullmatch(r"note: 7 of 9 objects are left, after \d+ tries\n", ran.err)
    head = out.read_text().splitlines()[0]
    assert head == "# kueuecore run --now 2026-01-01T09:30:00Z"
    after = json.loads(run(capsys, *head.split()[2:], out, "-o", "json").out)
    assert {(preemption["name"], preemption["reason"]) for preemption in after["preemptions"]} >= {
        ("sweep", "InCohortReclamation")
    }
    again = run(capsys, "shrink", EXAMPLES / "taking-back", *names, "-q")
    assert (again.out, again.err) == (out.read_text(), "")


def test_a_shrunk_dump_can_be_anonymised(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").write_text(LOOP, encoding="utf-8")
    run(capsys, "shrink", tmp_path / "loop.yaml", "--unsettled", "-o", tmp_path / "small.yaml")
    ran = run(capsys, "anonymise", tmp_path / "small.yaml", "-q")
    assert ran.code == 0
    assert "guest" not in ran.out
    (tmp_path / "shared.yaml").write_text(ran.out, encoding="utf-8")
    assert run(capsys, "run", tmp_path / "shared.yaml").code == 3


def test_contradictory_options_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    folder = EXAMPLES / "two-teams"
    assert run(capsys, "shrink", folder, "--unsettled", "--message", "x").code == 2
    assert run(capsys, "shrink", folder, "--unsettled", "--admitted", "a/b").code == 2
    assert run(capsys, "shrink", folder).code == 2
    ran = run(capsys, "shrink", folder, "--pending", "team-b/hotfix")
    assert (ran.code, ran.out) == (2, "")
    assert "team-b/hotfix is not pending; it is Admitted" in ran.err


def test_other_cohort_trees_are_removed_at_once() -> None:
    copies = [
        Manifest(
            json.loads(
                json.dumps(manifest.object).replace("team-", f"tree-{number}-").replace("company", f"co-{number}")
            )
        )
        for number in range(20)
        for manifest in read_manifests(EXAMPLES / "two-teams")
        if manifest.object["kind"] != "WorkloadPriorityClass" and manifest.object["kind"] != "ResourceFlavor"
    ]
    manifests, deciding = given("two-teams")
    alone = shrink(manifests, deciding, KeepsPending(name="team-a/release-build"))
    found = shrink([*copies, *manifests], deciding, KeepsPending(name="team-a/release-build"))
    assert found.objects == alone.objects
    assert found.n_tries < alone.n_tries + 10
