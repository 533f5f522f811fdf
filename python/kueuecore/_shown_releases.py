"""Finds out which release of Kueue runs, from its Deployment or chart among some objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kueuecore._json import JsonObject, list_at, object_at, text_at, texts_at
from kueuecore.manifests import Manifest

__all__ = ["shown_versions"]

_IMAGE = re.compile(r"(?:^|/)kueue:v?(\d+\.\d+\.\d+)(?:$|@)")
_CHART = re.compile(r"kueue-v?(\d+\.\d+\.\d+)$")
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+)$")


def shown_versions(manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Return the versions of Kueue that some objects show, each once.

    An image of Kueue in a Deployment, the labels that its chart sets, and a HelmRelease or Application of the chart
    show one.

    Example:
        >>> pod = {"containers": [{"image": "registry.k8s.io/kueue/kueue:v0.17.3"}]}
        >>> shown_versions([Manifest({"kind": "Deployment", "spec": {"template": {"spec": pod}}})])
        ('0.17.3',)
    """
    return tuple(dict.fromkeys(version for it in manifests for version in _versions(it.object)))


def _versions(plain: JsonObject) -> Iterator[str]:
    match text_at(plain, "kind"):
        case "Deployment":
            pod = object_at(plain, "spec", "template", "spec")
            for container in map(object_at, list_at(pod, "containers")):
                yield from _found(_IMAGE, text_at(container, "image"))
        case "HelmRelease":
            chart = object_at(plain, "spec", "chart", "spec")
            if text_at(chart, "chart").rpartition("/")[2] == "kueue":
                yield from _found(_VERSION, text_at(chart, "version"))
        case "Application":
            source = object_at(plain, "spec", "source")
            if text_at(source, "chart").rpartition("/")[2] == "kueue":
                yield from _found(_VERSION, text_at(source, "targetRevision"))
    labels = texts_at(plain, "metadata", "labels")
    yield from _found(_CHART, labels.get("helm.sh/chart", ""))
    if labels.get("app.kubernetes.io/name") == "kueue":
        yield from _found(_VERSION, labels.get("app.kubernetes.io/version", ""))


def _found(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    found = pattern.search(text)
    if found is not None:
        yield found[1]
