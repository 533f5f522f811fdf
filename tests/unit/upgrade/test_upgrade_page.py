"""docs/upgrade.md names gates, fields and sources that exist, and its commands work."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from kueuecore.cli import main
from kueuecore.configuration import feature_gates
from kueuecore.releases import Release, changes
from kueuecore.releases.upgrade_rows import UpgradeRow, upgrade_rows
from scripts.upgrade_page import LEFT_OUT, is_new, page, played_by

HERE = Path(__file__).parent
DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "upgrade.md").read_text(encoding="utf-8")
WORLDS = (DOCS / "upgrade-worlds.md").read_text(encoding="utf-8")
GATES = {gate.name: gate for gate in feature_gates()}


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def table(text: str) -> list[list[str]]:
    """The rows below the head of the first table, cell by cell."""
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip().replace("\\|", "|") for cell in row] for row in rows[2:]]


CHANGES = [row for title in re.findall(r"^## (0\.\d+ to .*)$", PAGE, re.M) for row in table(section(title))]
GONE = {row[0] for row in table(section("Gates that are gone"))}
NAMED = {name for text in (PAGE, WORLDS) for name in re.findall(r"\b[Gg]ates? ([A-Z]\w+)", text)}
GREPS = sorted({grep for row in CHANGES for grep in re.findall(r"`(grep [^`]+\.yaml)`", row[2])})


def test_the_page_is_what_make_upgrade_page_writes() -> None:
    assert page() == PAGE, "run `make upgrade-page`"


def test_the_page_has_changes_of_five_versions() -> None:
    assert len(re.findall(r"^## 0\.\d+ to ", PAGE, re.M)) == 5
    assert len(CHANGES) > 130
    assert all(len(row) == 5 and all(row) for row in CHANGES)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_gate_that_is_named_exists_or_is_gone(name: str) -> None:
    assert (name in GATES) != (name in GONE)


@pytest.mark.parametrize("row", upgrade_rows(), ids=lambda row: f"{row.line} #{row.pulls[0]}")
def test_a_row_names_gates_and_releases_that_play_it(row: UpgradeRow) -> None:
    assert set(row.gates) <= GATES.keys() | GONE
    # A gate of which a row says more than its name is one that it lists.
    assert set(re.findall(r"\(gate (\w+)", row.text)) <= set(row.gates)
    for change in played_by(row)[1]:
        assert all(first.removesuffix("-devel") in row.since for first in change.since), change.name


def test_a_row_of_the_newest_release_says_how_it_is_known() -> None:
    ranks = ["read", "proposal", "changelog"]
    old = {gate.name: gate for gate in Release.named("0.20-dev").feature_gates()}
    new = {gate.name for gate in Release.named("0.20.0").feature_gates() if gate != old.get(gate.name)}
    for row in upgrade_rows():
        proofs = [change.proof for change in played_by(row)[1] if is_new(change)]
        is_of_new_gates = row.line == "0.20" and bool(new & {*row.gates})
        assert bool(row.known) or not (proofs or is_of_new_gates), row.text
        assert ranks.index(row.known or "read") >= max(map(ranks.index, proofs), default=0), row.text


def test_every_gate_that_the_newest_release_changes_has_a_row() -> None:
    old = Release.named("0.20-dev").default_gates()
    changed = {name for name, is_on in Release.named("0.20.0").default_gates().items() if is_on != old[name]}
    in_rows = {name for row in upgrade_rows() if row.known for name in row.gates}
    assert changed - in_rows <= LEFT_OUT


def test_every_change_is_on_the_page() -> None:
    played = [name for row in CHANGES for name in re.findall(r"\w+", row[3])]
    assert {change.name for change in changes()} <= set(played)


def test_what_is_called_off_is_off() -> None:
    for row in upgrade_rows():
        if row.text.startswith("New, off"):
            on = {gate.name for gate in Release.named(f"{row.line}.0").feature_gates() if gate.default}
            assert not on & set(row.gates)


@pytest.mark.parametrize("name", sorted(GONE))
def test_a_gate_that_is_gone_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kueue.yaml").write_text(
        f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfeatureGates: {{{name}: true}}\n",
        encoding="utf-8",
    )
    Path("cluster.yaml").write_text("", encoding="utf-8")
    code = main(["run", "cluster.yaml", "--config", "kueue.yaml"])
    said = capsys.readouterr().err
    assert code == 2
    assert f"unrecognized feature gate: {name}" in said


def test_the_command_reads_the_files_that_are_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kueue.yaml").symlink_to(HERE / "kueue.yaml")
    (tmp_path / "cluster.yaml").symlink_to(HERE / "cluster.yaml")
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^ +kueuecore (upgrade .*)$", PAGE, re.M)
    assert main(command.split()) == 0
    assert capsys.readouterr().out.startswith("Kueue v0.19.2 -> v0.20.0: ")


def test_the_files_that_are_searched_are_of_kueue(capsys: pytest.CaptureFixture[str]) -> None:
    configuration = str(HERE / "kueue.yaml")
    for options in (["--trusted", str(HERE / "cluster.yaml")], [str(HERE / "jobs.yaml")]):
        assert main(["run", *options, "--config", configuration]) == 0
        assert "unknown field" not in capsys.readouterr().err


@pytest.mark.parametrize("command", GREPS)
def test_a_command_finds_what_it_is_for(command: str, tmp_path: Path) -> None:
    gate = re.search(r"FlavorFungibilityImplicit\w+|SchedulerLong", command)
    if gate:
        # Kueue refuses the gate, and so does kueuecore: no file read here sets it.
        assert any(name.startswith(gate[0]) for name in GONE)
        (tmp_path / "kueue.yaml").write_text(f"featureGates:\n  {gate[0]}: true\n", encoding="utf-8")
    found = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path if gate else HERE, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert re.match(r"\d+:", found.stdout)


@pytest.mark.parametrize("command", GREPS)
def test_a_command_finds_nothing_in_a_plain_cluster(command: str, tmp_path: Path) -> None:
    for name, text in {
        "kueue.yaml": "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n",
        "jobs.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: alone\n",
        "cluster.yaml": "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata:\n  name: default\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode == 1


def test_sources_are_pull_requests_of_kueue() -> None:
    text, links = PAGE[: PAGE.index("\n[#")], PAGE[PAGE.index("\n[#") :]
    defined = dict(
        re.findall(r"^\[#(\d+)\]: https://github\.com/kubernetes-sigs/kueue/(?:pull|issues)/(\d+)$", links, re.M)
    )
    links, last = links.strip().split("\n\n")
    assert len(defined) == len(links.split("\n"))
    assert last.startswith("Next: ")
    assert all(number == target for number, target in defined.items())
    assert defined.keys() == set(re.findall(r"\[#(\d+)\]", text))
    assert all(re.search(r"\[#\d+\]", row[4]) for row in CHANGES)
    for other in re.findall(r"\((https?://[^)]+)\)", text):
        assert re.match(r"https://github\.com/kubernetes-sigs/kueue/blob/(main|v[0-9.]+)/[\w./-]+$", other)


def test_links_within_the_documentation_have_a_target() -> None:
    for file, _, anchor in (link.partition("#") for link in re.findall(r"\]\(([^):]+)\)", PAGE + WORLDS)):
        text = (DOCS / file).read_text(encoding="utf-8")
        titles = re.findall(r"^#+ (.*)$", text, re.M)
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


WORLD = re.split(r"^## ", WORLDS, flags=re.MULTILINE)[1:]


def test_every_world_is_named_on_the_page() -> None:
    assert {re.sub(r"[^\w -]", "", world.splitlines()[0].lower()).replace(" ", "-") for world in WORLD} == set(
        re.findall(r"upgrade-worlds\.md#([\w-]+)", PAGE)
    )


def run(command: str, manifests: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What a command of a world prints: `kueuecore … [| head -n N]`."""
    words = re.findall(r"kueuecore ([^|]*)", command)[0].split()
    Path(words[-1]).write_text(manifests, encoding="utf-8")
    main([*words[:-1], f"./{words[-1]}"])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    cut = re.search(r"\| (head|tail) -n (\d+)$", command)
    if cut is None:
        return lines
    return lines[: int(cut[2])] if cut[1] == "head" else lines[-int(cut[2]) :]


@pytest.mark.parametrize("world", WORLD, ids=[world.splitlines()[0] for world in WORLD])
def test_a_world(
    world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    anomalies = (DOCS / "anomalies.md").read_text(encoding="utf-8")
    Path("fair-sharing.yaml").write_text(re.findall(r"```yaml\n(.*?)```", anomalies, re.S)[0], encoding="utf-8")
    (manifests,) = re.findall(r"^```yaml\n(.*?)^```", world, re.M | re.S)
    assert len(list(yaml.safe_load_all(manifests))) > 3
    shown = re.findall(r"^```console\n\$ (.*)\n((?:.*\n)*?)```", world, re.M)
    reported = [run(command, manifests, capsys) for command, _ in shown]
    assert reported == [[line.rstrip() for line in expected.splitlines()] for _, expected in shown]
    assert len(reported) == 2
    assert reported[0] != reported[1]
