"""Names, values and messages of objects in what people read: one line each, nothing for a terminal, never megabytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.cli.table import Painted, Style, table
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.manifests import object_ref, parse_manifests
from tests.command import Ran

# A C0 control, a line end, DEL, a C1 control, a line separator, a change of direction, and one that is invisible.
ODD = "a\x1b[31m\n\x7f\x9b\u2028\u202e\U000e0041"
SHOWN = r"a\x1b[31m\n\x7f\u009b\u2028\u202e\U000e0041"
LONG = "x" * 1_000_000
CUT = f"{'x' * 253}..."


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs the command in a folder with the objects in `in.json`."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, objects: list[Any] | None = None) -> Ran:
        Path("in.json").write_text("\n".join(map(json.dumps, objects or [])), encoding="utf-8")
        return Ran(main(arguments), *capsys.readouterr())

    return run


def kueue(kind: str, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, **fields}


def world(text: str) -> list[dict[str, Any]]:
    """A dump in which every name is the text."""
    quota = {"name": text, "resources": [{"name": text, "nominalQuota": 1, "borrowingLimit": 1}]}
    groups = [{"coveredResources": [text], "flavors": [quota]}]
    condition = {
        "type": "Finished", "status": "True", "reason": text, "message": f"it is {text}",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    check = {"name": text, "state": "Pending", "message": text, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    container = {"name": "c", "resources": {"requests": {text: 1}}}
    spec = {
        "queueName": text,
        "podSets": [{"name": text, "count": 1, "template": {"spec": {"containers": [container]}}}],
    }
    owned = kueue("Workload", f"owned{text}", text, spec=spec)
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": text, "name": text, "uid": "u"}]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": text}},
        kueue("ResourceFlavor", text),
        kueue("ClusterQueue", text, spec={"cohortName": text, "namespaceSelector": {}, "resourceGroups": groups}),
        kueue("ClusterQueue", f"off{text}", spec={"admissionChecks": [text], "resourceGroups": groups}),
        kueue("AdmissionCheck", text, spec={"controllerName": text}),
        kueue("LocalQueue", text, text, spec={"clusterQueue": text}),
        kueue("Workload", text, text, spec=spec, status={"conditions": [condition], "admissionChecks": [check]}),
        owned,
        {"apiVersion": "example.com/v1", "kind": text, "metadata": {"name": text}},
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["table", "wide"])
def test_tables_and_notes_escape_what_does_not_print(command: Callable[..., Ran], form: str) -> None:
    ran = command("run", "--trusted", "--events", "-o", form, "in.json", objects=world(ODD))
    assert ran.code == ExitCode.OK
    for text in (ran.out, ran.err):
        assert SHOWN in text
        assert all(line.isprintable() for line in text.split("\n"))
    # As many lines as with names that print.
    plain = command("run", "--trusted", "--events", "-o", form, "in.json", objects=world("a"))
    assert (ran.out.count("\n"), ran.err.count("\n")) == (plain.out.count("\n"), plain.err.count("\n"))


def test_data_stay_data(command: Callable[..., Ran]) -> None:
    for text in (ODD, "x" * 10_000, "a/b " * 1000):
        document = json.loads(command("run", "--trusted", "-q", "-o", "json", "in.json", objects=world(text)).out)
        assert {workload["name"] for workload in document["workloads"]} == {text, f"owned{text}"}
        dumped = command("run", "--trusted", "-q", "-o", "yaml", "in.json", objects=world(text)).out
        assert all(line.isprintable() for line in dumped.split("\n"))
        names = [object_ref(manifest.object).name for manifest in parse_manifests(dumped)]
        assert names == [row["metadata"]["name"] for row in world(text)]


@pytest.mark.parametrize("form", ["table", "wide"])
def test_long_names_are_cut_in_tables_and_notes(command: Callable[..., Ran], form: str) -> None:
    for text, cut in [(LONG, CUT), ("x y " * 250_000, f"{'x y ' * 63}x...")]:
        ran = command("run", "--trusted", "--events", "-o", form, "in.json", objects=world(text)[:6] + world(text)[7:])
        assert ran.code == ExitCode.OK
        assert cut in ran.out
        assert cut in ran.err
        assert len(ran.out) < 500_000
        assert len(ran.err) < 2_000


def test_a_name_that_kubernetes_takes_is_never_cut(command: Callable[..., Ran]) -> None:
    namespace, name = "n" * 63, "w" * 253
    workload = kueue("Workload", name, namespace, spec={"queueName": "lq", "podSets": [{"count": 1, "template": {}}]})
    ran = command("run", "--trusted", "in.json", objects=[workload])
    assert f"{namespace}/{name}  lq" in ran.out
    assert str(ObjectRef("Workload", name, namespace)) == f'Workload "{namespace}/{name}"'
    label = f"metadata.labels[{'p' * 230}/{'k' * 63}]"
    assert str(Problem(f"unknown field {label}", field=label)) == f"{label}: unknown field {label}"


def test_a_problem_is_one_line(command: Callable[..., Ran]) -> None:
    queue = kueue("LocalQueue", ODD, ODD, spec={"clusterQueue": ODD, ODD: ODD, "stopPolicy": ODD})
    queue["metadata"]["labels"] = {ODD: ODD}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": ODD}},
    }
    for objects in ([queue], [job], [kueue(ODD, "a")], [{"kind": ODD}], [ODD], [{ODD: 1}]):
        ran = command("run", "in.json", objects=objects)
        *problems, last = ran.err.splitlines()
        assert ran.code == ExitCode.BAD_INPUT
        assert all(line.startswith(("in.json:1", "warning: in.json:1")) and line.isprintable() for line in problems)
        assert last.startswith("kueuecore: ")


def test_long_values_are_cut_in_problems(command: Callable[..., Ran]) -> None:
    for text in (LONG, "x " * 500_000, '"x" ' * 250_000):
        queue = kueue("LocalQueue", text, "a", spec={"clusterQueue": text, text: text, "stopPolicy": text})
        queue["metadata"]["labels"] = {text: text}
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": text}},
        }
        for objects in ([queue], [job], [kueue(text, "a")], [kueue("Workload", "w", spec={"podSets": text})]):
            ran = command("run", "in.json", objects=objects)
            assert ran.code == ExitCode.BAD_INPUT
            assert all(len(line) < 3000 for line in ran.err.splitlines())


def test_python_and_rust_quote_and_cut_alike() -> None:
    text = f'{ODD}"\\' + "y" * 300
    queue = kueue("LocalQueue", text, "a", spec={"clusterQueue": "cq"})
    with pytest.raises(ManifestError) as caught:
        Engine().apply(queue)
    problem = next(problem for problem in caught.value.problems if problem.field == "metadata.name")
    value = SHOWN + r"\"\\" + "y" * (253 - len(ODD) - 2) + "..."
    assert problem.message.startswith(f'Invalid value: "{value}": ')
    assert str(problem.object) == f'LocalQueue "a/{value}"'
    assert problem.value == text


@pytest.mark.parametrize(
    "arguments",
    [
        ["absent\x1b[2J"], ["--feature-gates", ODD, "in.json"], ["--feature-gates", f"{ODD}=true", "in.json"],
        ["--now", ODD, "in.json"], ["--config", f"absent{ODD}", "in.json"], ["-o", ODD, "in.json"],
        ["in.json", f"--{ODD}"], ["in.json", f"--output{ODD}"], ["-R", "absent\udcff"],
    ],
)  # fmt: skip
def test_what_was_typed_is_escaped(command: Callable[..., Ran], arguments: list[str]) -> None:
    ran = command("run", *arguments, objects=[])
    assert ran.code == ExitCode.BAD_INPUT
    assert r"\x1b" in ran.err or r"\xff" in ran.err
    assert all(line.isprintable() for line in ran.err.splitlines())


def test_syntax_errors_are_one_line(command: Callable[..., Ran]) -> None:
    for text in (
        f"a: [{ODD}",
        f"*{LONG}",
        f"a: &{LONG} *y",
        "%\x85",
        '{"a": "\x1b"}',
        f"!<{LONG}> a",
        f"? {LONG}\n: :",
    ):
        Path("in.yaml").write_text(text, encoding="utf-8")
        ran = command("run", "in.yaml")
        assert ran.code == ExitCode.BAD_INPUT
        assert all(line.isprintable() and len(line) < 1000 for line in ran.err.split("\n"))


def test_columns_do_not_grow_with_one_long_cell() -> None:
    rows = [["a", "b " * 100_000, "c"], *([["a", "b", "c"]] * 1000)]
    assert len(table(["NAME", "FLAVORS", "MESSAGE"], rows, Style())) < 300_000


def test_a_message_of_spaces_fits_a_terminal() -> None:
    shown = table(["N", "MESSAGE"], [["a", " " * 100]], Style(width=60))
    assert shown == "N  MESSAGE\na"
    assert table(["N", "S"], [[Painted("a", "red"), "\x1b[2J"]], Style(color=True)).endswith(
        "\x1b[31ma\x1b[0m  \\x1b[2J"
    )
