"""An engine that follows a cluster holds what a list at that moment would give, with and without a cache."""

from __future__ import annotations

import copy
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration, Engine
from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.kubernetes import Api, live_cluster
from kueuecore.kubernetes.cluster_cache import CachedCluster, ClusterCache
from kueuecore.kubernetes.cluster_objects import known_kinds, list_objects
from kueuecore.kubernetes.live_cluster import LiveCluster
from kueuecore_apiserver import AccessRules, Fault, HttpApiServer, Request
from kueuecore_apiserver.crds import crds
from tests.unit.kubernetes.clusters import KUEUE, queues, served, wait_for


@pytest.fixture
def server() -> Iterator[HttpApiServer]:
    with served() as server:
        yield server


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache is worth it from few objects on, and after few changes."""
    monkeypatch.setattr(live_cluster, "_MANY", 3)
    monkeypatch.setattr(live_cluster, "_FAR_BEHIND", 5)


def workload(name: str, *, cpu: int = 1, queue: str = "a") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    metadata = {"name": name, "namespace": "lab"}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": metadata,
        "spec": {"queueName": queue, "podSets": [pod_set]},
    }


def live(server: HttpApiServer, cache: ClusterCache | None = None) -> LiveCluster:
    return LiveCluster(Api.connect(server=server.url), lambda _: Configuration(), cache=cache)


def cached(server: HttpApiServer, folder: Path) -> ClusterCache:
    return ClusterCache(server.url, "", "", folder=folder)


def path_of(cache: ClusterCache) -> Path:
    assert cache.path is not None
    return cache.path


def held(cluster: LiveCluster) -> dict[str, Any]:
    """All that it knows."""
    engine = cluster.engine
    kinds = ("Namespace", "ResourceFlavor", "WorkloadPriorityClass", "ClusterQueue", "LocalQueue", "Workload")
    return {
        "engine": {kind: json.loads(json.dumps(list(engine.objects(kind)), sort_keys=True)) for kind in kinds},
        "others": sorted(json.dumps(plain, sort_keys=True) for plain in cluster.others),
    }


def lists(server: HttpApiServer, since: int) -> list[str]:
    return [request.resource for request in list(server.requests)[since:] if request.verb == "list"]


def change(server: HttpApiServer, rng: random.Random, number: int) -> None:
    """Create, change or delete something."""

    def act(api: Any) -> None:
        names = [entry["metadata"]["name"] for entry in api.list("Workload")[0]]
        what = rng.choice(["create", "create", "delete", "label", "quota", "queue"])
        if what == "create":
            api.create(workload(f"w{number}", cpu=rng.randint(1, 9), queue=rng.choice(["a", "b"])))
        elif what == "delete" and names:
            api.delete("Workload", rng.choice(names), namespace="lab")
        elif what == "label" and names:
            patch = {"metadata": {"labels": {"n": str(number)}}}
            api.patch("Workload", rng.choice(names), patch, namespace="lab")
        elif what == "quota":
            found = copy.deepcopy(api.get("ClusterQueue", "a"))
            found["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = str(rng.randint(0, 9))
            api.replace(found)
        elif api.find("LocalQueue", "b", namespace="lab") is None:
            metadata = {"name": "b", "namespace": "lab"}
            spec = {"clusterQueue": "b"}
            api.create({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": spec})
        else:
            api.delete("LocalQueue", "b", namespace="lab")

    server.call(act)


@pytest.mark.parametrize("seed", range(4))
def test_with_a_cache_it_knows_the_same_as_without(server: HttpApiServer, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    server.load([workload(f"first{number}") for number in range(6)])
    live(server, cached(server, tmp_path)).close()
    n_reads = 0
    for number in range(24):
        change(server, rng, number)
        if rng.random() < 0.3:
            cluster, plain = live(server, cached(server, tmp_path)), live(server)
            assert held(cluster) == held(plain)
            cluster.close()
            plain.close()
            n_reads += 1
    assert n_reads


def test_a_large_kind_is_listed_once(server: HttpApiServer, tmp_path: Path) -> None:
    server.load([workload(f"w{number}") for number in range(5)])
    live(server, cached(server, tmp_path)).close()
    before = len(server.requests)
    server.call(lambda api: api.create(workload("late")))
    cluster = live(server, cached(server, tmp_path))
    assert "workloads" not in lists(server, before)
    assert cluster.engine.workload("late", namespace="lab").local_queue == "a"
    assert {request.method for request in server.requests if request.user_agent.startswith("kueuecore/")} == {"GET"}
    cluster.close()


def test_what_the_server_has_forgotten_is_listed_again(server: HttpApiServer, tmp_path: Path) -> None:
    server.load([workload(f"w{number}") for number in range(5)])
    live(server, cached(server, tmp_path)).close()
    server.call(lambda api: api.delete("Workload", "w3", namespace="lab"))
    server.call(lambda api: api.create(workload("late")))
    server.compact()
    cluster = live(server, cached(server, tmp_path))
    assert {state.name for state in cluster.engine.workloads()} == {"w0", "w1", "w2", "w4", "late"}
    cluster.close()


def test_it_follows_the_cluster(server: HttpApiServer) -> None:
    cluster = live(server)
    version = cluster.version
    assert cluster.wait(version, seconds=0.05) == version
    server.call(lambda api: api.create(workload("w")))
    wait_for(lambda: cluster.wait(version, seconds=1) != version, "the workload is seen")
    assert cluster.engine.workload("w", namespace="lab").name == "w"
    server.call(lambda api: api.delete("Workload", "w", namespace="lab"))
    wait_for(lambda: not len(cluster.engine), "it is gone")
    cluster.close()


def test_another_configuration_makes_the_cache_useless(server: HttpApiServer, tmp_path: Path) -> None:
    server.load([workload(f"w{number}") for number in range(5)])
    live(server, cached(server, tmp_path)).close()
    before = len(server.requests)
    older = Configuration(release="0.17")
    cluster = LiveCluster(Api.connect(server=server.url), lambda _: older, cache=cached(server, tmp_path))
    assert "workloads" in lists(server, before)
    assert len(cluster.engine) == 5
    cluster.close()


@pytest.mark.parametrize("n_more", [0, 9])
def test_another_cluster_at_the_same_address_is_listed(tmp_path: Path, n_more: int) -> None:
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    with served() as server:
        server.load([system, *(workload(f"old{number}") for number in range(5))])
        cache = cached(server, tmp_path)
        live(server, cache).close()
    with served() as server:
        server.load([system])
        # Its uid is another one the second time.
        server.call(lambda api: api.delete("Namespace", "kube-system"))
        server.load([system, *(workload(f"new{number}") for number in range(3 + n_more))])
        cluster = live(server, cache)
        assert {state.name for state in cluster.engine.workloads()} == {f"new{number}" for number in range(3 + n_more)}
        cluster.close()


def test_a_server_that_has_gone_back_is_listed(tmp_path: Path) -> None:
    with served() as server:
        server.load([workload(f"old{number}") for number in range(9)])
        cache = cached(server, tmp_path)
        live(server, cache).close()
    with served() as server:
        server.load([workload(f"old{number}") for number in range(4)])
        cluster = live(server, cache)
        assert len(cluster.engine) == 4
        cluster.close()


def refusing(verb: str, resource: str, code: int) -> Callable[[Request], Fault | None]:
    def fault(request: Request) -> Fault | None:
        is_meant = (request.verb, request.resource) == (verb, resource)
        return Fault(refusal=RefusedError(code, "not now", reason="NotNow")) if is_meant else None

    return fault


@pytest.mark.parametrize("code", [401, 403, 429, 500, 503])
def test_where_changes_since_the_cache_are_refused_all_is_listed(
    server: HttpApiServer, tmp_path: Path, code: int
) -> None:
    server.load([workload(f"w{number}") for number in range(5)])
    live(server, cached(server, tmp_path)).close()
    server.call(lambda api: api.create(workload("late")))
    server.faults = refusing("watch", "workloads", code)
    begin = time.monotonic()
    cluster = live(server, cached(server, tmp_path))
    assert len(cluster.engine) == 6
    assert time.monotonic() - begin < 5, "it does not wait for what was refused"
    cluster.close()


def test_what_is_forbidden_now_is_unknown_with_a_cache_too(server: HttpApiServer, tmp_path: Path) -> None:
    server.load([workload(f"w{number}") for number in range(5)])
    live(server, cached(server, tmp_path)).close()
    server.faults = refusing("list", "localqueues", 403)
    cluster, plain = live(server, cached(server, tmp_path)), live(server)
    assert held(cluster) == held(plain)
    assert [entry.kind for entry in cluster.unlisted] == ["LocalQueue"]
    cluster.close()
    plain.close()


def test_a_kind_of_which_one_namespace_may_be_read_is_not_cached(tmp_path: Path) -> None:
    rule = {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["get", "list", "watch"]}
    metadata = {"name": "r", "namespace": "lab"}
    binding = {"kind": "RoleBinding", "metadata": metadata, "roleRef": {"kind": "Role", "name": "r"}}
    subjects = [{"kind": "User", "name": "system:anonymous"}]
    roles: list[Any] = [{"kind": "Role", "metadata": metadata, "rules": [rule]}, {**binding, "subjects": subjects}]
    with served(access=AccessRules(users={}, manifests=roles)) as server:
        server.load([workload(f"w{number}") for number in range(5)])
        for n_workloads in (5, 6):
            api = Api.connect(server=server.url)
            cluster = LiveCluster(api, lambda _: Configuration(), namespace="lab", cache=cached(server, tmp_path))
            assert len(cluster.engine) == n_workloads
            assert "Workload" in [entry.kind for entry in cluster.unlisted]
            cluster.close()
            server.load([workload("late")] if n_workloads == 5 else [])


def test_a_server_that_cannot_say_how_kueue_is_configured_gives_no_answer(server: HttpApiServer) -> None:
    server.faults = refusing("get", "deployments", 503)
    with pytest.raises(RefusedError, match="not now"):
        live(server)


def test_a_server_that_does_not_tell_of_changes_any_more_is_noticed(
    server: HttpApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_cluster, "_LOST_SECONDS", 0.2)
    server.faults = lambda _: Fault(watch_ends_after=1)
    cluster = live(server)
    cluster.wait(cluster.version, seconds=0.5)
    assert cluster.problem == ""
    server.faults = lambda _: Fault(refusal=RefusedError(503, "not now", reason="NotNow"))
    server.load([workload("w")])

    def problem() -> str:
        cluster.wait(cluster.version, seconds=0.1)
        return cluster.problem

    wait_for(lambda: "not now" in problem(), "it is noticed")
    version = cluster.version
    server.faults = None
    wait_for(lambda: cluster.wait(version, seconds=0.1) != version, "waiting ends when it is followed again")
    assert cluster.problem == ""
    cluster.close()


def test_an_object_that_the_engine_refuses_is_left_out() -> None:
    odd = workload("odd")
    odd["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "much"
    # Without schemas it takes anything, as a server does whose definitions are of another release.
    with HttpApiServer(ApiServer(), clock=time.time_ns) as server:
        server.load([*crds(), *queues(4), workload("w"), odd])
        cluster = live(server)
        assert [state.name for state in cluster.engine.workloads()] == ["w"]
        assert [problem.object.name for problem in cluster.problems if problem.object] == ["odd"]
        cluster.close()


def with_cpu(name: str, cpu: str) -> Callable[[Any], None]:
    def act(api: Any) -> None:
        found = copy.deepcopy(api.get("Workload", name, namespace="lab"))
        found["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
        api.replace(found)

    return act


def test_an_object_that_becomes_wrong_is_left_out_until_it_is_right(tmp_path: Path) -> None:
    with HttpApiServer(ApiServer(), clock=time.time_ns) as server:
        server.load([*crds(), *queues(4), *(workload(f"w{number}") for number in range(5))])
        live(server, cached(server, tmp_path)).close()
        for cpu, n_problems in (("much", 1), ("more", 1), ("1", 0)):
            server.call(with_cpu("w0", cpu))
            again, plain = live(server, cached(server, tmp_path)), live(server)
            assert held(again) == held(plain)
            assert len(again.problems) == len(plain.problems) == n_problems
            again._n_changes = 100  # so that it is written
            again.close()
            unchanged = live(server, cached(server, tmp_path))
            assert held(unchanged) == held(plain)
            assert len(unchanged.problems) == n_problems, "the cache knows what is wrong too"
            unchanged.close()
            plain.close()


def test_objects_that_stay_wrong_are_counted_once() -> None:
    with HttpApiServer(ApiServer(), clock=time.time_ns) as server:
        server.load([*crds(), *queues(4), workload("w")])
        cluster = live(server)
        cluster.follow()
        for cpu in ("much", "more", "most"):
            version = cluster.version
            server.call(with_cpu("w", cpu))
            wait_for(lambda before=version: cluster.wait(before, seconds=1) != before, "the change is seen")  # type: ignore[misc]
            assert len(cluster.problems) == 1
            assert not len(cluster.engine)
        cluster.close()


class TestCache:
    def written(self, folder: Path) -> ClusterCache:
        cache = ClusterCache("https://one", "prod", "lab", folder=folder)
        cache.write(CachedCluster({"Workload": "7"}, {"Node": [{"kind": "Node"}]}, Engine().save(), 1000.0))
        return cache

    def test_it_gives_back_what_was_written(self, tmp_path: Path) -> None:
        found = self.written(tmp_path).read(now=1001.0)
        assert found == CachedCluster({"Workload": "7"}, {"Node": [{"kind": "Node"}]}, Engine().save(), 1000.0)

    def test_only_the_owner_can_read_it(self, tmp_path: Path) -> None:
        cache = self.written(tmp_path)
        assert path_of(cache).stat().st_mode & 0o777 == 0o600
        assert path_of(cache).parent.stat().st_mode & 0o777 == 0o700

    def test_what_others_could_have_written_is_not_read(self, tmp_path: Path) -> None:
        cache = self.written(tmp_path)
        path_of(cache).chmod(0o666)
        assert cache.read(now=1001.0) is None

    @pytest.mark.parametrize("now", [999.0, 5000.0])
    def test_what_is_old_or_from_the_future_is_not_read(self, tmp_path: Path, now: float) -> None:
        assert self.written(tmp_path).read(now=now) is None

    @pytest.mark.parametrize("data", [b"", b"{}", b"[1]\n{}\n", b'{"format":"kueuecore.cluster/1"}\n', b"\xff\n\n"])
    def test_what_is_damaged_is_not_read(self, tmp_path: Path, data: bytes) -> None:
        cache = self.written(tmp_path)
        path_of(cache).write_bytes(data)
        assert cache.read(now=1001.0) is None

    def test_a_flipped_bit_anywhere_is_noticed(self, tmp_path: Path) -> None:
        cache = self.written(tmp_path)
        data = path_of(cache).read_bytes()
        for index in range(data.index(b"\n"), len(data)):
            path_of(cache).write_bytes(data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :])
            assert cache.read(now=1001.0) is None

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        cache = self.written(tmp_path)
        path_of(cache).unlink()
        os.mkfifo(path_of(cache))
        assert cache.read(now=1001.0) is None

    def test_without_a_home_there_is_no_cache(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_home() -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(Path, "home", no_home)
        for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
            monkeypatch.delenv(name, raising=False)
        cache = ClusterCache("https://one", "prod", "lab")
        cache.write(CachedCluster({}, {}, b"", 1000.0))
        assert cache.read(now=1001.0) is None

    def test_where_nothing_can_be_written_there_is_no_cache(self, tmp_path: Path) -> None:
        (tmp_path / "clusters").write_text("a file")
        assert self.written(tmp_path).read(now=1001.0) is None

    def test_other_contexts_have_other_files(self, tmp_path: Path) -> None:
        paths = {
            ClusterCache("https://one", *rest, folder=tmp_path).path for rest in (("a", ""), ("b", ""), ("a", "n"))
        }
        assert len(paths) == 3


def test_a_damaged_engine_in_the_cache_is_listed_again(server: HttpApiServer, tmp_path: Path) -> None:
    server.load([workload(f"w{number}") for number in range(5)])
    live(server, cached(server, tmp_path)).close()
    path = path_of(cached(server, tmp_path))
    path.write_bytes(path.read_bytes()[:-20])
    cluster = live(server, cached(server, tmp_path))
    assert len(cluster.engine) == 5
    cluster.close()


def test_an_older_version_of_a_kind_is_read_where_the_newest_is_not_served() -> None:
    class Old:
        def get(self, path: str) -> dict[str, Any]:
            assert path == "/apis"
            versions = [{"groupVersion": "kueue.x-k8s.io/v1beta1"}]
            return {"groups": [{"name": "kueue.x-k8s.io", "versions": versions}]}

    found = known_kinds(Old())  # type: ignore[arg-type]
    assert found["ClusterQueue"] == ("kueue.x-k8s.io/v1beta1", "clusterqueues")
    assert found["Node"] == ("v1", "nodes")
    assert "DeviceClass" not in found


def test_nodes_are_listed_only_if_a_flavor_names_a_topology(server: HttpApiServer) -> None:
    api = Api.connect(server=server.url)
    api.kinds = known_kinds(api)
    assert "Node" not in list_objects(api, api.kinds).kinds
    spec = {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}
    topology = {"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "t"}, "spec": spec}
    labels = {"nodeLabels": {"pool": "a"}, "topologyName": "t"}
    flavor = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "gpu"}, "spec": labels}
    server.load([topology, flavor])
    assert "Node" in list_objects(api, api.kinds).kinds
