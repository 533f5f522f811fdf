"""Commands without a STATE read the cluster: the same answers as for a dump, with few rights, and nothing written."""

from __future__ import annotations

import copy
import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kueuecore.api_server import RefusedError
from kueuecore.cli import ExitCode, main, watching
from kueuecore.kubernetes import live_cluster
from kueuecore_apiserver import AccessRules, Fault, HttpApiServer
from tests.unit.kubernetes.clusters import KUEUE, job, served, wait_for

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
users: [{{name: ann, user: {{token: secret}}}}]
contexts:
- {{name: here, context: {{cluster: c, user: ann, namespace: lab}}}}
- {{name: elsewhere, context: {{cluster: c, user: ann, namespace: team}}}}
"""
READ = ["get", "list", "watch"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


@pytest.fixture
def server() -> Iterator[HttpApiServer]:
    with served() as server:
        server.load([workload("small", 1), workload("large", 9)])
        yield server


def workload(name: str, cpu: int, *, namespace: str = "lab", owner: str = "") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if owner:
        metadata["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": f"u-{owner}"}]
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": metadata,
        "spec": {"queueName": "a", "podSets": [pod_set]},
    }


def kubeconfig(server: HttpApiServer, tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG.format(url=server.url))
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(arguments) == ExitCode.OK, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "-A"),
        ("explain", "lab/large"),
        ("explain", "lab/small"),
        ("unblock", "lab/large"),
        ("eta", "lab/large", "--run-seconds", "1h", "--arrivals", "none", "--workers", "1"),
        ("what-if", "--settle", "--delete", "Workload/lab/large"),
        ("upgrade", "--from", "0.19", "--to", "0.20"),
    ],
    ids=" ".join,
)
def test_a_cluster_is_answered_as_its_dump(
    arguments: tuple[str, ...], server: HttpApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = str(tmp_path / "state.json.gz")
    assert main(["dump", "--server", server.url, "-o", dump]) == ExitCode.OK
    command, *rest = arguments
    later = ("-o", "json", "-q", "--now", "2030-01-01T00:00:00Z")
    live = answer(capsys, command, *later, "--server", server.url, *rest)
    filed = answer(capsys, command, dump, *later, "--trusted", *rest)
    assert without_times(live) == without_times(filed)
    assert {request.method for request in server.requests if request.user_agent.startswith("kueuecore/")} == {"GET"}


def without_times(found: Any) -> Any:
    """The answer without when it was given, and without objects, of which a dump has all fields."""
    if isinstance(found, dict):
        times = {"lastTransitionTime", "now", "time", "objects", "createdAt", "events"}
        return {key: without_times(value) for key, value in found.items() if key not in times}
    return [without_times(value) for value in found] if isinstance(found, list) else found


def test_check_reads_the_cluster(server: HttpApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--server", server.url, "--fail-on", "error"]) == ExitCode.OK
    assert 'KC602 never-fits: Workload "lab/large"' in capsys.readouterr().out


class TestNames:
    def test_a_job_of_a_workload(self, server: HttpApiServer, capsys: pytest.CaptureFixture[str]) -> None:
        server.load([workload("job-train-1a2b", 9, owner="train")])
        found = answer(capsys, "explain", "Job/lab/train", "-o", "json", "--server", server.url)
        assert found["workload"]["name"] == "job-train-1a2b"

    def test_a_job_without_a_workload_is_read(self, server: HttpApiServer, capsys: pytest.CaptureFixture[str]) -> None:
        plain = job("train")
        del plain["metadata"]["labels"]
        server.load([plain])
        assert main(["explain", "Job/lab/train", "--server", server.url]) == ExitCode.BAD_INPUT
        assert 'Job "lab/train": it has no Workload: it has no label kueue.x-k8s.io/queue-name' in (
            capsys.readouterr().err
        )

    def test_a_new_job_is_answered_as_if_its_workload_were_there(
        self, server: HttpApiServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        server.load([job("train", cpu=9)])
        found = answer(capsys, "explain", "lab/train", "-o", "json", "--server", server.url)
        assert found["would"] == "Waits"

    @pytest.mark.parametrize("name", ["Job/lab/.", "Job/../train", "../.."])
    def test_a_name_does_not_lead_elsewhere(
        self, name: str, server: HttpApiServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        server.load([job("train")])
        assert main(["explain", name, "--server", server.url]) == ExitCode.BAD_INPUT
        assert f'there is no workload "{name}"' in capsys.readouterr().err
        assert not [request for request in server.requests if "/jobs" in request.path]

    @pytest.mark.parametrize("name", ["..", "a/b", "Lab", "a\n", "a" * 64])
    def test_what_is_no_namespace_is_refused(
        self, name: str, server: HttpApiServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["run", "-n", name, "--server", server.url]) == ExitCode.BAD_INPUT
        assert "is no name of a namespace" in capsys.readouterr().err

    def test_an_unknown_name_is_refused_with_near_ones(
        self, server: HttpApiServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["explain", "lab/smal", "--server", server.url]) == ExitCode.BAD_INPUT
        assert 'there is no workload "lab/smal"; write lab/small' in capsys.readouterr().err

    def test_the_namespace_of_the_context_comes_first(
        self, server: HttpApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        server.load([namespace, workload("small", 2, namespace="team")])
        config = ("--kubeconfig", kubeconfig(server, tmp_path), "-o", "json")
        assert answer(capsys, "explain", "small", *config)["workload"]["namespace"] == "lab"
        for place in (("--context", "elsewhere"), ("-n", "team")):
            assert answer(capsys, "explain", "small", *config, *place)["workload"]["namespace"] == "team"

    def test_run_shows_the_namespace_of_the_context(
        self, server: HttpApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        server.load([namespace, workload("other", 2, namespace="team")])
        config = ("--kubeconfig", kubeconfig(server, tmp_path), "-o", "json")

        def shown(*arguments: str) -> set[str]:
            return {row["name"] for row in answer(capsys, "run", *config, *arguments)["workloads"]}

        assert shown() == {"small", "large"}
        assert shown("-n", "team") == {"other"}
        assert shown("-A") == {"small", "large", "other"}


class TestRights:
    def roles(self, *rules: dict[str, Any], namespace: str = "") -> AccessRules:
        kind = "Role" if namespace else "ClusterRole"
        metadata = {"name": "r", **({"namespace": namespace} if namespace else {})}
        subjects = [{"kind": "User", "name": "ann"}]
        binding = {"kind": f"{kind}Binding", "metadata": metadata, "roleRef": {"kind": kind, "name": "r"}}
        role = {"kind": kind, "metadata": metadata, "rules": list(rules)}
        return AccessRules(users={"secret": "ann"}, manifests=[role, {**binding, "subjects": subjects}])

    def test_what_may_not_be_listed_is_named_with_what_the_answer_lacks(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        queues = {"apiGroups": ["kueue.x-k8s.io"], "resources": ["*"], "verbs": READ}
        with served(access=self.roles(queues)) as server:
            server.load([workload("large", 9)])
            assert main(["explain", "large", "--kubeconfig", kubeconfig(server, tmp_path)]) == ExitCode.OK
        out, err = capsys.readouterr()
        assert "9 cpu is more than ClusterQueue a could get" in out
        assert (
            "you may not list namespaces (needs the verbs get, list and watch), so the answer leaves out the l" in err
        )
        assert (
            "warning: you may not list limitranges (needs the verbs get, list and watch), so the answer leaves out the "
            "defaults and limits of LimitRanges\n"
        ) in err

    def test_where_one_namespace_is_allowed_that_one_is_read(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        mine = {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads", "localqueues"], "verbs": READ}
        with served(access=self.roles(mine, namespace="lab")) as server:
            server.load([workload("large", 9)])
            assert main(["explain", "large", "--kubeconfig", kubeconfig(server, tmp_path)]) == ExitCode.OK
        out, err = capsys.readouterr()
        assert "lab/large waits" in out
        assert "you may not list workloads.kueue.x-k8s.io" in err
        assert "except in namespace lab" in err
        assert "you may not list clusterqueues.kueue.x-k8s.io" in err

    def test_without_credentials_there_is_one_line(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with served(access=AccessRules(users={"other": "bob"}, manifests=[])) as server:
            assert main(["run", "--kubeconfig", kubeconfig(server, tmp_path)]) == ExitCode.BAD_INPUT
        err = capsys.readouterr().err
        assert err.startswith("here cannot be read: ")
        assert "Unauthorized" in err

    @pytest.mark.parametrize("code", [401, 429, 500, 503])
    def test_a_kind_that_is_refused_for_now_is_named(
        self, code: int, server: HttpApiServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        refusal = RefusedError(code, "please try again later", reason="NotNow")
        for resource, place in (("localqueues", "localqueues.kueue.x-k8s.io"), ("jobs", "Job")):
            server.faults = lambda request, refused=resource: (
                Fault(refusal=refusal) if request.resource == refused else None
            )
            assert main(["explain", "lab/train", "--server", server.url]) == ExitCode.BAD_INPUT
            assert f"{server.url} cannot be read: {place}: please try again later; " in capsys.readouterr().err

    def test_jobs_that_may_not_be_read_are_not_said_to_be_absent(
        self, server: HttpApiServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        refusal = RefusedError(403, "forbidden", reason="Forbidden")
        server.faults = lambda request: Fault(refusal=refusal) if request.resource == "jobs" else None
        assert main(["explain", "lab/train", "--server", server.url]) == ExitCode.BAD_INPUT
        err = capsys.readouterr().err
        assert "warning: you may not get Job, so it is not known whether one has this name\n" in err


class TestKueue:
    def test_its_release_and_configuration_are_those_of_the_cluster(
        self, server: HttpApiServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = f"apiVersion: config.{KUEUE}\nkind: Configuration\nwaitForPodsReady: {{timeout: 3m}}\n"
        metadata = {"name": "kueue-manager-config", "namespace": "kueue-system"}
        data = {"controller_manager_config.yaml": text}
        server.load([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, deployment()])
        assert main(["run", "-A", "-o", "json", "--server", server.url]) == ExitCode.OK
        out, err = capsys.readouterr()
        assert json.loads(out)["kueue"]["version"].startswith("v0.17")
        assert "note: Kueue's Configuration is that of " in err


def deployment() -> dict[str, Any]:
    image = "registry.k8s.io/kueue/kueue:v0.17.3"
    labels = {"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"}
    volumes = [{"name": "manager-config", "configMap": {"name": "kueue-manager-config"}}]
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "manager", "image": image}], "volumes": volumes},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system", "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


class TestDump:
    def test_a_file_is_compressed_and_private(
        self, server: HttpApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        server.load([deployment()])
        path = tmp_path / "state.json.gz"
        assert main(["dump", "--server", server.url, "-o", str(path)]) == ExitCode.OK
        assert f"objects to {path}; read it with --trusted --now 20" in capsys.readouterr().err
        assert path.stat().st_mode & 0o777 == 0o600
        kinds = [entry["kind"] for entry in json.loads(gzip.decompress(path.read_bytes()))["items"]]
        assert {"Deployment", "ClusterQueue", "LocalQueue", "Workload", "Namespace"} <= {*kinds}
        assert "managedFields" not in gzip.decompress(path.read_bytes()).decode()

    def test_stdout_and_events(self, server: HttpApiServer, capsys: pytest.CaptureFixture[str]) -> None:
        about = {"kind": "Workload", "name": "small", "namespace": "lab"}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "small.1", "namespace": "lab"},
            "involvedObject": about,
            "reason": "Admitted",
        }
        server.load([event])
        assert "Event" not in {entry["kind"] for entry in answer(capsys, "dump", "--server", server.url)["items"]}
        found = answer(capsys, "dump", "--events", "--server", server.url)["items"]
        assert [entry["reason"] for entry in found if entry["kind"] == "Event"] == ["Admitted"]

    def test_a_file_that_cannot_be_written(
        self, server: HttpApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["dump", "--server", server.url, "-o", str(tmp_path / "no" / "x")]) == ExitCode.BAD_INPUT
        assert "No such file or directory; choose another file" in capsys.readouterr().err


class TestWatch:
    def test_an_answer_that_changes_is_printed_again(self, server: HttpApiServer, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "kueuecore", "explain", "lab/large", "--watch", "--server", server.url]
        out = tmp_path / "out"
        with out.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE) as process:
            try:
                wait_for(lambda: b"more than ClusterQueue a could get" in out.read_bytes(), "the first answer")

                def raise_quota(api: Any) -> None:
                    queue = copy.deepcopy(api.get("ClusterQueue", "a"))
                    flavors = queue["spec"]["resourceGroups"][0]["flavors"]
                    flavors[0]["resources"][0]["nominalQuota"] = "20"
                    api.replace(queue)

                server.call(raise_quota)
                wait_for(lambda: b"lab/large is Admitted" in out.read_bytes(), "the next answer")
                server.call(lambda api: api.delete("Workload", "large", namespace="lab"))
                assert process.wait(timeout=30) == ExitCode.OK
            finally:
                process.kill()

    def test_a_server_that_is_away_for_a_time_does_not_end_it(
        self, server: HttpApiServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for module, name in ((live_cluster, "_LOST_SECONDS"), (watching, "_RETRY_SECONDS")):
            monkeypatch.setattr(module, name, 0.1)
        ended: list[int] = []
        command = ["explain", "lab/large", "--watch", "--server", server.url]
        server.faults = lambda request: Fault(watch_ends_after=1) if request.verb == "watch" else None
        thread = threading.Thread(target=lambda: ended.append(main(command)), daemon=True)
        thread.start()
        said: list[str] = ["", ""]

        def says(what: str, *, err: bool = False) -> bool:
            for index, text in enumerate(capsys.readouterr()):
                said[index] += text
            return what in said[err]

        wait_for(lambda: says("more than ClusterQueue a could get"), "the first answer")
        wait_for(lambda: any(request.verb == "watch" for request in server.requests), "it follows the cluster")
        server.faults = lambda _: Fault(refusal=RefusedError(503, "starting", reason="NotNow"))
        server.load([workload("other", 1)])
        wait_for(lambda: says("cannot be read: ", err=True), "it says that there is no answer")
        server.faults = None
        server.load([workload("another", 1)])
        server.call(lambda api: api.delete("Workload", "large", namespace="lab"))
        thread.join(60)
        assert ended == [ExitCode.OK]
        assert says('there is no workload "lab/large"', err=True)
        assert said[1].count("cannot be read") == 1

    def test_files_are_not_watched(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["explain", str(tmp_path), "lab/w", "--watch"]) == ExitCode.BAD_INPUT
        assert "--watch follows a cluster; leave out the files, or --watch" in capsys.readouterr().err


class TestNoCluster:
    @pytest.mark.parametrize(
        "command", [["run"], ["explain", "w"], ["check"], ["dump"], ["eta"], ["what-if", "--settle"]]
    )
    def test_it_says_what_to_give(self, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        arguments = [*command, *(["--delete", "Workload/w"] if command[0] == "what-if" else [])]
        assert main(arguments) == ExitCode.BAD_INPUT
        err = capsys.readouterr().err
        assert "no cluster is found" in err
        assert (
            "no such file; give the objects in files, or name a cluster with --kubeconfig, --context or --server" in err
        )

    def test_a_context_that_is_not_there_is_answered_with_those_that_are(
        self, server: HttpApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = ("--kubeconfig", kubeconfig(server, tmp_path), "--context", "prod")
        assert main(["run", *arguments]) == ExitCode.BAD_INPUT
        assert 'there is no context "prod"; it has elsewhere, here; give' in capsys.readouterr().err

    def test_a_file_alone_is_no_name_of_a_workload(
        self, server: HttpApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        state = tmp_path / "state.yaml"
        assert main(["explain", str(state), "--server", server.url]) == ExitCode.BAD_INPUT
        assert f"to ask about the file, name the workload too: {state} NAMESPACE/NAME" in capsys.readouterr().err

    def test_without_the_extra(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        for name in ("kubernetes", "kubernetes.config", "kueuecore.kubernetes.connecting"):
            monkeypatch.setitem(sys.modules, name, None)
        assert main(["explain", "w"]) == ExitCode.BAD_INPUT
        assert "reading a cluster needs the extra `kubernetes`; give files, or pip" in capsys.readouterr().err
