"""Warnings about a scenario's objects that do not prevent a run, such as misspelled fields and kinds."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

from kueuecore._configuration_sources import sources_in
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import Manifest
from kueuecore.world import AppliedWorld

__all__ = ["unused_configurations", "warnings_of"]

# The capacity simulation reads them.
_OF_CAPACITY = ("ProvisioningRequestConfig",)


def warnings_of(applied: Iterable[AppliedWorld], *, others: Container[str] = ()) -> tuple[str, ...]:
    """Return warnings in sentences, one per position in a file, as many jobs may come from one manifest.

    Args:
        applied: The reports about each cluster's objects.
        others: Kinds that the engine does not read but something else does.
    """
    return tuple(dict.fromkeys(sentence for each in applied for sentence in _sentences(each, others)))


def unused_configurations(objects: Iterable[Manifest], configuration: Configuration) -> Iterator[str]:
    """Say which objects hold another Configuration than the scenario, which names its own."""
    for source in sources_in(objects):
        try:
            held = Configuration.of([source.holder], release=configuration.release)
            is_same = held.to_dict() == configuration.to_dict()
        except ManifestError:
            is_same = False
        if not is_same:
            remedy = "name the file at `cluster.configuration`"
            yield str(source.holder.problem("not used as Kueue's Configuration", remedy=remedy))


def _sentences(applied: AppliedWorld, others: Container[str]) -> Iterator[str]:
    for warning in applied.warnings:
        yield str(_without_object(warning))
    unread = {kind: n for kind, n in applied.unread.items() if kind not in _OF_CAPACITY and kind not in others}
    if unread:
        yield f"these kinds are not read: {', '.join(f'{kind} ({n})' for kind, n in unread.items())}"


def _without_object(warning: Problem) -> Problem:
    return replace(warning, object=None) if warning.file and warning.line else warning
