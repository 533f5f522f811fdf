"""The form that tries changes: who moves and who is evicted, or what is wrong beside each field."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from tests.unit.ui.pages import EXAMPLES, Page, served, source_at
from tests.unit.ui.test_state_pages import WAITING, command, words

QUOTA = "nominalQuota|ClusterQueue|team-b|default-flavor|cpu"
LIMIT = "borrowingLimit|ClusterQueue|team-b|default-flavor|cpu"
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: big, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: jobs}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with served(source_at(str(EXAMPLES / "two-teams"))) as page:
        yield page


def beside(text: str) -> dict[str, str]:
    """What is wrong, by the name of the field that says it is described by that."""
    found = {}
    for name, place in re.findall(r'name="([^"]*)"[^>]*aria-invalid="true" aria-describedby="([^"]*)"', text):
        (problem,) = re.findall(rf'id="{re.escape(place)}">(.*?)</ul>', text, re.DOTALL)
        found[html.unescape(name)] = html.unescape(re.sub("<[^>]*>", "", problem))
    return found


def test_the_form_offers_what_the_queue_and_its_cohorts_have(page: Page) -> None:
    text = page.get("/what-if", {"queue": "team-b"}).text
    assert "ClusterQueue team-b: cpu in default-flavor" in words(text)
    assert "nominal quota now 200m borrowing limit now 1500m lending limit now none" in words(text)
    assert "What would happen" not in text
    assert "Priority of" in page.get("/what-if", {"workload": WAITING}).text


def test_a_quota_moves_those_who_wait_for_it(page: Page) -> None:
    asked = {"ask": "1", "workload": WAITING, QUOTA: "5400m"}
    text = page.get("/what-if", asked).text
    said = words(text)
    assert "3 workloads move, 0 of them evicted." in said
    assert f"{WAITING} admitted Pending in team-b Admitted in team-b" in said
    target = "ClusterQueue/team-b:spec.resourceGroups[0].flavors[name=default-flavor].resources[name=cpu].nominalQuota"
    state = str(EXAMPLES / "two-teams")
    assert shlex.split(command(text)[0]) == ["kueuecore", "what-if", state, "--settle", f"--set={target}=5400m"]


def test_a_limit_can_be_taken_away(page: Page) -> None:
    text = page.get("/what-if", {"ask": "1", "queue": "team-b", LIMIT: "None"}).text
    assert "borrowingLimit=null" in command(text)[0]
    assert "team-b/job-benchmark-86330 admitted" in words(text)


def test_a_job_that_takes_its_quota_back_evicts_those_who_borrow() -> None:
    state = [str(EXAMPLES / "taking-back" / name) for name in ("cluster.yaml", "running.yaml")]
    job = (EXAMPLES / "taking-back" / "new.yaml").read_text()
    with served(source_at(*state)) as page:
        text = page.get("/what-if", {"ask": "1", "job": job}).text
    said = words(text)
    assert "Preempts in team-a" in said
    assert "3 workloads move, 2 of them evicted." in said
    evicted, _, others = said.partition("Who is evicted")[2].partition("Who else moves")
    assert "team-b/report evicted Admitted in team-b Pending in team-b" in evicted
    assert "team-b/sweep evicted" in evicted
    assert "team-a/job-release-build-5ad41 admitted not there Admitted in team-a" in others
    shown = command(text)[0]
    assert shown.startswith(f"kueuecore what-if {shlex.join(state)} --settle -f - <<'END'\n")
    assert shown.endswith("\nEND")


def test_a_priority_edits_and_deletions_are_tried(page: Page) -> None:
    lines = "ClusterQueue/team-b:spec.stopPolicy=HoldAndDrain\nClusterQueue/team-a:spec.stopPolicy=None"
    asked = {"ask": "1", "workload": "team-b/job-benchmark-86330", "priority": "7", "edits": lines}
    text = page.get("/what-if", {**asked, "deletions": "Workload/team-a/notebook"}).text
    assert "team-b/job-lint-ae481 evicted" in words(text)
    assert "team-a/notebook deleted" in words(text)
    assert "--set=Workload/team-b/job-benchmark-86330:spec.priority=7" in command(text)[0]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        (QUOTA, "2m5", 'nominalQuota: Invalid value: "2m5"'),
        (QUOTA, "-1", 'nominalQuota: Invalid value: "-1": must be greater than or equal to 0'),
        (LIMIT, "viel", 'borrowingLimit: Invalid value: "viel"'),
        ("priority", "high", "spec.priority in body must be of type integer"),
        ("job", "a: [", "this is not YAML"),
        ("job", JOB.replace("cpu: 1", "cpu: x"), 'requests.cpu: Invalid value: "x"'),
        ("job", "kind: Nothing\n", "<stdin>"),
        ("edits", "foo", '"foo" has no value; write KIND/NAME:PATH=VALUE'),
        ("edits", "ClusterQueue/nope:spec.x=1", "no object matches ClusterQueue/nope; write one of team-a, team-b"),
        ("edits", "ClusterQueue/team-b:spec.resourceGroups[7].x=1", "there is no [7] in a list of 1"),
        ("deletions", "foo", '"foo" does not name an object'),
        ("deletions", "Workload/team-a/none", "Workload/team-a/none"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(page: Page, field: str, value: str, says: str) -> None:
    got = page.get("/what-if", {"ask": "1", "workload": WAITING, field: value})
    assert got.status == 200
    found = beside(got.text)
    assert list(found) == [field]
    assert says in found[field]
    assert "Nothing was tried" in got.text
    assert "What would happen" not in got.text
    assert value.strip() in html.unescape(got.text), "what was written is still there"


def test_nothing_filled_in_says_what_to_do(page: Page) -> None:
    text = page.get("/what-if", {"ask": "1", "workload": WAITING}).text
    assert "nothing changes, so nothing moves" in words(text)


def test_options_cannot_be_smuggled_in(page: Page) -> None:
    for field in ("edits", "deletions", "priority", "job"):
        got = page.get("/what-if", {"ask": "1", "workload": WAITING, field: "--help"})
        assert got.status == 200
        assert "usage:" not in got.text
    eta = page.get(f"/answers/eta/{WAITING}", {"runs": "--kubeconfig=/etc/passwd", "arrivals": "--help"})
    assert "usage:" not in eta.text


def test_a_long_job_fits_into_the_address(page: Page) -> None:
    text = page.get("/what-if", {"ask": "1", "job": JOB + "# " + "x" * 300_000}).text
    assert "What would happen" in text
