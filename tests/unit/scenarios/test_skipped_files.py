"""A scenario may name a directory with files of other tools, which a note names."""

from __future__ import annotations

from pathlib import Path

from kueuecore.scenarios import read_scenario, run_scenario
from tests.command import QUEUES

SCENARIO = """
apiVersion: kueuecore/v1
kind: Scenario
until: 1h
"""


def test_what_is_no_object_in_a_directory_is_skipped_with_a_note(tmp_path: Path) -> None:
    folder = tmp_path / "queues"
    folder.mkdir()
    (folder / "queues.yaml").write_text(QUEUES, encoding="utf-8")
    for number in range(10):
        (folder / f"values-{number}.yaml").write_text("image: {tag: v1}\n", encoding="utf-8")
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO + "cluster: {objects: [queues]}\n", encoding="utf-8")
    names = ", ".join(str(folder / f"values-{number}.yaml") for number in range(8))
    note = f"skipped what is not a Kubernetes object: {names} and 2 more"
    assert run_scenario(read_scenario(path)).notes == (note,)
    source = "{clusterSource: {kubeConfig: {location: east-secret, locationType: Secret}}}"
    east = f"{{apiVersion: kueue.x-k8s.io/v1beta2, kind: MultiKueueCluster, metadata: {{name: east}}, spec: {source}}}"
    fleet = f"fleet: {{manager: {{objects: [{east}]}}, workers: {{east: {{objects: [queues]}}}}}}\n"
    path.write_text(SCENARIO + fleet, encoding="utf-8")
    assert run_scenario(read_scenario(path)).notes == (note,)
