"""Turns labels and annotations of objects into labels of metrics (rules/09 §10, gate CustomMetricLabels)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kueuecore._json import JsonObject, list_at, text_at, texts_at
from kueuecore.configuration import Configuration

__all__ = ["CustomLabels"]

_UNTRACKED = "kueue.x-k8s.io/_UNTRACKED_VALUE_"
_DEFAULT_KIND = "ClusterQueue"


class CustomLabels:
    """`metrics.customLabels` of a Configuration.

    Args:
        configuration: The Configuration; without one there are no custom labels.

    Example:
        >>> labels = CustomLabels(Configuration.parse('''
        ... apiVersion: config.kueue.x-k8s.io/v1beta2
        ... kind: Configuration
        ... featureGates: {CustomMetricLabels: true}
        ... metrics: {customLabels: [{name: team, sourceLabelKey: example.com/team, trackedValues: [a]}]}
        ... '''))
        >>> labels.names(["ClusterQueue"])
        ('custom_team',)
        >>> labels.values("ClusterQueue", {"metadata": {"labels": {"example.com/team": "b"}}})
        ('kueue.x-k8s.io/_UNTRACKED_VALUE_',)
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._by_kind: dict[str, list[JsonObject]] = {}
        if configuration is None or not configuration.is_enabled("CustomMetricLabels"):
            return
        for entry in list_at(configuration.to_dict(), "metrics", "customLabels"):
            if isinstance(entry, dict):
                self._by_kind.setdefault(text_at(entry, "sourceKind") or _DEFAULT_KIND, []).append(entry)

    def has(self, kind: str) -> bool:
        """Return whether objects of this kind have any."""
        return kind in self._by_kind

    def names(self, kinds: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the labels that objects of these kinds give, kind by kind."""
        return tuple(f"custom_{text_at(entry, 'name')}" for kind in kinds for entry in self._by_kind.get(kind, ()))

    def values(self, kind: str, manifest: JsonObject | None) -> tuple[str, ...]:
        """Return the values for an object; all empty if it does not exist."""
        entries: Sequence[JsonObject] = self._by_kind.get(kind, ())
        return tuple("" if manifest is None else _value(entry, manifest) for entry in entries)


def _value(entry: JsonObject, manifest: JsonObject) -> str:
    annotation, label = text_at(entry, "sourceAnnotationKey"), text_at(entry, "sourceLabelKey")
    if annotation:
        value = texts_at(manifest, "metadata", "annotations").get(annotation, "")
    else:
        value = texts_at(manifest, "metadata", "labels").get(label or text_at(entry, "name"), "")
    tracked = list_at(entry, "trackedValues")
    return value if not tracked or value in tracked else _UNTRACKED
