"""Answers: pages, cuts, sentences, wrong parameters."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kueuecore.agents.answering import Answer, Answering, Limits, NoAnswerError
from kueuecore.agents.cutting import Left, cut_to, size_of
from kueuecore.agents.tools import tool_named
from kueuecore.cli.commands import parsed
from kueuecore.cli.state_source import source_of
from tests.unit.agents.connections import EXAMPLES, source

KUEUE = "kueue.x-k8s.io/v1beta2"


def answer(of: Any, name: str, /, *, limits: Limits | None = None, **asked: Any) -> Answer:
    tool = tool_named(name)
    assert tool is not None
    return Answering(of, limits or Limits()).answer(tool, asked)


def crowd(n_queues: int, n_workloads: int) -> list[dict[str, Any]]:
    """Many workloads in queues with quota for one each."""
    objects: list[dict[str, Any]] = [{"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "default"}}]
    flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": 1}]}
    for number in range(n_queues):
        name = f"q{number:02}"
        groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
        spec = {"namespaceSelector": {}, "cohortName": "all", "resourceGroups": groups}
        objects.append({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
        metadata = {"name": name, "namespace": "lab"}
        objects.append(
            {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}}
        )
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": 1}}}]
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
    for number in range(n_workloads):
        metadata = {
            "name": f"w{number:05}",
            "namespace": "lab",
            "creationTimestamp": f"2026-01-01T00:00:{number % 60:02}Z",
        }
        spec = {"queueName": f"q{number % n_queues:02}", "podSets": [pod_set]}
        objects.append({"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": spec})
    return objects


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("crowd") / "state.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": crowd(7, 300)}))
    return source(str(path))


def pages(of: Any, name: str, rows: str, *, limits: Limits | None = None, **asked: Any) -> list[list[dict[str, Any]]]:
    found = []
    cursor: dict[str, str] = {}
    while True:
        document: Any = answer(of, name, limits=limits, **asked, **cursor).document
        found.append(document[rows])
        assert document["about"]["left"] == []
        if document["nextCursor"] is None:
            return found
        cursor = {"cursor": document["nextCursor"]}


def test_pages_hold_every_waiting_workload_once_in_the_order_of_the_queues(crowded: Any) -> None:
    found = pages(crowded, "pending", "workloads", limit=50)
    assert [len(page) for page in found] == [50, 50, 50, 50, 50, 43]
    order = [(row["clusterQueue"], row["positionInClusterQueue"]) for page in found for row in page]
    assert order == sorted(order)
    assert len({row["name"] for page in found for row in page}) == 293


def test_a_page_ends_where_its_size_does_and_the_next_one_goes_on(crowded: Any) -> None:
    small = Limits(most_bytes=8000)
    found = pages(crowded, "pending", "workloads", limits=small, cluster_queue="q03")
    assert len(found) > 2
    assert [row["positionInClusterQueue"] for page in found for row in page] == list(range(42))
    assert all(len(json.dumps(page)) <= 8000 for page in found)


def test_a_page_of_queues_has_their_quota_and_their_cohorts(crowded: Any) -> None:
    found = pages(crowded, "queues", "clusterQueues", limit=3)
    assert [[row["name"] for row in page] for page in found] == [["q00", "q01", "q02"], ["q03", "q04", "q05"], ["q06"]]
    row = found[2][0]
    assert (row["cohort"], row["pendingWorkloads"], row["localQueues"]) == ("all", 41, ["lab/q06"])
    assert [(quota["nominal"], quota["usage"], quota["available"]) for quota in row["quota"]] == [("1", "1", "0")]
    document: Any = answer(crowded, "queues", name="q06").document
    assert document["total"] == 1
    assert [(cohort["name"], cohort["parent"]) for cohort in document["cohorts"]] == [("all", None)]


def test_filters_choose_and_nothing_matches_a_wrong_one(crowded: Any) -> None:
    assert answer(crowded, "pending", namespace="other").document["total"] == 0
    assert answer(crowded, "queues", cohort="other").sentences[0] == "0 ClusterQueues."
    assert answer(crowded, "queues", cohort="all").document["total"] == 7


def test_reasons_count_all_that_wait(crowded: Any) -> None:
    document: Any = answer(crowded, "pending", limit=1).document
    assert sum(document["reasons"].values()) == document["total"] == 293


def test_a_large_answer_is_cut_at_whole_rows_and_says_so(crowded: Any) -> None:
    last = pages(crowded, "pending", "workloads", cluster_queue="q00")[0][-1]["name"]
    whole: Any = answer(crowded, "explain", limits=Limits(most_bytes=10**9), workload=last).document
    found = answer(crowded, "explain", limits=Limits(most_bytes=6000), workload=last)
    document: Any = found.document
    assert size_of(document) <= 6000 < size_of(whole)
    assert [row["path"] for row in document["about"]["left"]] == ["workload.whyAhead"]
    left = document["about"]["left"][0]
    assert left["shown"] == len(document["workload"]["whyAhead"])
    assert left["shown"] + left["left"] == len(whole["workload"]["whyAhead"])
    assert document["workload"]["whyAhead"] == whole["workload"]["whyAhead"][: left["shown"]]
    counted = f"{left['shown']} are shown and {left['left']} left out"
    assert found.sentences[3] == f"Of workload.whyAhead, {counted}, as the answer would be too large."


def test_the_largest_lists_are_cut_first_and_keep_a_row() -> None:
    document: Any = {"a": [{"n": number, "inner": [1, 2, 3]} for number in range(20)], "b": [1, 2], "text": "x"}
    left = cut_to(document, 60)
    assert left == [Left("a", 1, 19)]
    assert document == {"a": [{"n": 0, "inner": [1, 2, 3]}], "b": [1, 2], "text": "x"}
    assert cut_to(document, 1000) == []


def test_a_history_keeps_its_newest_steps() -> None:
    document: Any = {"steps": [{"n": number} for number in range(20)]}
    assert cut_to(document, 40, newest_last=("steps",)) == [Left("steps", 3, 17)]
    assert document == {"steps": [{"n": 17}, {"n": 18}, {"n": 19}]}


def test_an_answer_that_cannot_be_cut_enough_is_an_error() -> None:
    of = source(str(EXAMPLES / "two-teams"))
    with pytest.raises(
        NoAnswerError, match=r"even with a single row of each list, and the limit is 900: ask about less"
    ):
        answer(of, "explain", limits=Limits(most_bytes=900), workload="team-b/job-benchmark-86330")


def test_three_sentences_say_what_it_waits_for_the_obstacle_and_who_holds_it() -> None:
    of = source(str(EXAMPLES / "two-teams"))
    assert answer(of, "explain", workload="team-b/job-benchmark-86330").sentences == (
        "team-b/job-benchmark-86330 waits in ClusterQueue team-b: couldn't assign flavors to pod set main: "
        "insufficient unused quota for cpu in flavor default-flavor, 100m more needed.",
        "The obstacle for flavor default-flavor and resource cpu by rule 02 §2.2: ClusterQueue team-b has 200m cpu, "
        "may borrow 1500m and uses 1400m: 100m short.",
        "What it needs is held by team-a/job-nightly-build-1ec3e, team-a/notebook, team-b/job-lint-ae481 and 1 more; "
        "of the first, Policy: reclaimWithinCohort of ClusterQueue team-b is Never (rule 04 §2).",
    )
    assert answer(of, "explain", workload="team-b/job-lint-ae481").sentences == (
        "team-b/job-lint-ae481 is Admitted in ClusterQueue team-b.",
        "Nothing stands in its way: as the head of a cycle it would get quota.",
        "Nobody is ahead of it, and nobody holds what it needs.",
    )


def test_an_answer_names_the_command_that_gives_it() -> None:
    of = source(str(EXAMPLES / "two-teams"))
    about: Any = answer(of, "explain", workload="team-b/job-lint-ae481").document["about"]
    assert about["command"] == f"kueuecore explain {EXAMPLES / 'two-teams'} team-b/job-lint-ae481 -o json"
    assert about["state"] == "two-teams"


def test_every_answer_says_which_kinds_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kubernetes")
    from kueuecore_apiserver import AccessRules
    from tests.unit.cli.test_cluster_state import READ, kubeconfig
    from tests.unit.kubernetes.clusters import served

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rules = [{"apiGroups": ["kueue.x-k8s.io"], "resources": ["*"], "verbs": READ}]
    subjects = [{"kind": "User", "name": "ann"}]
    role = {"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": rules}
    to = {"kind": "ClusterRole", "name": "r"}
    binding = {"kind": "ClusterRoleBinding", "metadata": {"name": "r"}, "roleRef": to, "subjects": subjects}
    with served(access=AccessRules(users={"secret": "ann"}, manifests=[role, binding])) as server:
        options = parsed(["run", "--kubeconfig", kubeconfig(server, tmp_path)])
        options.source = options.given = None
        of = source_of(options)
        try:
            answering = Answering(of, Limits())
            for name in ("queues", "check", "pending"):
                tool = tool_named(name)
                assert tool is not None
                about: Any = answering.answer(tool, {}).document["about"]
                assert sum("you may not list namespaces" in note for note in about["notes"]) == 1
        finally:
            of.close()


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="files there have names in Unicode")
def test_a_file_whose_name_is_no_text_can_be_asked_about(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"state-\xff.json")
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": crowd(1, 2)}))
    of = source(str(path))
    for name in ("queues", "check"):
        document: Any = answer(of, name).document
        assert document["about"]["state"] == r"state-\udcff.json"
        assert json.loads(json.dumps(document, ensure_ascii=False).encode()) == document


@pytest.mark.parametrize(
    ("name", "asked", "message"),
    [
        ("explain", {}, "explain: 'workload' is a required property"),
        ("explain", {"worklod": "a/b"}, 'explain does not take "worklod": it takes workload; did you mean workload?'),
        ("explain", {"workload": 3}, "explain: workload: 3 is not of type 'string'; it is the workload or its job"),
        ("explain", {"workload": "team-b/job-lint"}, 'there is no workload "team-b/job-lint"; write '),
        ("unblock", {"workload": "a/b", "only": ["Luck"]}, "unblock: only[0]: 'Luck' is not one of ['Start', "),
        ("pending", {"limit": 0}, "pending: limit: 0 is less than the minimum of 1"),
        ("pending", {"cursor": "WzFd"}, "cursor: it is no cursor; pass nextCursor of the page before, as it is"),
        ("queues", {"cursor": "-"}, "cursor: it is no cursor"),
        (
            "what_if",
            {},
            "nothing changes, so nothing moves; give jobs with `objects`, or change the state with `set` or `delete`",
        ),
        ("what_if", {"set": ["ClusterQueue/team-b"]}, "ClusterQueue/team-b"),
        ("what_if", {"objects": "{"}, "<stdin>"),
        ("eta", {"horizon": "soon"}, "argument `horizon`: 'soon' is not a duration"),
        (
            "compare_releases",
            {"from": "latest"},
            'compare_releases: from: "latest" has another form; it is the release',
        ),
        ("check", {"select": ["KC999"]}, "KC999"),
    ],
)
def test_a_wrong_question_is_answered_with_what_is_right(name: str, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(NoAnswerError) as error:
        answer(source(str(EXAMPLES / "two-teams")), name, **asked)
    assert message in str(error.value)
    assert "usage:" not in str(error.value)
    assert "nothing was decided" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("explain", {"workload": "--fail-on-pending"}),
        ("unblock", {"workload": "-q"}),
        ("eta", {"workloads": ["--config=/etc/hostname"]}),
        ("check", {"select": ["--write-worlds=worlds"]}),
        ("check", {"ignore": ["-R"]}),
        ("what_if", {"set": ["--filename=/etc/hostname"]}),
        ("what_if", {"delete": ["--filename"]}),
        ("what_if", {"delete": ["--"]}),
        ("eta", {"run_seconds": ["--report=x"]}),
        ("eta", {"window": "--seeds"}),
    ],
)
def test_no_value_is_read_as_an_option_of_the_command(
    name: str, asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = source(str(EXAMPLES / "two-teams"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoAnswerError):
        answer(of, name, **asked)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_a_file_is_still_a_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = source(str(EXAMPLES / "two-teams"))
    monkeypatch.chdir(tmp_path)
    Path("secret.yaml").write_text("password: hunter2")
    for name, asked in (("explain", {"workload": "secret.yaml"}), ("eta", {"workloads": ["secret.yaml"]})):
        with pytest.raises(NoAnswerError, match=r'there is no workload "secret\.yaml"'):
            answer(of, name, **asked)
