"""Files of policy tests: which are found, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore.errors import ManifestError
from kueuecore.policy_tests import policy_test_files, read_policy_tests
from tests.policy_test_files import HEAD, case, job, write

EXPECT = "{workload: team/one, admitted: true}"
ONE = f"{{job: {job('one')}}}"


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ManifestError) as raised:
        read_policy_tests(write(folder, text))
    return [str(problem).removeprefix(f"{folder}/") for problem in raised.value.problems]


def test_a_directory_is_searched_recursively_for_tests(tmp_path: Path) -> None:
    for name in (
        "b_test.yaml",
        "a_test.yml",
        "queues.yaml",
        ".hidden_test.yaml",
        "below/c_test.json",
        ".git/d_test.yaml",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("", encoding="utf-8")
    names = ["a_test.yml", "b_test.yaml", "below/c_test.json"]
    assert list(policy_test_files(tmp_path)) == [str(tmp_path / name) for name in names]
    assert policy_test_files(tmp_path / "queues.yaml") == (str(tmp_path / "queues.yaml"),)


def test_a_directory_without_tests_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"no file in it ends in _test\.yaml, _test\.yml or _test\.json"):
        policy_test_files(tmp_path)


def test_an_empty_name_is_refused() -> None:
    # Not the current directory, which is what Path("") would be.
    with pytest.raises(ManifestError, match=r'the name of a file is empty; write "\." for the directory you are in'):
        policy_test_files("")


def test_several_documents_are_read_one_after_the_other(tmp_path: Path) -> None:
    text = f"{case(EXPECT, ONE)}---\n{case(EXPECT, ONE, 'another')}"
    assert [(test.name, test.line) for test in read_policy_tests(write(tmp_path, text))] == [
        ("a case", 5),
        ("another", 15),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{apiVersion: kueuecore/v1, kind: Scenario}\n", "a policy test is a document of kind PolicyTest"),
        (HEAD, "a_test.yaml:1: cases: Required value"),
        (f"{HEAD}cases:\n- expect: [{EXPECT}]\n", "a_test.yaml:5: cases[0].name: Required value"),
        (f"{HEAD}cases:\n- name: a\n", "a_test.yaml:5: cases[0].expect: Required value"),
        (f"{HEAD}casses: []\n", "a_test.yaml:4: casses: unknown field; write cases"),
        (case("{workload: team/one}"), "a_test.yaml:7: cases[0].expect[0]: nothing is expected"),
        (case("{admitted: true}"), "a_test.yaml:7: cases[0].expect[0]: it has 0 subjects"),
        (case("{workload: a, clusterQueue: b, admitted: true}"), "cases[0].expect[0]: it has 2 subjects"),
        (case("{workload: a, preempted: {reason: inclusterqeue}}"), '"inclusterqeue"; write InClusterQueue'),
        (case("{workload: a, preempted: {reason: Because}}"), '"Because"; write one of InClusterQueue, '),
        (case("{workload: a, admited: true}"), "cases[0].expect[0].admited: unknown field; write admitted"),
        (case("{workload: a, admitted: {queue: b}}"), "cases[0].expect[0].admitted.queue: unknown field"),
        (case("{workload: a, admitted: 3}"), "cases[0].expect[0].admitted: must be a mapping, not a number"),
        (case("{workload: a, pending: false}"), "cases[0].expect[0].pending: Invalid value: false"),
        (case("{workload: a, waits: {}}"), "cases[0].expect[0].waits: nothing is expected"),
        (case("{workload: a, waits: {below: soon}}"), 'cases[0].expect[0].waits.below: not a duration: "soon"'),
        (case("{clusterQueue: a, usage: {f: {cpu: x}}}"), 'cases[0].expect[0].usage.f.cpu: not a quantity: "x"'),
        (case("{clusterQueue: a, usage: {f: 3}}"), "cases[0].expect[0].usage.f: not amounts"),
        (case("{workload: a, admitted: {domains: {rack: x}}}"), "neither a list of domains nor a count"),
        (case(EXPECT, f"{ONE}\n{ONE}"), 'cases[0].submit: Duplicate value: "one"'),
        (case(EXPECT, "{job: no.yaml}"), "no.yaml: there is no such file"),
        (case(EXPECT, f"{{job: {job('one')}, at: never}}"), "cases[0].submit[0].at: not a duration"),
        (f"{HEAD}now: yesterday\n{case(EXPECT).removeprefix(HEAD)}", 'now: Invalid value: "yesterday"'),
        (
            f"{HEAD}featureGates: {{Nothing: true}}\n{case(EXPECT).removeprefix(HEAD)}",
            "unrecognized feature gate: Nothing",
        ),
        (
            f"{HEAD}until: 1m\n{case('{workload: a, at: 2m, admitted: true}').removeprefix(HEAD)}",
            "checks at a time after `until`",
        ),
    ],
)
def test_each_problem_is_reported_with_its_line(text: str, problem: str, tmp_path: Path) -> None:
    found = problems(tmp_path, text)
    assert [problem in other for other in found].count(True) == 1, found


def test_everything_that_is_wrong_is_reported_once(tmp_path: Path) -> None:
    text = f"{HEAD}until: soon\ncases:\n- {{name: a, expect: [{EXPECT}]}}\n- {{name: a, expect: [{EXPECT}]}}\n"
    assert problems(tmp_path, text) == [
        'a_test.yaml:4: until: not a duration: "soon"; write seconds such as 90, or a duration such as 1m30s,'
        " from 0 to 292 years (2562047h)",
        'a_test.yaml:7: cases[1].name: Duplicate value: "a"; give each case its own name',
    ]


def test_a_file_and_its_cases_name_the_release_of_kueue(tmp_path: Path) -> None:
    text = (
        case(EXPECT, ONE, "as the file")
        + f"- name: as a case\n  kueue: 0.16\n  submit: [{ONE}]\n  expect: [{EXPECT}]\n"
    )

    def releases(kueue: str, **options: str) -> list[str]:
        path = write(tmp_path, text.replace("manifests:", f"kueue: {kueue}\nmanifests:"))
        return [test.configuration.release.name for test in read_policy_tests(path, **options)]

    assert releases("0.18") == ["0.18.6", "0.16.9"]
    assert releases("null", default_release="0.17") == ["0.17.8", "0.16.9"]
    assert releases("0.18", release="0.17") == ["0.17.8", "0.17.8"]


def test_the_gates_of_a_file_are_those_of_the_release_of_each_case(tmp_path: Path) -> None:
    text = case(EXPECT, ONE).replace("manifests:", "featureGates: {LendingLimit: true}\nkueue: 0.17\nmanifests:")
    (test,) = read_policy_tests(write(tmp_path, text))
    assert test.configuration.is_enabled("LendingLimit")
    found = problems(tmp_path, text.replace("  submit:", "  kueue: 0.19\n  submit:"))
    assert [problem.partition("; ")[2][:25] for problem in found] == ["Kueue 0.19 removed it; le"]


def test_an_unknown_release_is_reported_with_its_line(tmp_path: Path) -> None:
    text = case(EXPECT, ONE).replace("manifests:", "kueue: latest\nmanifests:")
    (problem,) = problems(tmp_path, text)
    assert problem.startswith("a_test.yaml:3: kueue: kueuecore does not know the release latest of Kueue; write 0.16.9")
