"""The server itself: HTTP on loopback, on an event loop in its own thread."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from kueuecore.api_server import ApiServer, RefusedError, Webhooks
from kueuecore_apiserver.access import AccessRules
from kueuecore_apiserver.admission.chain import Admission
from kueuecore_apiserver.admission.webhook_calls import Outcomes, PendingCall
from kueuecore_apiserver.faults import Closing, Fault, Faults
from kueuecore_apiserver.garbage import Garbage
from kueuecore_apiserver.handler import Answer, Handler, answer_of_refusal
from kueuecore_apiserver.loading import load_object
from kueuecore_apiserver.reads import check_options, version_asked_for
from kueuecore_apiserver.refusals import expired
from kueuecore_apiserver.requests import Object, Request
from kueuecore_apiserver.resources import Registry, Resource
from kueuecore_apiserver.store import Schemas, Store, encoded
from kueuecore_apiserver.streams import WatchStream, broken
from kueuecore_apiserver.watches import Change, Watcher, Watches

__all__ = ["HttpApiServer"]

_T = TypeVar("_T")
_MAX_BYTES = 3 * 2**20
_WRITES = ("create", "update", "patch")
_MAX_RECORDED = 100_000
_WATCH_SECONDS = 1800
_STOP_SECONDS = 5.0
_BACKLOG = 128
_TOO_LARGE = "Request entity too large: limit is 3145728"


class HttpApiServer:
    """A Kubernetes API server over HTTP on loopback, strict where a real one is.

    It works with kubectl and client libraries: discovery, paged lists, watches, all patches and server-side apply,
    CustomResourceDefinitions, finalizers, RBAC. You decide which faults occur: see `faults`.

    Args:
        api: The objects; while the server runs, access them only through `call`.
        seed: The seed of UIDs and of the ends of generated names.
        clock: Returns the time of objects in nanoseconds since 1970; by default it stands still until `api.now` moves.
        schemas: The schemas of CustomResourceDefinitions.
        webhooks: Called for each object before it is stored; for example `kueuecore.webhooks.admit`. Policies, and the
            webhooks of configuration objects, are asked without it, too.
        services: Where the services of such webhooks are, by `namespace/name`: host and port.
        access: The access rules; without them, everybody may do anything.
        faults: Returns the fault of a request.
        waits_for_kubelets: Whether deleted pods stay on their nodes, marked as deleted, until they are deleted without
            grace, as a kubelet does.
        collects_garbage: Whether to delete objects without owners, and the contents of ending namespaces, by itself.
            Otherwise call `collect_garbage`.
        bookmark_seconds: How often a watch that allows bookmarks gets one.
        keep_changes: The minimum number of changes that watches can go back.
        host: The loopback address to listen on.
        port: The port; 0 takes a free one.

    Raises:
        ValueError: `host` is not a loopback address: the server has no passwords and no encryption.

    Example:
        >>> import json, urllib.request
        >>> with HttpApiServer(ApiServer()) as server:
        ...     with urllib.request.urlopen(f"{server.url}/version") as answer:
        ...         print(json.load(answer)["major"])
        1
    """

    def __init__(
        self,
        api: ApiServer | None = None,
        *,
        seed: int = 0,
        clock: Callable[[], int] | None = None,
        schemas: Schemas | None = None,
        webhooks: Webhooks | None = None,
        services: Mapping[str, tuple[str, int]] | None = None,
        access: AccessRules | None = None,
        faults: Faults | None = None,
        waits_for_kubelets: bool = False,
        collects_garbage: bool = False,
        bookmark_seconds: float = 60.0,
        keep_changes: int = 100_000,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        _require_loopback(host)
        self.api = ApiServer() if api is None else api
        self.faults = faults
        self.requests: deque[Request] = deque(maxlen=_MAX_RECORDED)
        """The requests so far, newest last."""
        self._store = Store(self.api, clock=clock, seed=seed, schemas=schemas, webhooks=webhooks)
        self._watches = Watches(self.api, keep=keep_changes)
        self._admission = Admission(self._store, {} if services is None else services)
        self._handler = Handler(self._store, self._admission, waits_for_kubelets=waits_for_kubelets, access=access)
        self._access = self._store.access = access
        self._garbage = Garbage(self._store, self._handler.deletes)
        self._collects_garbage, self._bookmark_seconds = collects_garbage, bookmark_seconds
        self._host, self._port = host, port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopping: asyncio.Event | None = None
        self._bugs: list[Exception] = []
        self._n_requests = 0

    @property
    def url(self) -> str:
        """The URL of the server."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def kinds(self) -> Registry:
        """The kinds that are served; `hide` removes one for a while, and `show` restores it."""
        return self._store.registry

    def start(self) -> Self:
        """Start the server.

        Raises:
            OSError: The port is taken.
        """
        if self._thread is not None:
            # What a server remembers of changes ends with it.
            self.api.compact()
        started: threading.Event = threading.Event()
        failures: list[BaseException] = []
        arguments = (started, failures)
        self._thread = threading.Thread(target=self._run, args=arguments, name="kubernetes-api", daemon=True)
        self._thread.start()
        started.wait()
        if failures:
            self._thread.join()
            raise failures[0]
        return self

    def stop(self) -> None:
        """Stop the server; watches end.

        Raises:
            ExceptionGroup: The server ran into bugs of its own, which clients saw as code 500.
        """
        loop, stopping = self._loop, self._stopping
        if loop is not None and stopping is not None and self._thread is not None:
            loop.call_soon_threadsafe(stopping.set)
            self._thread.join()
        self._loop = None
        self._admission.close()
        if self._bugs:
            raise ExceptionGroup("the API server met bugs of its own", self._bugs)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve within the context, which gives the URL."""
        with self:
            yield self.url

    def call(self, function: Callable[[ApiServer], _T]) -> _T:
        """Access the objects while the server runs, between two requests.

        Args:
            function: Called with the objects; `call` returns or raises what it returns or raises.
        """
        loop = self._loop
        if loop is None or threading.current_thread() is self._thread:
            return self._called(function)

        async def inside() -> _T:
            return self._called(function)

        return asyncio.run_coroutine_threadsafe(inside(), loop).result()

    def _called(self, function: Callable[[ApiServer], _T]) -> _T:
        self._store.tick()
        return function(self.api)

    def load(self, manifests: Iterable[Object]) -> None:
        """Create objects with their statuses, by the rules of a request, but without roles and faults.

        Args:
            manifests: The objects, in an order in which kinds and namespaces come before the objects that need them.

        Raises:
            RefusedError: One of them is refused; the earlier ones exist.
        """
        for manifest in manifests:
            outcomes: Outcomes = {}
            while True:
                try:
                    self.call(lambda api, entry=manifest, known=outcomes: self._load(entry, known))  # type: ignore[misc]
                    break
                except PendingCall as call:
                    call.resolve(outcomes)

    def _load(self, manifest: Object, outcomes: Outcomes) -> None:
        self._admission.begin(outcomes)
        load_object(self._handler, manifest)

    def collect_garbage(self) -> int:
        """Delete objects without owners, and the contents of ending namespaces.

        Returns:
            The number of objects that were deleted or changed.
        """
        return self.call(lambda api: self._garbage.collect())

    def compact(self) -> None:
        """Forget all changes so far: watches from older versions get 410."""
        self.call(lambda api: api.compact())

    def _run(self, started: threading.Event, failures: list[BaseException]) -> None:
        try:
            asyncio.run(self._serve(started))
        except BaseException as error:  # The caller of `start` gets it.
            failures.append(error)
        finally:
            started.set()

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = _Server(self._handle, request_factory=_request, access_log=None)
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=_STOP_SECONDS)
        await runner.setup()
        try:
            assert runner.server is not None
            listener = await self._loop.create_server(runner.server, self._host, self._port, backlog=_BACKLOG)
            if not self._port:
                self._port = listener.sockets[0].getsockname()[1]
            started.set()
            await self._stopping.wait()
            # Nobody may connect once watches end, as clients at once open them again. What has been accepted needs two
            # turns of the loop, and the listener, to become a connection; before that, nobody would close it.
            with suppress(NotImplementedError):  # Windows accepts in another way.
                for listening in listener.sockets:
                    self._loop.remove_reader(listening)
            await asyncio.sleep(0)
            listener.close()
            await asyncio.sleep(0)
            self._watches.wake_all()
        finally:
            await runner.cleanup()
            await server.abort()

    async def _handle(self, http: BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in http.headers.items()}
        request = Request.of(http.method, http.raw_path, headers)
        request.index, self._n_requests = self._n_requests, self._n_requests + 1
        try:
            body = await http.read()
        except web.HTTPRequestEntityTooLarge:
            return _response(answer_of_refusal(RefusedError(413, _TOO_LARGE, reason="RequestEntityTooLarge")))
        self.requests.append(request)
        fault = self.faults(request) if self.faults is not None else None
        if fault is not None:
            if fault.delay_seconds:
                await asyncio.sleep(fault.delay_seconds)
            if fault.closing is Closing.BEFORE:
                return broken(http)
            if fault.refusal is not None:
                request.code = fault.refusal.code
                return _response(answer_of_refusal(fault.refusal, retry_after_seconds=fault.retry_after_seconds))
        if request.verb == "watch":
            return await self._watch(http, request, fault or Fault())
        answer = await self._answered(request, body)
        if fault is not None and fault.answer_delay_seconds:
            await asyncio.sleep(fault.answer_delay_seconds)
        return broken(http) if fault is not None and fault.closing is Closing.AFTER else _response(answer)

    async def _answered(self, request: Request, body: bytes) -> Answer:
        """Answer a request, after all webhooks that have to be asked about it."""
        outcomes: Outcomes = {}
        drawn = self._store.random.getstate() if request.verb in _WRITES else None
        while True:
            self._admission.begin(outcomes)
            try:
                return self._answer(request, body)
            except PendingCall as call:
                await asyncio.to_thread(call.resolve, outcomes)
                request.warnings.clear()
                if drawn is not None:
                    # The same names are generated once more.
                    self._store.random.setstate(drawn)

    def _answer(self, request: Request, body: bytes) -> Answer:
        self._store.tick()
        try:
            if self._access is not None:
                self._access.check(request)
            answer = self._handler.answer(request, body)
        except RefusedError as refusal:
            answer = answer_of_refusal(refusal)
        except PendingCall:
            raise
        except Exception as bug:  # A bug of the server's own: `stop` raises it.
            answer = self._met(bug)
        request.code = answer.code
        if request.warnings:
            answer.headers["Warning"] = ", ".join(f"299 - {json.dumps(warning)}" for warning in request.warnings)
        request.remember_less()
        if self._collects_garbage and request.verb not in ("get", "list"):
            self._garbage.collect()
        return answer

    def _met(self, bug: Exception) -> Answer:
        self._bugs.append(bug)
        return answer_of_refusal(RefusedError(500, f"Internal error occurred: {bug!r}"))

    async def _watch(self, http: BaseRequest, request: Request, fault: Fault) -> web.StreamResponse:
        self._store.tick()
        try:
            stream = self._open(request, fault)
        except RefusedError as refusal:
            return _refused_watch(request, refusal)
        except PendingCall:
            raise
        except Exception as bug:  # A bug of the server's own: `stop` raises it.
            return _response(self._met(bug))
        request.code = 200
        try:
            return await stream.run(http)
        finally:
            self._watches.remove(stream.watcher)
            request.remember_less()

    def _open(self, request: Request, fault: Fault) -> WatchStream:
        """Open a watch.

        Raises:
            RefusedError: There is no such kind, or the version is too old or malformed.
        """
        if self._access is not None:
            self._access.check(request)
        resource = self._handler.resource(request)
        check_options(request)
        if fault.watch_is_gone:
            raise expired(f"too old resource version: {request.query.get('resourceVersion')} ({self.api.version})")
        select = self._handler.reads.selector(request, resource)
        loop, thread, ready = asyncio.get_running_loop(), threading.current_thread(), asyncio.Event()

        def line(change: Change) -> bytes:
            return self._handler.reads.line(request, resource, select, change)

        def wake() -> None:
            if threading.current_thread() is thread:
                ready.set()
            else:
                loop.call_soon_threadsafe(ready.set)

        watcher = Watcher(resource.stored_as, line, wake)
        self._begin(watcher, request, resource)
        return WatchStream(
            watcher,
            ready,
            self._is_stopping,
            request.number("timeoutSeconds", _WATCH_SECONDS),
            partial(self._handler.reads.bookmark, request, resource) if request.flag("allowWatchBookmarks") else None,
            self._bookmark_seconds,
            fault,
        )

    def _begin(self, watcher: Watcher, request: Request, resource: Resource) -> None:
        """Send the changes since the requested version, or the existing objects, and from then on all changes."""
        version = version_asked_for(request)
        if version is None:
            for object_ in self._store.objects(resource, request.namespace):
                watcher.put(Change(self.api.version, "ADDED", object_, None))
        else:
            for change in self._watches.since(watcher.kind, version):
                watcher.put(change)
        self._watches.add(watcher)

    def _is_stopping(self) -> bool:
        return self._stopping is not None and self._stopping.is_set()


class _Server(web.Server):
    """A server that closes connections for good, even if their clients do not read what is on its way to them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._open: dict[RequestHandler, asyncio.Transport] = {}

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        self._open[handler] = transport
        super().connection_made(handler, transport)

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        self._open.pop(handler, None)
        super().connection_lost(handler, exc)

    async def abort(self) -> None:
        """Close what is still open."""
        while self._open:
            for transport in self._open.values():
                transport.abort()
            await asyncio.sleep(0)


def _require_loopback(host: str) -> None:
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise ValueError(f"host must be a loopback address such as 127.0.0.1, not {host}: there is no encryption")


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> BaseRequest:
    """Create a request for aiohttp (hence the types), with room for the largest object."""
    loop = asyncio.get_running_loop()
    return BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_MAX_BYTES)


def _response(answer: Answer) -> web.Response:
    headers = {"Content-Type": answer.content_type, "Cache-Control": "no-cache, private", **answer.headers}
    return web.Response(status=answer.code, body=answer.body, headers=headers)


def _refused_watch(request: Request, refusal: RefusedError) -> web.Response:
    """Answer a refused watch: one that is too old starts, and gets an error event; other refusals are plain."""
    request.code = refusal.code
    answer = answer_of_refusal(refusal)
    if refusal.code != 410:
        return _response(answer)
    return _response(Answer(200, encoded({"type": "ERROR", "object": refusal.status}) + b"\n"))
