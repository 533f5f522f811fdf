"""The pages of a state: cohorts, queues, workloads, one workload with its questions, nodes, what-if."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from kueuecore._json import JsonObject, list_at, object_at
from kueuecore._spans import span
from kueuecore.cli.state_source import StateSource
from kueuecore.errors import ObjectRef, UnknownObjectError
from kueuecore.states import Stage
from kueuecore.ui.live import Live
from kueuecore.ui.node_map import flavor_maps
from kueuecore.ui.questions import MOST_ROWS, Answer, ask_part, list_command, parts
from kueuecore.ui.quota_tree import bars_of, quota_tree, walked
from kueuecore.ui.rendering import Shown
from kueuecore.ui.slow_answers import SlowAnswers
from kueuecore.ui.state_view import StateView, Views, WorkloadRow
from kueuecore.ui.what_if import WhatIfForm
from kueuecore.ui.workload_list import ListQuery, WorkloadPage

__all__ = ["StatePages"]

_MOST_NODES = 200


class StatePages:
    """What the addresses of a state show.

    Args:
        source: The state.
        views: Its lists.
        live: Tells open pages of changes.
    """

    def __init__(self, source: StateSource, views: Views, live: Live) -> None:
        self._source = source
        self._views = views
        self._live = live
        self._quick: SlowAnswers[Answer] = SlowAnswers(lambda answer: answer.is_good)
        # A reader who goes from one workload to the next does not wait for what the last one has asked.
        self._slow: SlowAnswers[Answer] = SlowAnswers(lambda answer: answer.is_good)
        self._forms: SlowAnswers[WhatIfForm] = SlowAnswers(lambda form: True)

    def handlers(self) -> dict[str, Callable[[Request], Any]]:
        """Return the handlers by path."""
        return {
            "/": self.cohorts,
            "/queues": self.queues,
            "/queues/{name:path}": self.queue,
            "/workloads": self.workloads,
            "/workloads/{namespace}/{name:path}": self.workload,
            "/answers/{part}/{namespace}/{name:path}": self.part,
            "/what-if": self.what_if,
            "/nodes": self.nodes,
            "/events": self.events,
        }

    def cohorts(self, request: Request) -> Shown:
        """The tree of cohorts, with quotas."""
        view = self._views.newest()
        under = request.query_params.get("under", "")
        roots = quota_tree(view.quota, view.engine.cluster_queues(), under=under)
        if under and not roots:
            raise UnknownObjectError(ObjectRef("Cohort", under))
        facts = {
            "tree": list(walked(roots)),
            "under": under,
            "queues": {queue.name: queue for queue in view.queues},
            "command": list_command(self._source),
        }
        return Shown("cohorts", facts)

    def queues(self, request: Request) -> Shown:
        """The ClusterQueues, with their heads."""
        view = self._views.newest()
        text = request.query_params.get("text", "").strip()
        cohorts = {row.name: row.parent for row in view.quota if row.kind == "ClusterQueue"}
        found = [
            (queue, cohorts.get(queue.name), head, _waited(view, head))
            for queue in view.queues
            for head in [view.heads.get(queue.name)]
            if text.casefold() in queue.name.casefold()
        ]
        cut = found[:_MOST_NODES]
        facts = {"rows": cut, "n_more": len(found) - len(cut), "text": text, "command": list_command(self._source)}
        return Shown("queues", facts)

    def queue(self, request: Request) -> Shown:
        """One ClusterQueue: its quotas, and who waits in it."""
        view = self._views.newest()
        name = request.path_params["name"]
        state = view.engine.cluster_queue(name)
        pending = view.engine.pending(name)
        first = [view.by_key[entry.key] for entry in pending[:MOST_ROWS] if entry.key in view.by_key]
        cohort = next((row.parent for row in view.quota if (row.kind, row.name) == ("ClusterQueue", name)), None)
        facts = {
            "queue": state,
            "cohort": cohort,
            "bars": bars_of(view.quota, "ClusterQueue", name),
            "waiting": [(row, _waited(view, row)) for row in first],
            "n_more": max(0, len(pending) - MOST_ROWS),
            "command": list_command(self._source),
        }
        return Shown("queue", facts)

    def workloads(self, request: Request) -> Shown:
        """The list of workloads."""
        view = self._views.newest()
        query = ListQuery.of(request.query_params)
        page = WorkloadPage.of(view.workloads, query)
        facts = {
            "query": query,
            "page": page,
            "rows": [(row, _waited(view, row)) for row in page.rows],
            "stages": view.stages,
            "namespaces": view.namespaces,
            "command": list_command(self._source, "-o", "wide"),
        }
        return Shown("workloads", facts)

    def workload(self, request: Request) -> Shown:
        """One workload, with the questions about it, which are answered later."""
        view = self._views.newest()
        row = _row(view, request.path_params)
        status = dict(row.state.status)
        places = [placement for placement in view.placements if placement.key == row.key]
        facts: dict[str, object] = {
            "row": row,
            "waited": _waited(view, row),
            "is_pending": row.state.stage is Stage.PENDING,
            "conditions": list_at(status, "conditions"),
            "places": places,
            "parts": parts(is_pending=row.state.stage is Stage.PENDING),
            "form": WhatIfForm.of(view, {"workload": row.key}),
            "command": "",
        }
        return Shown("workload", facts)

    async def part(self, request: Request) -> Shown:
        """The answer to one question about a workload."""
        view = await run_in_threadpool(self._views.newest)
        row = _row(view, request.path_params)
        name = request.path_params["part"]
        part = next((part for part in parts(is_pending=True) if part.name == name), None)
        if part is None:
            raise HTTPException(404)
        asked = {key: request.query_params.get(key, "").strip() for key in ("tries", "runs", "arrivals")}
        question = (view.version, part.name, row.key, tuple(asked.items()))
        answers = self._slow if part.is_slow else self._quick
        answer = await answers.answer(
            question,
            lambda: ask_part(self._source, part, row.key, asked, n_workloads=len(view.workloads)),
            is_gone=request.is_disconnected,
        )
        facts = {"row": row, "part": part, "answer": answer, "asked": asked, "version": view.version, "command": ""}
        return Shown("part", facts)

    async def what_if(self, request: Request) -> Shown:
        """The form that tries changes, with what would move."""
        view = await run_in_threadpool(self._views.newest)
        form = WhatIfForm.of(view, request.query_params)
        if "ask" in request.query_params:
            question = (view.version, form.workload and form.workload.key, tuple(sorted(form.asks.items())))
            form = await self._forms.answer(
                question, lambda: form.answered(self._source), is_gone=request.is_disconnected
            )
        return Shown("what_if", {"form": form, "queue_names": view.engine.cluster_queues(), "command": ""})

    def nodes(self, request: Request) -> Shown:
        """The map of nodes."""
        view = self._views.newest()
        flavor = request.query_params.get("flavor", "")
        under = tuple(filter(None, request.query_params.getlist("under")))
        maps = flavor_maps(view.capacity, view.placements, flavor=flavor, under=under)
        if (flavor and not maps) or (under and not any(maps_of.domains[0].path == under for maps_of in maps)):
            raise UnknownObjectError(ObjectRef("ResourceFlavor", flavor))
        nodes = () if maps else view.nodes
        facts: dict[str, object] = {
            "maps": maps,
            "under": under,
            "nodes": [_node(node) for node in nodes[:_MOST_NODES]],
            "n_more": max(0, len(nodes) - _MOST_NODES),
            "command": list_command(self._source),
        }
        return Shown("nodes", facts)

    async def events(self, request: Request) -> Response:
        """The stream that says when the state has changed."""
        return StreamingResponse(self._live.stream(), media_type="text/event-stream")


def _row(view: StateView, path: Mapping[str, str]) -> WorkloadRow:
    key = f"{path['namespace']}/{path['name']}"
    if key not in view.by_key:
        raise UnknownObjectError(ObjectRef("Workload", path["name"], path["namespace"]))
    return view.by_key[key]


def _waited(view: StateView, row: WorkloadRow | None) -> str:
    """How long a workload that waits has waited; empty if that is unknown."""
    if row is None or row.since is None or row.state.stage is not Stage.PENDING:
        return ""
    return span(max(0, view.state.now - row.since))


def _node(node: JsonObject) -> dict[str, object]:
    conditions = {
        str(object_at(condition).get("type")): object_at(condition).get("status")
        for condition in list_at(node, "status", "conditions")
    }
    return {
        "name": object_at(node, "metadata").get("name", ""),
        "is_ready": conditions.get("Ready", "True") == "True" and not object_at(node, "spec").get("unschedulable"),
        "allocatable": sorted(object_at(node, "status", "allocatable").items()),
    }
