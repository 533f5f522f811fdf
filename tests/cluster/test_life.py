"""The kubelets and the controller of Jobs in these clusters miss nothing while the server is away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kueuecore._json import JsonObject
from kueuecore.kubernetes import Api, LateKinds
from kueuecore.kubernetes.watches import News
from scripts.clusters import life
from scripts.clusters.life import Life

JOB = ("default", "job")


def pod(name: str, *, version: int, owner: str = "") -> JsonObject:
    labels: JsonObject = {"batch.kubernetes.io/job-name": owner} if owner else {}
    metadata: JsonObject = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "labels": labels}}


def hears(made: Life) -> None:
    """Work through what has been watched."""
    while not made._news.empty():
        news = made._news.get()
        assert news is not None
        made._hear(news, set())


@pytest.fixture
def made() -> Life:
    return Life(Api.connect(server="http://127.0.0.1:1", kinds={"Pod": ("v1", "pods")}), runs_jobs=True)


def test_a_pod_that_went_while_nobody_watched_is_gone(made: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    def follow(_: Api, kind: str, *, late: LateKinds) -> Iterator[News | None]:
        yield News(kind, [pod("stays", version=1), pod("goes", version=1)], "1")
        yield News(kind, event={"type": "ADDED", "object": pod("comes", version=2)})
        yield News(kind, event={"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}})
        yield None
        yield News(kind, [pod("stays", version=1)], "3")

    monkeypatch.setattr(life, "follow", follow)
    made._watch("Pod")
    hears(made)
    assert set(made._pods) == {("default", "stays")}
    assert made._pods_of["default", ""] == {("default", "stays")}


@pytest.mark.parametrize(("version", "left"), [(2, set()), (4, {("default", "job-00001")})], ids=["before", "after"])
def test_a_created_pod_that_a_list_lacks_is_gone_if_the_list_is_newer(
    made: Life, monkeypatch: pytest.MonkeyPatch, version: int, left: set[tuple[str, str]]
) -> None:
    """No watch has seen it: it was created and deleted while the server was away, or the list came too early for it."""
    monkeypatch.setattr(Api, "send", lambda *_, **__: pod("job-00001", version=version, owner="job"))
    job: JsonObject = {"metadata": {"namespace": "default", "name": "job"}, "spec": {"template": {"spec": {}}}}
    assert made._create_pod(JOB, job)
    made._news.put(News("Pod", [], "3"))
    hears(made)
    assert set(made._pods) == made._pods_of[JOB] == left
