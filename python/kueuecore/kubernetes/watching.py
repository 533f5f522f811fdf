"""Watches kinds in threads, and passes news on to the thread that decides."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._text import logged
from kueuecore.api_server import RefusedError
from kueuecore.controller import WATCHED
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.watches import LateKinds, News, follow

__all__ = ["CRD", "Watching"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
CRD = "CustomResourceDefinition"
_CRDS = {CRD: ("apiextensions.k8s.io/v1", "customresourcedefinitions")}


class Watching:
    """Follows kinds, each in a thread of its own.

    Args:
        api: The API server.
        kinds: The kinds to follow, from `api.kinds`.
        hear: Called with all news, in the thread of the kind.
        died: Called when a thread ends for any reason but `stop`: decisions after that would be based on stale objects.
    """

    def __init__(
        self,
        api: Api,
        kinds: Iterable[str],
        *,
        hear: Callable[[News], None],
        died: Callable[[BaseException], None],
    ) -> None:
        self._api, self._hear, self._died = api, hear, died
        self._late = LateKinds()
        self._kinds = tuple(kinds)
        # The last problem with each kind, so that it is reported once.
        self._faults: dict[str, str] = {}
        # Kinds without which everything else is decided all the same, with why they may not be watched.
        self._optional: dict[str, str] = {}
        # Names of CustomResourceDefinitions whose kinds are served.
        self._served: frozenset[str] = frozenset()
        api.kinds |= _CRDS

    def start(self) -> None:
        """Start listing and watching."""
        for kind in (*self._kinds, CRD):
            threading.Thread(target=self._follow, args=(kind,), name=f"watch-{kind}", daemon=True).start()

    def add(self, kinds: Iterable[str], namespace: str = "") -> None:
        """Follow more kinds; that they may not be watched is no fault.

        Args:
            kinds: The kinds, from `api.kinds`.
            namespace: Only what is in this namespace; by default, all.
        """
        for kind in kinds:
            self._optional[kind] = ""
            threading.Thread(target=self._follow, args=(kind, namespace), name=f"watch-{kind}", daemon=True).start()

    def fault_of(self, kind: str) -> str:
        """Return why a kind cannot be watched; empty if it can, or nothing is known yet."""
        return self._faults.get(kind) or self._optional.get(kind, "")

    def stop(self) -> None:
        """End all watches; drop what they receive meanwhile."""
        self._late.end()

    @property
    def faults(self) -> dict[str, str]:
        """The problems of the watches that currently fail, by kind."""
        return dict(self._faults)

    def _follow(self, kind: str, namespace: str = "") -> None:
        try:
            needed, late = kind in WATCHED, self._late
            for news in follow(self._api, kind, namespace=namespace, is_needed=needed, late=late, fault=self._fault):
                if self._late.is_over:
                    return
                if news is None:
                    continue
                if news.listed is not None and not news.version:
                    _LOGGER.info("not in this cluster, counts as empty until it comes", extra={"kind": kind})
                if kind == CRD:
                    self._see_definitions(news)
                else:
                    self._hear(news)
        except BaseException as error:
            error.add_note(f"in the watch of {kind}")
            self._died(error)

    def _fault(self, kind: str, error: Exception | None) -> None:
        message = logged(error) or type(error).__name__
        if self._late.is_over:
            return
        if kind in self._optional:
            before, self._optional[kind] = self._optional[kind], "" if error is None else message
            if isinstance(error, RefusedError) and error.code in (401, 403):
                if before != message:
                    _LOGGER.warning("may not be watched, is tried again", extra={"kind": kind, "error": message})
                return
        if error is None:
            if self._faults.pop(kind, ""):
                _LOGGER.info("watched again", extra={"kind": kind})
                self._late.recovered()
        elif kind == CRD and isinstance(error, RefusedError) and error.code in (401, 403):
            # Kinds that appear later are found anyway, by asking less and less often.
            _LOGGER.debug("cannot be watched", extra={"kind": kind, "error": message})
        elif self._faults.get(kind) != message:
            self._faults[kind] = message
            _LOGGER.warning("cannot be watched, is tried again", extra={"kind": kind, "error": message})

    def _see_definitions(self, news: News) -> None:
        if news.listed is not None:
            served = frozenset(_served(news.listed))
        elif news.event.get("type") in ("ADDED", "MODIFIED"):
            served = self._served | frozenset(_served([object_at(news.event, "object")]))
        else:
            return
        if served - self._served:
            self._late.changed()
        self._served = served


def _served(definitions: Iterable[JsonObject]) -> Collection[str]:
    """Return names of the definitions whose kinds are served."""
    return [
        text_at(definition, "metadata", "name")
        for definition in definitions
        if any(
            object_at(condition).get("type") == "Established" and object_at(condition).get("status") == "True"
            for condition in list_at(definition, "status", "conditions")
        )
    ]
