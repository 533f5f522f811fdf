"""A manager of MultiKueue and its workers, each on an API server over HTTP, in one virtual time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from kueuecore import Configuration
from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.kubernetes import Api, LateKinds, News, UnansweredError, follow, list_all
from kueuecore.kubernetes.credentials import Client
from kueuecore.kubernetes.workers.credentials import WorkerCredentials
from kueuecore.kubernetes.workers.link import LinkReports, selector_of
from kueuecore.kubernetes.workers.multikueue_decider import MultiKueueDecider
from kueuecore.kubernetes.workers.requests import answer_to
from kueuecore.multikueue import Dispatcher
from kueuecore.times import SECOND_NS, format_time, nanoseconds
from kueuecore.trials.http_replica import DiedError, HttpReplica, MortalApi
from kueuecore.writes import Write
from kueuecore_apiserver import AccessRules, Closing, Fault, HttpApiServer, Request
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import crds
from tests.unit.kubernetes.clusters import queues
from tests.unit.kubernetes.multikueue_objects import CHECKED, KUEUES_TOKEN, MULTIKUEUE, multikueue_objects

Json = dict[str, Any]
START = 1_767_225_600 * SECOND_NS
CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job]}
"""


class _Patience(LateKinds):
    def wait(self, pause_ns: int, *, for_kinds: bool) -> None:
        pass


class SteppedLink:
    """A connection that makes its requests when it is asked to, in this thread."""

    def __init__(
        self, api: Api, credentials: WorkerCredentials, kinds: Mapping[str, tuple[str, str]], reports: LinkReports
    ):
        self._api, self._credentials, self._reports = api, credentials, reports
        api.kinds = dict(kinds)
        self._versions: dict[str, str] = {}
        self._is_over = False

    def send(self, write: Write) -> None:
        self._reports.answered(write, answer_to(self._api, write))

    def close(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._api.close()
            self._credentials.close()

    def hear(self, kinds: Collection[str] | None) -> None:
        """Connect, or hear what the watches of some kinds have to report, or of all."""
        try:
            is_new = not self._versions
            for kind in [*self._api.kinds] if not self._is_over else ():
                if kind not in self._versions:
                    objects, version = list_all(self._api, kind, selector=selector_of(kind, "multikueue"))
                    self._reports.heard(News(kind, objects, version))
                    self._versions[kind] = version
                    continue
                if kinds is not None and kind not in kinds:
                    continue
                selector = selector_of(kind, "multikueue")
                for event, data in self._api.watch(self._api.path(kind), since=self._versions[kind], selector=selector):
                    self._versions[kind] = event["object"]["metadata"]["resourceVersion"]  # type: ignore[index, call-overload, assignment]
                    self._reports.heard(News(kind, event=event, data=data))
            if is_new and self._versions:
                self._reports.up()
        except (RefusedError, UnansweredError) as error:
            self.close()
            self._reports.down(str(error))


class ManagerReplica(HttpReplica):
    """A process of `kueuecore serve` that is a manager, without threads."""

    def __init__(
        self,
        api: MortalApi,
        cluster: ApiServer,
        configuration: Configuration,
        *,
        reach: Callable[[WorkerCredentials], MortalApi],
        news: Callable[[str, int], tuple[int, Collection[str] | None]],
        dispatcher: Dispatcher | None = None,
    ) -> None:
        super().__init__(api, cluster, configuration, creates_events=True)
        self._calls: deque[Callable[[], None]] = deque()
        self._more: dict[str, Iterator[News | None]] = {}
        self.links: dict[str, SteppedLink] = {}
        self._reach, self._news = reach, news
        # Up to which version each connection has heard, by its identity.
        self._heard_at: dict[int, int] = {}
        self.faults: dict[str, str] = {}
        self.multikueue = MultiKueueDecider(
            self.decider,
            requests=self._take_task,
            call=self._calls.append,
            now=lambda: cluster.now,
            open_link=self._open,
            watch=self._watch,
            fault_of=lambda kind: self.faults.get(kind, ""),
            configuration=configuration,
            dispatcher=dispatcher,
        )
        self._watch(self.multikueue.kinds, "")

    def _open(
        self, cluster: str, credentials: WorkerCredentials, kinds: Mapping[str, tuple[str, str]], reports: LinkReports
    ) -> SteppedLink:
        self.links[cluster] = SteppedLink(self._reach(credentials), credentials, kinds, reports)
        return self.links[cluster]

    def _watch(self, kinds: Sequence[str], namespace: str) -> None:
        for kind in kinds:
            self._more[kind] = follow(self.api, kind, namespace=namespace, late=_Patience(), fault=self._note_fault)

    def _note_fault(self, kind: str, error: Exception | None) -> None:
        self.faults[kind] = "" if error is None else str(error)

    def step(self) -> None:
        """Hear what there is, and decide."""
        self.hear()
        # Watches without news are not read: each costs a request.
        for kind, feed in list(self._more.items()):
            kinds = self._new_kinds("", id(feed))
            if kinds is not None and kind not in kinds:
                continue
            for news in feed:
                if news is None:
                    break
                self.multikueue.hear(news)
                if news.listed is not None:
                    break
        for name, link in list(self.links.items()):
            kinds = self._new_kinds(name, id(link))
            if kinds is None or kinds:
                link.hear(kinds)
        for _ in range(3):
            while self._calls:
                self._calls.popleft()()
            self.decider.step()
            self.multikueue.step()

    def _new_kinds(self, cluster: str, heard: int) -> Collection[str] | None:
        """Return the kinds that have changed since this was last asked; None: any may have."""
        self._heard_at[heard], kinds = self._news(cluster, self._heard_at.get(heard, 0))
        return kinds


class HttpFleet:
    """A manager and workers `west` and `east`; Jobs run on the workers for as long as their annotation says.

    Args:
        configuration: The Configuration of all three.
        dispatcher: Decides which workers get copies.
        access: What the manager's token `secret` may do in its own cluster.
        access_to_workers: What it may do on its workers, and what the token of their own Kueue.
        objects: More objects of all three.
        refuses: Faults of the manager's requests.
    """

    def __init__(
        self,
        configuration: str = CONFIGURATION,
        *,
        dispatcher: Dispatcher | None = None,
        access: AccessRules | None = None,
        access_to_workers: AccessRules | None = None,
        objects: Sequence[Json] = (),
        refuses: Callable[[str, Request], Fault | None] = lambda name, request: None,
    ) -> None:
        self.configuration, self.dispatcher, self._refuses = Configuration.parse(configuration), dispatcher, refuses
        self.cut: set[str] = set()
        self.dies_at: dict[int, str] = {}
        self.n_writes = self.n_restarts = 0
        self.starts: list[tuple[str, str]] = []
        self.most_running: dict[str, int] = {}
        self.servers: dict[str, HttpApiServer] = {}
        for name in ("", "west", "east"):
            rules = access_to_workers if name else access
            options: Json = {"schemas": CrdSchema.of, "access": rules, "faults": partial(self._fault, name)}
            self.servers[name] = HttpApiServer(ApiServer(now=START), seed=len(self.servers), **options)
            default = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
            self.servers[name].load([default, *crds(), *queues(8), *objects])
        self.manager = self.servers[""]

    @contextmanager
    def running(self) -> Iterator[HttpFleet]:
        """Serve, and let replicas begin."""
        with ExitStack() as stack:
            urls = {name: stack.enter_context(server.serve()) for name, server in self.servers.items()}
            self.urls = urls
            self.manager.load(multikueue_objects({name: url for name, url in urls.items() if name}))
            self.manager.api.patch("ClusterQueue", "a", CHECKED)
            self.workers = {name: self._worker(name) for name in urls if name}
            self.restart()
            yield self
            self.replica.multikueue.close()

    @property
    def now(self) -> int:
        return self.manager.api.now

    def _fault(self, name: str, request: Request) -> Fault | None:
        is_ours = request.headers.get("authorization") == "Bearer secret"
        if name in self.cut and is_ours:
            return Fault(closing=Closing.BEFORE)
        if is_ours and (fault := self._refuses(name, request)) is not None:
            return fault
        return Fault(watch_ends_when_idle=True) if request.verb == "watch" else None

    def _worker(self, name: str) -> HttpReplica:
        api = self._api(name, KUEUES_TOKEN)
        api.dies, api.compares = lambda: "", lambda path: lambda: None
        return HttpReplica(api, self.servers[name].api, self.configuration)

    def _api(self, name: str, token: str) -> MortalApi:
        api = MortalApi.connect(server=self.urls[name])
        api.client.configuration.api_key = {"authorization": f"Bearer {token}"}
        return api

    def _mortal(self, credentials: WorkerCredentials | None) -> MortalApi:
        api = self._api("", "secret")
        if credentials is not None:
            api = MortalApi(Client(lambda: credentials.credentials))
        api.dies, api.compares = self._dies, lambda path: lambda: None
        return api

    def _dies(self) -> str:
        self.n_writes += 1
        return self.dies_at.pop(self.n_writes, "")

    def restart(self) -> None:
        """A process of the manager begins: it knows nothing."""
        self.n_restarts += 1
        self.replica = ManagerReplica(
            self._mortal(None),
            self.manager.api,
            self.configuration,
            reach=self._mortal,
            news=self._news,
            dispatcher=self.dispatcher,
        )

    def _news(self, cluster: str, since: int) -> tuple[int, Collection[str] | None]:
        """Return the version of a cluster, and the kinds that have changed since an earlier one."""
        server = self.servers.get(cluster)
        if server is None or cluster in self.cut or not since:
            return (server.api.version if server else 0), None
        changed = {event["object"]["kind"] for version, event in reversed(server.api.history) if version > since}
        return server.api.version, changed

    def come(self, name: str, *, minutes: int = 1, cpu: int = 1) -> None:
        """Create a Job as Kueue's webhook leaves it."""
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        spec = {"suspend": True, "managedBy": MULTIKUEUE, "parallelism": 1, "completions": 1, "template": template}
        labels, annotations = {"kueue.x-k8s.io/queue-name": "a"}, {"minutes": str(minutes)}
        metadata = {"name": name, "namespace": "lab", "labels": labels, "annotations": annotations}
        self.manager.load([{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}])

    def live(self, seconds: int, *, until: Callable[[], bool] = lambda: False) -> None:
        """Let time go by."""
        for _ in range(seconds):
            if until():
                return
            for name, replica in self.workers.items():
                self._work(name)
                replica.hear()
                replica.decider.step()
            try:
                self.replica.step()
            except DiedError:
                self.restart()
            for server in self.servers.values():
                server.api.now += SECOND_NS

    def _work(self, worker: str) -> None:
        """What the controller of Jobs and the garbage collector do on a worker."""
        server = self.servers[worker]
        for job in server.api.list("Job")[0]:
            status = job.get("status", {})
            if status.get("conditions"):
                continue
            name, runs, began = job["metadata"]["name"], not job["spec"].get("suspend"), status.get("startTime")
            if runs and not began:
                self.starts.append((worker, name))
                began = format_time(self.now)
            changed: Json = {**status, "active": int(runs), "ready": int(runs)} | (
                {"startTime": began} if began else {}
            )
            if (
                runs
                and self.now - nanoseconds(began) >= int(job["metadata"]["annotations"]["minutes"]) * 60 * SECOND_NS
            ):
                at = format_time(self.now)
                done = [
                    {"type": name, "status": "True", "message": "done", "lastTransitionTime": at}
                    for name in ("SuccessCriteriaMet", "Complete")
                ]
                changed |= {"active": 0, "ready": 0, "succeeded": 1, "completionTime": at, "conditions": done}
            if not runs:
                changed["startTime"] = None
            if changed != status:
                server.api.patch("Job", name, {"status": changed}, namespace="lab", subresource="status")
        server.collect_garbage()
        running = {
            job["metadata"]["name"]
            for other in self.workers
            if other not in self.cut
            for job in self.servers[other].api.list("Job")[0]
            if job.get("status", {}).get("active")
        }
        for name in running:
            count = sum(name in self.running_on(other) for other in self.workers if other not in self.cut)
            self.most_running[name] = max(self.most_running.get(name, 0), count)

    def running_on(self, worker: str) -> set[str]:
        """The Jobs that have pods on a worker."""
        jobs = self.servers[worker].api.list("Job")[0]
        return {job["metadata"]["name"] for job in jobs if job.get("status", {}).get("active")}

    def left(self) -> list[str]:
        """What is on the workers."""
        return [
            f"{worker}: {kind} {row['metadata']['name']}"
            for worker in self.workers
            for kind in ("Workload", "Job")
            for row in self.servers[worker].api.list(kind)[0]
        ]

    def finished(self) -> set[str]:
        """The Jobs that have ended, as the manager's users see it."""
        jobs = self.manager.api.list("Job")[0]
        return {job["metadata"]["name"] for job in jobs if job.get("status", {}).get("succeeded")}

    def active(self, worker: str) -> tuple[str, str, str]:
        """Status, reason and message of the condition of a worker."""
        status = self.manager.api.get("MultiKueueCluster", worker).get("status", {})
        (condition,) = status.get("conditions") or [{"status": "", "reason": "", "message": ""}]
        return condition["status"], condition["reason"], condition["message"]

    def workload(self) -> Json:
        """The only Workload of the manager."""
        (found,) = self.manager.api.list("Workload")[0]
        return found
