"""The release of Kueue that decides in each cluster of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore import ManifestError
from kueuecore.releases import DEFAULT_RELEASE, UnknownReleaseError
from kueuecore.scenarios import Scenario, parse_edit, read_scenario, run_scenario
from kueuecore.studies.fingerprints import scenario_key
from tests.command import JOB, QUEUES

WORK = "work: [{name: one, job: job.yaml, count: 1, runs: 1m}]"
SCENARIO = "apiVersion: kueuecore/v1\nkind: Scenario\ncluster: {objects: [queues.yaml], kueue: %s}\n" + WORK
FLEET = Path(__file__).parents[3] / "examples" / "multikueue" / "scenario.yaml"

# Reads a scenario in whose cluster this decides.
Read = Callable[..., Scenario]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"queues.yaml": QUEUES, "job.yaml": JOB % ("one", 1)}.items():
        Path(name).write_text(text, encoding="utf-8")
    return Path("scenario.yaml")


@pytest.fixture
def read(file: Path) -> Read:
    def read(kueue: str, *edits: str, **options: str) -> Scenario:
        file.write_text(SCENARIO % kueue, encoding="utf-8")
        return read_scenario(file, edits=[parse_edit(edit) for edit in edits], **options)  # type: ignore[arg-type]

    return read


@pytest.mark.parametrize(
    ("kueue", "name"), [('"0.17"', "0.17.8"), ("0.17", "0.17.8"), ("v0.18.2", "0.18.2"), ("null", DEFAULT_RELEASE)]
)
def test_a_cluster_names_its_release(kueue: str, name: str, read: Read) -> None:
    assert read(kueue).release.name == name


def test_the_run_decides_as_it(read: Read) -> None:
    run = run_scenario(read("0.17.3")).run
    assert run is not None
    assert run.engine.configuration.release.name == "0.17.3"


def test_its_configuration_is_read_as_that_release(file: Path) -> None:
    text = SCENARIO % "0.17, configuration: {featureGates: {LendingLimit: true}}"
    file.write_text(text, encoding="utf-8")
    assert read_scenario(file).cluster.configuration.is_enabled("LendingLimit")
    file.write_text(text.replace("0.17", "0.19"), encoding="utf-8")
    with pytest.raises(ManifestError, match=r"LendingLimit; Kueue 0\.19 removed it"):
        read_scenario(file)


@pytest.mark.parametrize(
    ("kueue", "message", "remedy"),
    [
        ("'0.15.2'", "kueuecore does not know the release 0.15.2 of Kueue", "write 0.16.9"),
        ("0.20", "kueuecore does not know the release 0.2 of Kueue", "write it in quotes: as a number, 0.20 is 0.2"),
        ("[0.17]", "not a release of Kueue", 'write its version, such as "0.17" or "0.17.3"'),
        ("true", "not a release of Kueue", 'write its version, such as "0.17" or "0.17.3"'),
    ],
)
def test_what_is_no_release_is_refused_with_its_line(kueue: str, message: str, remedy: str, read: Read) -> None:
    with pytest.raises(ManifestError) as caught:
        read(kueue)
    problem = caught.value.problems[0]
    assert (problem.field, problem.line, problem.message, problem.remedy) == ("cluster.kueue", 3, message, remedy)


def test_an_argument_goes_before_the_file_and_another_after_it(read: Read) -> None:
    assert read("0.17", release="0.18").release.name == "0.18.6"
    assert read("0.17", default_release="0.18").release.name == "0.17.8"
    assert read("null", default_release="0.18").release.name == "0.18.6"
    # An edit is meant for this run.
    assert read("0.17", "cluster.kueue=0.16.2", release="0.18").release.name == "0.16.2"
    with pytest.raises(UnknownReleaseError):
        read("0.17", release="0.5")


def test_each_cluster_of_a_fleet_has_its_own() -> None:
    edits = [parse_edit("fleet.manager.kueue=0.18"), parse_edit("fleet.workers.east.kueue=0.17")]
    scenario = read_scenario(FLEET, edits=edits)
    workers = {name: release.name for name, release in scenario.worker_releases.items()}
    assert (scenario.release.name, workers) == ("0.18.6", {"east": "0.17.8", "west": DEFAULT_RELEASE})
    scenario = read_scenario(FLEET, release="0.19")
    assert {release.name for release in (scenario.release, *scenario.worker_releases.values())} == {"0.19.2"}


def test_scenarios_of_different_releases_have_different_fingerprints(read: Read) -> None:
    assert scenario_key(read("0.17")) == scenario_key(read("'0.17.8'"))
    assert scenario_key(read("0.17")) != scenario_key(read("0.18"))
