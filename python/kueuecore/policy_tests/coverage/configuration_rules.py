"""Finds the rules in Kueue's Configuration, with other values for each, and reads it with one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from kueuecore._configuration_sources import gates_in, read_documents, sources_in
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.experiments import Experiments
from kueuecore.jobs import installed_frameworks
from kueuecore.manifests import API_VERSIONS, Manifest, Source
from kueuecore.policy_tests.coverage.rule import (
    FoundRule,
    Owner,
    Path,
    Variation,
    found_rule,
    other_values,
    removed,
)
from kueuecore.policy_tests.policy_test import PolicyTest
from kueuecore.releases import Release
from kueuecore.simulation.sampling import check_sampling

__all__ = ["Settings"]

_HEAD: JsonObject = {"apiVersion": API_VERSIONS["Configuration"], "kind": "Configuration"}
_FINAL, _INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
_SHORT, _LONG = "1s", "87600h"

_FIELDS: Mapping[tuple[str, ...], tuple[JsonValue, ...]] = {
    # `enable` is that of v1beta1.
    ("fairSharing", "enable"): (False, True),
    ("fairSharing", "preemptionStrategies"): ([_FINAL], [_INITIAL], [_FINAL, _INITIAL]),
    ("admissionFairSharing", "usageHalfLifeTime"): ("0s", _SHORT, _LONG),
    ("admissionFairSharing", "usageSamplingInterval"): (_SHORT, _LONG),
    ("waitForPodsReady", "enable"): (False, True),
    ("waitForPodsReady", "timeout"): (_SHORT, _LONG),
    ("waitForPodsReady", "recoveryTimeout"): (_SHORT, "0s", _LONG),
    ("waitForPodsReady", "blockAdmission"): (False, True),
    ("waitForPodsReady", "requeuingStrategy", "timestamp"): ("Creation", "Eviction"),
    ("waitForPodsReady", "requeuingStrategy", "backoffLimitCount"): (0, None),
    ("waitForPodsReady", "requeuingStrategy", "backoffBaseSeconds"): (0, 3_600),
    ("waitForPodsReady", "requeuingStrategy", "backoffMaxSeconds"): (1, 86_400),
    ("resources", "quotaCheckStrategy"): ("BlockUndeclared", "IgnoreUndeclared"),
}
"""Fields that have one value each, and what else each can be."""
_LISTS = ("excludeResourcePrefixes", "transformations", "deviceClassMappings")
_WEIGHTS: tuple[JsonValue, ...] = (0, 1_000, None)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the Configuration of a test is read from.

    Args:
        written: The Configuration as it is written; None if it is Kueue's own.
        gates: Documents with the `featureGates` of the test.
        of_deployment: The gates of a Deployment in the file of the Configuration.
        release: The release of Kueue that starts with it.
        experiments: The rules of the test that Kueue does not have.
    """

    written: Manifest | None
    gates: tuple[Manifest, ...]
    of_deployment: Mapping[str, bool]
    release: str
    experiments: Experiments

    @classmethod
    def of(cls, test: PolicyTest) -> Self:
        """Find those of a test.

        Raises:
            ManifestError: The file has changed since the test was read, and cannot be read.
        """
        found, gates = test.written.fields, dict[str, bool]()
        if test.written.file is not None:
            documents = read_documents(str(test.written.file))
            sources = sources_in(documents) or sources_in(documents, of_any_group=True)
            found = sources[0].written() if sources else None
            gates = {name: is_on for source in gates_in(documents) for name, is_on in source.gates.items()}
        if found is not None:
            found = replace(found, object={**_HEAD, **found.object})
        return cls(found, test.written.gates, gates, test.configuration.release.name, test.configuration.experiments)

    def rules(self) -> Iterator[FoundRule]:
        """Yield the rules in it."""
        if self.written is not None:
            for rule in _of_configuration(self.written):
                yield replace(rule, owner=Owner.CONFIGURATION)
        for index, manifest in enumerate(self.gates):
            later = {name for other in self.gates[index + 1 :] for name in object_at(other.object, "featureGates")}
            for rule in _of_gates(manifest, later):
                yield replace(rule, owner=Owner.GATES, index=index)

    def with_variation(self, found: FoundRule, variation: Variation) -> Configuration:
        """Read the Configuration with another value of one of its rules.

        Raises:
            ConfigurationError: Kueue refuses it.
            ValueError: Its objects are shaped otherwise than the rule expects.
        """
        plain = self._plain() if self.written is None else self.written.object
        gates = [manifest.object for manifest in self.gates]
        for edit in variation.edits:
            if found.owner is Owner.CONFIGURATION:
                plain = edit.apply(plain)
            else:
                gates[found.index] = edit.apply(gates[found.index])
        switched = {**self.of_deployment, **{name: on for part in gates for name, on in _switches(part).items()}}
        configuration = Configuration.of([Manifest(plain)], feature_gates=switched or None, release=self.release)
        check_sampling(configuration)
        return configuration.with_experiments(self.experiments)

    def without_places(self) -> Settings:
        """Return the same without the positions in files, which are large."""
        written = None if self.written is None else replace(self.written, source=Source())
        gates = tuple(replace(manifest, source=Source()) for manifest in self.gates)
        return replace(self, written=written, gates=gates)

    def _plain(self) -> JsonObject:
        """The Configuration of a test that has none, as it is read."""
        frameworks: list[JsonValue] = [*installed_frameworks(Release.named(self.release))]
        return {**_HEAD, "integrations": {"frameworks": frameworks}}


def _of_configuration(manifest: Manifest) -> Iterator[FoundRule]:
    plain = manifest.object
    for name in ("fairSharing", "admissionFairSharing"):
        # In v1beta2 it is on if it is there.
        if name in plain and "enable" not in object_at(plain, name):
            yield found_rule(manifest, (name,), [removed((name,))])
    for path, values in _FIELDS.items():
        yield from _field(manifest, path, values)
    for resource in object_at(plain, "admissionFairSharing", "resourceWeights"):
        yield from _field(manifest, ("admissionFairSharing", "resourceWeights", resource), _WEIGHTS)
    for name in _LISTS:
        for index, entry in enumerate(list_at(plain, "resources", name)):
            place: Path = ("resources", name, index)
            about = entry if isinstance(entry, str) else text_at(entry, "input") or text_at(entry, "name")
            yield found_rule(manifest, place, [removed(place)], about=about)
    yield from _of_gates(manifest, set())


def _of_gates(manifest: Manifest, later: set[str]) -> Iterator[FoundRule]:
    """The gates that are written, but not those that a later document sets."""
    for gate in object_at(manifest.object, "featureGates"):
        if gate not in later:
            yield from _field(manifest, ("featureGates", gate), (False, True))


def _field(manifest: Manifest, path: tuple[str, ...], values: tuple[JsonValue, ...]) -> Iterator[FoundRule]:
    now = object_at(manifest.object, *path[:-1]).get(path[-1])
    if now is not None:
        value = f"[{', '.join(map(str, now))}]" if isinstance(now, list) else now
        yield found_rule(manifest, path, other_values(path, now, values), value=value)


def _switches(part: JsonObject) -> dict[str, bool]:
    return {name: is_on for name, is_on in object_at(part, "featureGates").items() if isinstance(is_on, bool)}
