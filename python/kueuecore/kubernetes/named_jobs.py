"""Reads single jobs by name: a question about one job needs no list of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from kueuecore._json import JsonObject
from kueuecore._kinds import KINDS
from kueuecore.api_server import RefusedError
from kueuecore.configuration import Configuration
from kueuecore.controller import Controller, JobController
from kueuecore.jobs import JobsConfiguration
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.cluster_objects import naming

__all__ = ["named_jobs"]

_N_THREADS = 8
_ABSENT, _FORBIDDEN = 404, 403
_OTHERS = frozenset(kind.name for kind in KINDS) - {"Pod"}


def named_jobs(
    api: Api, configuration: Configuration, name: str, *, namespace: str, kind: str = ""
) -> tuple[tuple[JsonObject, ...], tuple[str, ...]]:
    """Return the jobs of a name in a namespace, of one kind or of all, and the kinds that may not be read.

    Args:
        api: The server.
        configuration: Says which kinds are managed.
        name: The name.
        namespace: The namespace.
        kind: The kind; by default, all.

    Raises:
        RefusedError: There is none, and the server does not say whether one of some kind exists.
    """
    kinds = dict(_kinds(configuration, kind))

    def read(of: str) -> JsonObject | RefusedError:
        api_version, _ = kinds[of]
        try:
            return {"apiVersion": api_version, "kind": of, **api.get(api.path(of, namespace, name))}
        except RefusedError as error:
            return naming(error, of)

    before = api.kinds
    api.kinds = {**kinds, **before}
    with ThreadPoolExecutor(_N_THREADS) as pool:
        answers = dict(zip(kinds, pool.map(read, kinds), strict=True))
    found = tuple(answer for answer in answers.values() if not isinstance(answer, RefusedError))
    refused = {of: answer for of, answer in answers.items() if isinstance(answer, RefusedError)}
    unknown = [error for error in refused.values() if error.code not in (_ABSENT, _FORBIDDEN)]
    if unknown and not found:
        raise unknown[0]
    return found, tuple(of for of, error in refused.items() if error.code == _FORBIDDEN)


def _kinds(configuration: Configuration, kind: str) -> Iterator[tuple[str, tuple[str, str]]]:
    jobs = JobController(Controller(configuration), configuration=JobsConfiguration.of(configuration))
    known: Mapping[str, tuple[str, str]] = jobs.kinds
    for name, place in known.items():
        if name not in _OTHERS and kind in ("", name):
            yield name, place
