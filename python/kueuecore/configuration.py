"""Kueue's Configuration file (rules/11): the settings that a scheduler starts with."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from kueuecore import _arguments as arguments
from kueuecore import _core
from kueuecore._configuration_sources import documents_in, gates_in, read_documents, sources_in
from kueuecore._file_kinds import use_of
from kueuecore._json import text_at
from kueuecore._near_names import near_names
from kueuecore._text import shortened
from kueuecore.errors import ConfigurationError, ManifestError, Problem
from kueuecore.experiments import Experiments
from kueuecore.manifests import (
    JsonObject,
    Manifest,
    ManifestLike,
    as_manifest,
    located,
    to_json_lines,
)
from kueuecore.releases import DEFAULT_RELEASE, FeatureGate, Release, gone_gate_remedy, releases

__all__ = ["Configuration", "FeatureGate", "configuration_for", "feature_gates", "known_gate_remedy", "release_of"]

_Maker: TypeAlias = Callable[..., _core.Configuration]


def feature_gates(release: str | Release = DEFAULT_RELEASE) -> tuple[FeatureGate, ...]:
    """Return every feature gate of a release of Kueue, in the order of its documentation.

    Raises:
        UnknownReleaseError: There is no such release.

    Example:
        >>> next(gate.default for gate in feature_gates() if gate.name == "PartialAdmission")
        True
        >>> [gate.name for gate in feature_gates("0.16") if gate.name.startswith("Lending")]
        ['LendingLimit']
    """
    return release_of(release).feature_gates()


def release_of(release: str | Release) -> Release:
    """Return a release that is given by its name or itself.

    Raises:
        UnknownReleaseError: There is no such release.
        TypeError: It is neither.
    """
    if isinstance(release, Release):
        return release
    return Release.named(arguments.text("release", release))


def configuration_for(configuration: Configuration | None, release: str | Release | None) -> Configuration | None:
    """Return a given Configuration, or else what a given release of Kueue runs with when it has no file.

    Raises:
        ValueError: Both are given, and the Configuration is for another release.
        UnknownReleaseError: There is no such release.
        TypeError: An argument has the wrong type.
    """
    if not isinstance(configuration, Configuration | None):
        raise TypeError(f"configuration must be a Configuration or None, not {type(configuration).__name__}")
    if release is None:
        return configuration
    asked = release_of(release)
    if configuration is None:
        return Configuration(release=asked)
    if configuration.release != asked:
        raise ValueError(f"release is {asked.name}, and the Configuration is for {configuration.release.name}")
    return configuration


def _gates(feature_gates: Mapping[str, bool] | None) -> dict[str, bool]:
    given = {} if feature_gates is None else dict(arguments.mapping("feature_gates", feature_gates))
    return {arguments.text("a key of feature_gates", key): _gate(key, is_on) for key, is_on in given.items()}


def _gate(name: str, is_on: bool) -> bool:
    return arguments.flag(f"feature_gates[{arguments.shown(name)}]", is_on)


def _document(manifests: Sequence[Manifest]) -> Manifest:
    """Return the Configuration that some objects hold, as an object.

    Raises:
        ManifestError: There is not exactly one, or it cannot be read.
    """
    sources = sources_in(manifests) or sources_in(manifests, of_any_group=True)
    file = manifests[0].source.file if manifests else ""
    if not sources:
        if len(manifests) == 1 and text_at(manifests[0].object, "apiVersion").startswith("config.kueue.x-k8s.io/"):
            # The engine knows what is wrong with it.
            return manifests[0]
        kinds = [*dict.fromkeys(shortened(text_at(manifest.object, "kind")) for manifest in manifests)]
        message = f"it holds no Configuration, but {', '.join(kinds) or 'nothing'}"
        if len(kinds) == 1 and kinds != ["ConfigMap"]:
            message = f"its kind is {kinds[0]}, not Configuration"
        remedy = "give one document of kind Configuration, or a ConfigMap or Helm values that hold one"
        use = use_of(manifest.object for manifest in manifests)
        raise ManifestError.of(message, remedy="; ".join(filter(None, (remedy, use))), file=file)
    if len({source.content for source in sources}) > 1:
        message = f"it holds {len(sources)} Configurations"
        raise ManifestError.of(message, remedy="give one of them in a file of its own", file=file)
    documents = sources[0].documents()
    if len(documents) != 1:
        message = f"{len(documents)} documents"
        raise ManifestError.of(message, remedy="give one document of kind Configuration", file=sources[0].place)
    if documents[0].warnings:
        # Kueue reads it strictly.
        raise ManifestError([replace(warning, message="duplicate key") for warning in documents[0].warnings])
    return documents[0]


def _with_near_gate(problem: Problem, release: Release) -> Problem:
    """Add to an unknown gate's problem the version that has or had the gate, or the gate that was probably meant."""
    unknown = re.search(r"unrecognized feature gate: (\S+)", problem.message)
    if unknown is None or problem.remedy:
        return problem
    known = known_gate_remedy(unknown[1], release)
    if known:
        return replace(problem, remedy=known)
    near = near_names(unknown[1], [gate.name for gate in feature_gates(release)])
    remedy = f"write {near[0]}" if near else "write one of those that `kueuecore gates` lists"
    return replace(problem, remedy=remedy)


def known_gate_remedy(name: str, release: Release) -> str:
    """Return what to do about a gate that only other releases have; empty if none has it."""
    gone = gone_gate_remedy(name, release)
    if gone:
        return gone
    first = next(
        (other for other in releases() if other > release and name in {g.name for g in other.feature_gates()}), None
    )
    return f"{first.title} has it, {release.title} does not: leave it out" if first else ""


class Configuration:
    """A Configuration with every default filled in; `Configuration()` is what Kueue runs with when it has no file.

    Example:
        >>> Configuration().is_enabled("PartialAdmission")
        True
        >>> configuration = Configuration.parse('''
        ... apiVersion: config.kueue.x-k8s.io/v1beta2
        ... kind: Configuration
        ... featureGates: {PartialAdmission: false}
        ... ''')
        >>> configuration.is_enabled("PartialAdmission")
        False
    """

    def __init__(self, *, release: str | Release = DEFAULT_RELEASE) -> None:
        name = release_of(release).name
        self._core = _core.Configuration(name)
        self._made: tuple[_Maker, tuple[object, ...]] = (_core.Configuration, (name,))
        self._experiments = Experiments()

    @classmethod
    def _of(cls, make: _Maker, *arguments: object) -> Configuration:
        configuration = cls.__new__(cls)
        configuration._core = make(*arguments)
        configuration._made = (make, arguments)
        configuration._experiments = Experiments()
        return configuration

    def __reduce__(self) -> tuple[Callable[..., Configuration], tuple[object, ...]]:
        make, made_from = self._made
        if self._experiments:
            return _with_experiments, (self.with_experiments(Experiments()), self._experiments)
        return Configuration._of, (make, *made_from)

    @classmethod
    def parse(
        cls,
        text: str | bytes,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        release: str | Release = DEFAULT_RELEASE,
        file: str = "<string>",
    ) -> Configuration:
        """Read a Configuration, v1beta2 or v1beta1, YAML or JSON (rules/11 §1).

        Args:
            text: The file's contents: a Configuration, or one of the objects that `of` takes, also among others; or
                values of Kueue's Helm chart, with `controllerManagerConfigYaml`.
            feature_gates: Gates as on Kueue's command line; cannot be combined with `featureGates` in the file.
            release: The release of Kueue that starts with it, such as `0.17` or `0.17.3`.
            file: The file name to show in errors.

        Raises:
            ConfigurationError: Everything that is wrong, with line numbers.
            UnknownReleaseError: There is no such release.
        """
        of_release = release_of(release)
        file, gates = arguments.instance("file", file, str), _gates(feature_gates)
        return cls.of(documents_in(text, file), feature_gates=gates, release=of_release)

    @classmethod
    def of(
        cls,
        manifests: Iterable[ManifestLike],
        *,
        feature_gates: Mapping[str, bool] | None = None,
        release: str | Release = DEFAULT_RELEASE,
    ) -> Configuration:
        """Read the Configuration that some objects hold, with the gates in the arguments of Kueue's Deployment.

        A Configuration may be an object itself, a text in a ConfigMap, values in a HelmRelease, or what OpenShift's
        operator makes of its Kueue object (rules/11 §1). Other objects are ignored.

        Args:
            manifests: The objects.
            feature_gates: Gates as on Kueue's command line; they replace those of the Deployment.
            release: The release of Kueue that starts with it, such as `0.17` or `0.17.3`.

        Raises:
            ConfigurationError: There is none, or more than one, or something is wrong with it.
            UnknownReleaseError: There is no such release.

        Example:
            >>> head = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration"
            >>> data = {"controller_manager_config.yaml": f"{head}, manageJobsWithoutQueueName: true}}"}
            >>> Configuration.of([{"apiVersion": "v1", "kind": "ConfigMap", "data": data}]).to_dict()[
            ...     "manageJobsWithoutQueueName"
            ... ]
            True
        """
        given = [
            as_manifest(manifest, f"manifests[{i}]")
            for i, manifest in enumerate(arguments.each("manifests", manifests))
        ]
        gates, of_release = _gates(feature_gates), release_of(release)
        try:
            document = _document(given)
            of_deployments = {name: is_on for gate in gates_in(given) for name, is_on in gate.gates.items()}
        except ManifestError as error:
            raise ConfigurationError(error.problems) from None
        try:
            given_gates = of_deployments | gates
            return cls._of(_core.Configuration.read, to_json_lines([document]), given_gates, of_release.name)
        except ConfigurationError as error:
            problems = [_with_near_gate(replace(problem, index=0), of_release) for problem in error.problems]
            raise located(error.with_problems(problems), (document,)) from None

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        feature_gates: Mapping[str, bool] | None = None,
        release: str | Release = DEFAULT_RELEASE,
    ) -> Configuration:
        """Read a Configuration file; see `parse`."""
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"path must be the name of a file, not {type(path).__name__}")
        of_release, gates = release_of(release), _gates(feature_gates)
        return cls.of(read_documents(os.fsdecode(path)), feature_gates=gates, release=of_release)

    @classmethod
    def trusted(
        cls,
        settings: Mapping[str, object],
        *,
        feature_gates: Mapping[str, bool] | None = None,
        release: str | Release = DEFAULT_RELEASE,
    ) -> Configuration:
        """Take settings without validating them, such as those of a running Kueue.

        Args:
            settings: Fields of a Configuration in v1beta2.
            feature_gates: The gates that are not at their defaults.
            release: The release of Kueue that runs with them.

        Raises:
            ConfigurationError: They cannot be read.
            UnknownReleaseError: There is no such release.
            TypeError: An argument has the wrong type.
        """
        name = release_of(release).name
        gates = json.dumps(_gates(feature_gates)).encode()
        try:
            data = json.dumps(
                dict(arguments.mapping("settings", settings)), ensure_ascii=False, allow_nan=False
            ).encode()
        except (TypeError, ValueError, RecursionError) as error:
            if not isinstance(settings, Mapping):
                raise
            raise ConfigurationError.of(f"settings are not plain data: {error}") from None
        try:
            return cls._of(_core.Configuration.trusted, data, gates, name)
        except ValueError as error:
            if isinstance(error, ConfigurationError):
                raise
            raise ConfigurationError.of(f"settings cannot be read: {error}") from None

    @property
    def release(self) -> Release:
        """The release of Kueue whose decisions these settings make."""
        return Release.named(self._core.release)

    def switched(self, switches: Mapping[str, bool]) -> Configuration:
        """Return a copy with feature gates and changes set one by one, without a check.

        Args:
            switches: By name of a gate, or of a change that `kueuecore.releases.changes` lists, whether it is on.

        Raises:
            KeyError: There is no gate and no change of a name.

        Example:
            >>> newest = Configuration()
            >>> newest.switched({"FitBeatsNoCandidates": False}).has_change("FitBeatsNoCandidates")
            False
        """
        given = {
            arguments.text("a key of switches", key): arguments.flag(f"switches[{arguments.shown(key)}]", on)
            for key, on in arguments.mapping("switches", switches).items()
        }
        configuration = Configuration.__new__(Configuration)
        configuration._core = self._core.switched(given)
        configuration._made = (_switched, (self, given))
        configuration._experiments = self._experiments
        return configuration

    @property
    def experiments(self) -> Experiments:
        """Rules that Kueue does not have; by default none. A Configuration file cannot turn them on."""
        return self._experiments

    def with_experiments(self, experiments: Experiments) -> Configuration:
        """Return a copy with these experiments, and no others: whoever decides with it does not decide as Kueue.

        Args:
            experiments: The experiments (rules/13).

        Raises:
            TypeError: They are something else.

        Example:
            >>> configuration = Configuration().with_experiments(Experiments(reclaim_backoff_seconds=300))
            >>> configuration.experiments.notice
            'experiments: reclaimBackoffSeconds=300 (not in Kueue)'
        """
        given = arguments.instance("experiments", experiments, Experiments)
        configuration = Configuration.__new__(Configuration)
        configuration._core = self._core.with_experiments(
            given.min_run_seconds_before_cross_queue_preemption, given.reclaim_backoff_seconds, given.time_share_seconds
        )
        configuration._made = self._made
        configuration._experiments = given
        return configuration

    def has_change(self, change: str) -> bool:
        """Return whether a change of Kueue without a gate is in effect; `kueuecore.releases.changes` lists them.

        Raises:
            KeyError: There is no such change.
        """
        has = self._core.change(arguments.text("change", change))
        if has is None:
            raise KeyError(change)
        return has

    def is_enabled(self, gate: str) -> bool:
        """Return whether a feature gate is on, or whether the release does without one what it turns on elsewhere.

        Raises:
            KeyError: No release of Kueue has such a gate.
        """
        enabled = self._core.gate(arguments.text("gate", gate))
        if enabled is None:
            raise KeyError(gate)
        return enabled

    @property
    def names_wait_for_pods_ready(self) -> bool:
        """Whether the file itself has `waitForPodsReady`, which Kueue turns on by default (rules/11 §2.1)."""
        return self._core.names_wait_for_pods_ready

    def to_dict(self) -> JsonObject:
        """Return the whole file in v1beta2 with every default, as plain data."""
        return cast("JsonObject", self._core.to_dict())


def _switched(configuration: Configuration, switches: Mapping[str, bool]) -> _core.Configuration:
    return configuration._core.switched(dict(switches))


def _with_experiments(configuration: Configuration, experiments: Experiments) -> Configuration:
    return configuration.with_experiments(experiments)
