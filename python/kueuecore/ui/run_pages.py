"""The timeline of a simulated run: that of a scenario, or of a state that is played forward."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from kueuecore.cli.state_source import StateSource
from kueuecore.errors import ManifestError
from kueuecore.ui.playing import PlayForm, played
from kueuecore.ui.rendering import Shown
from kueuecore.ui.slow_answers import SlowAnswers
from kueuecore.ui.state_view import StateView, Views
from kueuecore.ui.timeline import Timeline

__all__ = ["RunPages"]

_KEPT = 4


class RunPages:
    """What the address of the timeline shows.

    Args:
        run: The run of a scenario.
        source: A state to play forward, if there is no run.
        views: Its lists.
    """

    def __init__(
        self, *, run: Timeline | None = None, source: StateSource | None = None, views: Views | None = None
    ) -> None:
        self._run, self._source, self._views = run, source, views
        self._played: SlowAnswers[Timeline] = SlowAnswers(lambda _: False)
        # A slider asks for one step of the same run after the other.
        self._kept: OrderedDict[str, Timeline] = OrderedDict()

    def handlers(self) -> dict[str, Callable[[Request], Any]]:
        """Return the handlers by path."""
        return {"/timeline": self.timeline}

    async def timeline(self, request: Request) -> Shown:
        """A run at the step that is asked for, or the form that plays a state forward."""
        asked = request.query_params
        if self._run is not None:
            return _shown(self._run, asked.get("at", ""), form=None, name="")
        form = PlayForm.of(asked)
        name = asked.get("run", "")
        if name in self._kept:
            return _shown(self._kept[name], asked.get("at", ""), form=form, name=name)
        if "ask" not in asked:
            is_lost = bool(name)
            return Shown("timeline", {"run": None, "form": form, "is_lost": is_lost, "command": "", "version": 0})
        assert self._views is not None, "without a run there is a state"
        assert self._source is not None, "without a run there is a state"
        view = await run_in_threadpool(self._views.newest)
        try:
            name, found = await self._play(form, view, self._source)
        except ManifestError as error:
            facts = {"run": None, "form": form.refused(error), "is_lost": False, "command": "", "version": 0}
            return Shown("timeline", facts)
        return _shown(found, asked.get("at", ""), form=form, name=name)

    async def _play(self, form: PlayForm, view: StateView, source: StateSource) -> tuple[str, Timeline]:
        question = (view.version, *form.question)
        name = sha256(repr(question).encode()).hexdigest()[:16]
        if name not in self._kept:
            self._kept[name] = await self._played.answer(question, lambda: played(form, view, source))
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return name, self._kept[name]


def _shown(run: Timeline, at: str, *, form: PlayForm | None, name: str) -> Shown:
    index = int(at) if at.isascii() and at.isdigit() and len(at) < 8 else 0
    facts = {"run": run, "form": form, "name": name, "moment": run.at(index), "is_lost": False, "version": 0}
    # Where a form is, the command changes with what is filled in.
    return Shown("timeline", {**facts, "command": "" if form is not None else run.command})
