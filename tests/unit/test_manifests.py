from __future__ import annotations

import io
import json
import pickle
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.manifests import Manifest, located, parse_manifests, read_manifests, to_json_lines
from kueuecore.objects import LocalQueue
from kueuecore.policy_tests.policy_test_reader import read_policy_tests
from kueuecore.scenarios.scenario_reader import read_scenario
from kueuecore.traces.rule_reader import read_rules

TWO_DOCUMENTS = """\
# quota of the team
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata:
  name: spot
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: a
  labels:
    example.com/team: a
spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: default
      resources:
      - name: cpu
        nominalQuota: 9
    - name: spot
      resources: [{name: cpu, nominalQuota: 0.5}]
"""


def _only(text: str | bytes, file: str = "a.yaml") -> Problem:
    with pytest.raises(ManifestError) as caught:
        parse_manifests(text, file=file)
    assert len(caught.value.problems) == 1, caught.value
    return caught.value.problems[0]


def _data(text: str) -> object:
    """The value of `data` in an object that has it."""
    return parse_manifests(f"apiVersion: v1\nkind: ConfigMap\ndata: {text}\n")[0].object["data"]


def test_documents_of_a_text_come_in_order_as_plain_data() -> None:
    flavor, queue = parse_manifests(TWO_DOCUMENTS, file="queues.yaml")
    assert flavor.object == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "spot"},
    }
    assert str(flavor.source) == "queues.yaml:2 (document 1)"
    assert str(queue.source) == "queues.yaml:7 (document 2)"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 7),
        ("kind", 8),
        ("metadata.labels[example.com/team]", 12),
        ("metadata.labels.example.com/team", 12),
        ("spec.resourceGroups[0].flavors[1].name", 21),
        ("spec.resourceGroups[0].flavors[0].resources[0].nominalQuota", 20),
        ("spec.resourceGroups[0].flavors[7].name", 16),
        ("spec.cohortName", 13),
        ("metadata.names", 9),
        ("status", 7),
    ],
)
def test_line_of_a_field_or_of_what_should_contain_it(path: str, line: int) -> None:
    assert parse_manifests(TWO_DOCUMENTS)[1].source.line_of(path) == line


def test_empty_documents_are_left_out_and_counted() -> None:
    (manifest,) = parse_manifests("---\n---\n# nothing\n---\napiVersion: v1\nkind: Namespace\n---\n")
    assert manifest.source.document == 3
    assert parse_manifests("") == ()


def test_lists_are_flattened() -> None:
    text = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata: {name: a}
- apiVersion: batch/v1
  kind: JobList
  items:
  - metadata: {name: j}
    spec:
      parallelism: 3
"""
    namespace, job = parse_manifests(text)
    assert namespace.object["kind"] == "Namespace"
    assert (job.object["apiVersion"], job.object["kind"]) == ("batch/v1", "Job")
    assert (namespace.source.line, job.source.line) == (4, 10)
    assert job.source.line_of("spec.parallelism") == 12


def test_json_of_kubectl_has_lines_too() -> None:
    plain = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {}}]}
    (manifest,) = parse_manifests(json.dumps(plain, indent=4), file="list.json")
    assert manifest.object == plain["items"][0]
    assert manifest.source.line_of("metadata") == 8


def test_json_lines_are_read_back() -> None:
    manifests = parse_manifests(TWO_DOCUMENTS)
    again = parse_manifests(to_json_lines(manifests), file="all.jsonl")
    assert [manifest.object for manifest in again] == [manifest.object for manifest in manifests]
    assert [manifest.source.line for manifest in again] == [1, 2]
    assert again[1].source.line_of("spec.cohortName") == 2


def test_json_values_on_one_line_keep_their_own_fields() -> None:
    one, two = parse_manifests('{"apiVersion":"v1","kind":"A"} {"apiVersion":"v1",\n"kind":"B"}')
    assert (one.source.line_of("kind"), two.source.line_of("kind")) == (1, 2)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("y", True),
        ("'no'", "no"),
        ("1.0", 1),
        ("0755", 493),
        ("200m", "200m"),
        ("{1: a, true: b}", {"1": "a", "true": "b"}),
        ("{a: &x {b: 1}, c: *x}", {"a": {"b": 1}, "c": {"b": 1}}),
        ("{base: &x {b: 1, c: 2}, d: {<<: *x, c: 3}}", {"base": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
    ],
)
def test_values_are_those_of_kubernetes(text: str, value: object) -> None:
    found = _data(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (".nan", "JSON has no number .nan", 'write ".nan" for the string, or a number'),
        ("!!int x", 'Invalid value: "x": it is not a !!int', "remove the tag"),
    ],
)
def test_a_scalar_that_json_cannot_hold_is_an_error(text: str, message: str, remedy: str) -> None:
    problem = _only(f"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: [{{b: {text}}}]\n")
    assert (problem.field, problem.message, problem.remedy) == ("data.a[0].b", message, remedy)
    assert (problem.file, problem.document, problem.line, problem.column) == ("a.yaml", 1, 4, 11)


def test_a_key_that_no_json_object_can_have_is_an_error() -> None:
    problem = _only("apiVersion: v1\nkind: A\n~: {push: 1}\n")
    assert (problem.message, problem.remedy, problem.line) == ("the key '~' is not a string", 'write "~"', 3)


DUPLICATES = {
    "a.yaml": "apiVersion: v1\nkind: A\nspec:\n  a: 1\n  b: 2\n  a: 3\n",
    "a.json": '{"apiVersion": "v1",\n"kind": "A",\n"spec": {\n  "a": 1,\n  "b": 2,\n  "a": 3}}',
}


@pytest.mark.parametrize("file", DUPLICATES)
def test_of_duplicate_keys_the_last_one_counts_with_a_warning_that_names_both_lines(file: str) -> None:
    (manifest,) = parse_manifests(DUPLICATES[file], file=file)
    assert manifest.object["spec"] == {"a": 3, "b": 2}
    (warning,) = manifest.warnings
    assert (warning.object, warning.field, warning.file, warning.line) == (ObjectRef("A"), "spec.a", file, 6)
    assert warning.message == "duplicate key: the last one counts"
    assert warning.remedy == "remove one of them: the first is on line 4"
    assert Engine().apply([manifest]).warnings == manifest.warnings


@pytest.mark.parametrize("file", DUPLICATES)
def test_strict_reading_refuses_duplicate_keys(file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(DUPLICATES[file])
    with pytest.raises(ManifestError) as caught:
        read_manifests(tmp_path, strict=True)
    (problem,) = caught.value.problems
    assert (problem.object, problem.message, problem.line) == (ObjectRef("A"), "duplicate key", 6)
    with pytest.raises(TypeError, match="strict must be a bool"):
        parse_manifests("", strict="yes")  # type: ignore[arg-type]


CONFIGURATION = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nnamespace: a\nnamespace: b\n"
CONFIG_MAP = f"apiVersion: v1\nkind: ConfigMap\ndata:\n  a.yaml: |\n{textwrap.indent(CONFIGURATION, '    ')}"


@pytest.mark.parametrize(
    ("read", "text", "field"),
    [
        (Configuration.read, CONFIGURATION, "namespace"),
        (Configuration.read, CONFIG_MAP, "namespace"),
        (read_scenario, "kind: Scenario\nseed: 1\nseed: 2\napiVersion: kueuecore/v1alpha1\n", "seed"),
        (read_policy_tests, "kind: PolicyTest\nseed: 1\nseed: 2\napiVersion: kueuecore/v1alpha1\n", "seed"),
        (read_rules, "kind: TraceRules\ndefault: 1\ndefault: 2\napiVersion: kueuecore/v1alpha1\n", "default"),
    ],
)
def test_files_that_no_api_server_reads_have_no_duplicate_keys(
    read: Callable[[Path], object], text: str, field: str, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ManifestError) as caught:
        read(tmp_path / "a.yaml")
    (problem,) = caught.value.problems
    assert (problem.message, problem.field) == ("duplicate key", field)
    assert problem.remedy.startswith("remove one of them: the first is on line ")


def test_a_duplicate_key_in_a_list_belongs_to_its_item() -> None:
    item = "{apiVersion: v1, kind: A, metadata: {name: NAME}, a: {b.c/d: 1, b.c/d: 2}}"
    items = "".join(f"- {item.replace('NAME', name)}\n" for name in ("x", "z"))
    first, last = parse_manifests(f"apiVersion: v1\nkind: List\nkind: List\nitems:\n{items}")
    assert [(warning.object, warning.field, warning.line) for warning in first.warnings] == [
        (ObjectRef("A", "x"), "kind", 3),
        (ObjectRef("A", "x"), "a[b.c/d]", 5),
    ]
    assert [(warning.object, warning.field, warning.line) for warning in last.warnings] == [
        (ObjectRef("A", "z"), "a[b.c/d]", 6)
    ]


def test_all_problems_of_a_text_are_found_at_once() -> None:
    with pytest.raises(ManifestError) as caught:
        parse_manifests("kind: A\nb: .inf\n---\napiVersion: v1\nkind: B\nc: .nan\n---\n- a\n---\nx: [1\n")
    assert [(problem.document, problem.line) for problem in caught.value.problems] == [
        (1, 2),
        (1, 1),
        (2, 6),
        (3, 8),
        (4, 11),
    ]


@pytest.mark.parametrize(
    ("text", "line", "column", "remedy"),
    [
        ("a: b: c\n", 1, 5, "quote the value if it contains ': ', otherwise check the indentation"),
        ("a:\n\tb: c\n", 2, 1, "indent with spaces, not tabs; quote values that start with @, ` or %"),
        ("a: 'x\n", 2, 1, "close the quote"),
        ("a: *x\n", 1, 4, "define the anchor (&name) above the alias (*name), in the same document"),
        ("a: \x01\n", 1, 4, "remove the character, or write it as an escape in double quotes"),
        (
            "apiVersion: v1\nkind: A\n...\nb: 1\n",
            4,
            1,
            "remove a line `...` before it, or start the next object with a line ---",
        ),
        ("{{- if .x }}\na: 1\n", 1, 0, "this looks like a template: render it first, for example with `helm template`"),
    ],
)
def test_yaml_that_is_broken_names_place_and_remedy(text: str, line: int, column: int, remedy: str) -> None:
    problem = _only(text)
    assert problem.message.startswith("this is not YAML: ")
    assert problem.remedy == remedy
    if column:
        assert (problem.line, problem.column) == (line, column)


def test_template_that_happens_to_be_yaml_is_recognised() -> None:
    problem = _only("apiVersion: v1\nkind: A\nname: {{ .Values.name }}\n")
    assert (problem.field, problem.line) == ("name", 3)
    assert "helm template" in problem.remedy


def test_a_template_is_named_once() -> None:
    text = "apiVersion: v1\nkind: A\nname: {{ .Values.name }}\nspec: {a: {{ .a }}}\n"
    assert _only(f"{text}---\n{text}").field == "name"


def test_json_that_kubectl_reads_as_yaml_is_read() -> None:
    one, other = '{"apiVersion": "v1", "kind": "A", "a": 1,}\n', '{"apiVersion": "v1", "kind": "B"}'
    found = parse_manifests(f"{one}---\n{other}", file="a.json")
    assert [(manifest.object["kind"], manifest.source.document, manifest.source.line) for manifest in found] == [
        ("A", 1, 1),
        ("B", 2, 3),
    ]
    assert _only(f"{one}{other}", "a.json").message.startswith("this is not JSON: ")


def test_a_comment_may_follow_the_dashes_at_once() -> None:
    found = parse_manifests("---#1\n{apiVersion: v1, kind: A}\n---# 2 ---#\napiVersion: v1\nkind: B\n")
    assert [(manifest.object["kind"], manifest.source.line) for manifest in found] == [("A", 2), ("B", 4)]


def test_an_anchor_may_be_there_before() -> None:
    head = "apiVersion: v1\nkind: A\n"
    text = f"{head}a: &x 1\nb: *x\n---\n{head}a: [&x {{u: 1}}, *x]\nb: &x [z]\nc: *x\n---\n{head}a: &x 3\nb: *x\n"
    first, second, third = (manifest.object for manifest in parse_manifests(text))
    assert (first["b"], second["a"], second["c"], third["b"]) == (1, [{"u": 1}, {"u": 1}], ["z"], 3)
    assert _only(f"{head}a: &x 1\nb: &x 2\nc: *y\n").line == 5
    assert "nested too deeply" in _only(f"{head}a: &x 1\nb: &x {'[' * 1_000}").message


def test_broken_json_is_reported_as_json() -> None:
    problem = _only('{"apiVersion": "v1",\n "kind": }', "a.json")
    assert problem.message == "this is not JSON: Expecting value"
    assert (problem.line, problem.column) == (2, 10)


def test_nan_in_json_is_refused() -> None:
    assert "NaN" in _only('{"apiVersion": "v1", "kind": "A", "x": NaN}', "a.json").message


def test_aliases_cannot_expand_without_bound() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "aliases expand" in _only("apiVersion: v1\nkind: A\n" + "\n".join(levels)).message


def test_alias_of_itself_is_refused() -> None:
    assert "inside its own anchor" in _only("apiVersion: v1\nkind: A\na: &x [*x]\n").message


def test_deep_nesting_is_refused() -> None:
    assert "nested too deeply" in _only("[" * 100_000).message
    assert "nested too deeply" in _only('{"a":' + "[" * 100_000, "a.json").message


@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
def test_a_whole_number_that_no_float_holds_is_refused(file: str) -> None:
    number = "9" * 5000
    problem = _only(f'{{"apiVersion": "v1", "kind": "A", "x": {number}}}', file)
    assert f"the number {number[:37]}... is too large" in problem.message
    assert problem.line == 1


def test_the_remedy_for_a_missing_version_fits_the_kind() -> None:
    assert _only("kind: Job\nmetadata: {name: a}\n").remedy == "write batch/v1"
    lists = "write that of its kind, which `kubectl api-resources` lists"
    assert _only("kind: Foo\nmetadata: {name: a}\n").remedy == lists


def test_an_empty_file_name_is_not_the_current_directory() -> None:
    with pytest.raises(ManifestError, match="the name of a file is empty"):
        read_manifests("")


def test_object_without_kind_names_what_is_missing() -> None:
    problem = _only("apiVersion: v1\nmetadata: {name: a}\n")
    assert (problem.field, problem.message, problem.line) == ("kind", "Required value", 1)


def test_kustomization_says_how_to_render_it() -> None:
    assert "kubectl kustomize" in _only("resources: [a.yaml]\n", "base/kustomization.yaml").remedy


def test_a_block_that_ends_with_the_file_ends_as_others_do() -> None:
    (manifest,) = parse_manifests("apiVersion: v1\nkind: A\na: |\n  x\n  z")
    assert manifest.object["a"] == "x\nz\n"


def test_text_of_other_encodings() -> None:
    text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"
    assert parse_manifests(text.encode("utf-16"))[0].object == parse_manifests(text)[0].object
    assert parse_manifests(b"\xef\xbb\xbf" + text.encode())[0].object == parse_manifests(text)[0].object


def test_a_comment_may_have_bytes_that_are_not_utf_8() -> None:
    text = "# für é\napiVersion: v1\nkind: A # é\na: |\n  x\n# é\nb: [1, # é\n 2]\nc: z #é".encode("latin-1")
    (manifest,) = parse_manifests(text)
    assert manifest.object == {"apiVersion": "v1", "kind": "A", "a": "x\n", "b": [1, 2], "c": "z"}
    assert manifest.source.line_of("c") == 9


@pytest.mark.parametrize("value", ["é", "'é'", '"é"', "|\n  é", "&é 1", "!é 1", "[é", "|\n  # é"])
def test_a_value_must_be_utf_8(value: str) -> None:
    text = f"# ü\napiVersion: v1\na: {value}".encode("latin-1")
    problem = _only(text)
    assert problem.remedy == "save the file as UTF-8"
    assert "is not UTF-8" in problem.message
    (json_problem,) = (_only(b'{"apiVersion": "\xe9"}'),)
    assert json_problem.message == "byte 16 is not UTF-8"


@pytest.mark.parametrize("separator", ["---\n\ufeff", "--- # b.yaml\r\n\ufeff", "\ufeff---\n", "---\n\ufeff# b\n"])
def test_each_document_may_start_with_a_byte_order_mark(separator: str) -> None:
    text = f"\ufeffapiVersion: v1\nkind: A\n{separator}apiVersion: v1\nkind: B\na: \ufeffx\n"
    first, second = parse_manifests(text.encode())
    assert (first.object["kind"], second.object) == ("A", {"apiVersion": "v1", "kind": "B", "a": "\ufeffx"})


def test_directory_is_read_in_order_of_names_without_what_is_hidden(tmp_path: Path) -> None:
    for name in ("b.yml", "a.yaml", "c.json", ".hidden.yaml", "d.txt"):
        (tmp_path / name).write_text(json.dumps({"apiVersion": "v1", "kind": name.partition(".")[0] or "hidden"}))
    (tmp_path / "nested").mkdir()
    (tmp_path / "nested" / "e.yaml").write_text("apiVersion: v1\nkind: e\n")
    assert [manifest.object["kind"] for manifest in read_manifests(tmp_path)] == ["a", "b", "c"]
    assert [manifest.object["kind"] for manifest in read_manifests(str(tmp_path), recursive=True)] == [
        "a",
        "b",
        "c",
        "e",
    ]
    assert [manifest.object["kind"] for manifest in read_manifests(tmp_path / "d.txt", tmp_path / "a.yaml")] == [
        "d",
        "a",
    ]


def test_every_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: b: c\n")
    (tmp_path / "empty" / "nested").mkdir(parents=True)
    with pytest.raises(ManifestError) as caught:
        read_manifests(tmp_path / "none.yaml", tmp_path / "bad.yaml", tmp_path / "empty")
    none, bad, empty = caught.value.problems
    assert none.message == "there is no such file"
    assert bad.file == str(tmp_path / "bad.yaml")
    assert empty.remedy == "pass recursive=True to read its subdirectories"


def test_streams_and_standard_input_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"apiVersion: v1\nkind: A\n"))
    monkeypatch.setattr("sys.stdin", stdin)
    from_stdin, from_text, from_bytes = read_manifests(
        "-", io.StringIO("apiVersion: v1\nkind: B\n"), io.BytesIO(b"apiVersion: v1\nkind: C\n")
    )
    assert str(from_stdin.source) == "<stdin>:1 (document 1)"
    assert [entry.object["kind"] for entry in (from_stdin, from_text, from_bytes)] == ["A", "B", "C"]


def test_text_instead_of_a_file_name_is_noticed() -> None:
    with pytest.raises(ManifestError, match="use parse_manifests"):
        read_manifests("apiVersion: v1\nkind: A\n")


def test_json_lines_take_objects_in_any_form() -> None:
    queue = LocalQueue("q", namespace="n", cluster_queue="c")
    lines = to_json_lines([queue, queue.to_manifest(), Manifest(queue.to_manifest())]).splitlines()
    assert len(lines) == 3
    assert set(lines) == {lines[0]}
    assert json.loads(lines[0]) == queue.to_manifest()


def test_json_lines_are_ascii_whatever_the_text() -> None:
    assert to_json_lines([{"a": "\ud800 キュー"}]) == b'{"a":"\\ud800 \\u30ad\\u30e5\\u30fc"}\n'
    with pytest.raises(ManifestError, match="cannot be written as JSON"):
        to_json_lines([{"kind": "A", "x": float("nan")}])


def test_problems_of_a_batch_get_their_places() -> None:
    manifests = parse_manifests(TWO_DOCUMENTS, file="queues.yaml")
    error = ManifestError([Problem("Not found", field="spec.resourceGroups[0].flavors[1].name", index=1)])
    (problem,) = located(error, manifests).problems
    assert problem.place == "queues.yaml:21 (document 2)"
    assert problem.object == ObjectRef("ClusterQueue", "a")
    (untouched,) = located(error, [manifests[0].object, manifests[1].object]).problems
    assert untouched == error.problems[0]


def test_renamed_fields_have_the_lines_of_their_origin() -> None:
    job = ObjectRef("Job", "a")
    source = parse_manifests(TWO_DOCUMENTS)[1].source.renamed(("spec.groups", "spec.resourceGroups"), job=job)
    assert source.line_of("spec.groups[0].flavors[1]") == 21
    (problem,) = (source.of_job(Problem("spec.groups[0] is odd", field="spec.groups[0]")),)
    assert str(problem) == 'Job "a": spec.resourceGroups[0]: spec.resourceGroups[0] is odd'
    assert str(source.of_job(Problem("is odd", field="spec.x"))) == 'Job "a": in its Workload: spec.x: is odd'


QUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue"}


def test_an_object_without_a_name_is_reported_by_its_place_in_the_list() -> None:
    items = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A}, {kind: Job}, 5]}"
    with pytest.raises(ManifestError) as error:
        parse_manifests(items)
    assert [problem.field for problem in error.value.problems] == ["items[1].apiVersion", "items[2]"]
    with pytest.raises(ManifestError, match=r"LocalQueue at index 1: metadata\.name: Required value"):
        Engine().apply(
            [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}, {**QUEUE, "metadata": {}}]
        )


def test_manifests_survive_pickling() -> None:
    manifest = parse_manifests(TWO_DOCUMENTS)[1]
    assert manifest.source.line_of("spec") == 13
    copy = pickle.loads(pickle.dumps(manifest))
    assert copy == manifest
    assert copy.source.line_of("spec") == 13


def test_pure_python_loader_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml

    from kueuecore import _yaml

    expected = parse_manifests(TWO_DOCUMENTS)
    monkeypatch.delattr(yaml, "CSafeLoader")
    monkeypatch.setattr(_yaml, "Loader", _yaml._loader())
    assert parse_manifests(TWO_DOCUMENTS) == expected
    assert _only("apiVersion: v1\nkind: A\nb: .inf\n").line == 3
