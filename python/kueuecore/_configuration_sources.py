"""Finds Kueue's Configuration in ConfigMaps, Helm values and OpenShift's Kueue, and feature gates in Deployments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._text import quoted
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest, parse_manifests, parse_mappings

__all__ = [
    "ConfigurationSource",
    "GateSource",
    "documents_in",
    "gates_in",
    "gates_of_argument",
    "is_configuration",
    "sources_in",
]

_GROUP = "config.kueue.x-k8s.io/"
_OPENSHIFT = "kueue.openshift.io/"
# The key of a Configuration in the values of Kueue's chart, or of a chart that includes it.
_OF_CHART = "controllerManagerConfigYaml"
_CHARTED = ("HelmRelease", "Application")  # of Flux and of Argo CD
_KIND = re.compile(r"(?:^|[{,]) *[\"']?kind[\"']?: *[\"']?Configuration\b", re.MULTILINE)
_OF_KUEUE = re.compile(rf"[\"']?apiVersion[\"']?: *[\"']?{re.escape(_GROUP)}")
_GATES = "--feature-gates"
# As Go reads a boolean flag.
_TRUTHS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


@dataclass(frozen=True, slots=True)
class ConfigurationSource:
    """A Configuration and the object that holds it.

    Args:
        holder: The object: the Configuration itself, a ConfigMap, values of the Helm chart, OpenShift's Kueue.
        path: The field of the holder that has it as text; empty if it is the holder.
        text: That text.
    """

    holder: Manifest
    path: str = ""
    text: str = ""

    @property
    def place(self) -> str:
        """The name of its file and the field in that, for errors."""
        return ", ".join(filter(None, (self.holder.source.file, self.path)))

    @property
    def content(self) -> str:
        """A text that is the same for the same Configuration."""
        try:
            plain: list[JsonValue] = [it.object for it in self.documents()]
            return json.dumps(plain, sort_keys=True)
        except (ManifestError, ValueError):
            return self.text

    def documents(self) -> tuple[Manifest, ...]:
        """Return the Configuration as an object; several if there are more.

        Raises:
            ManifestError: The text cannot be read, or OpenShift's Kueue has something else than its fields allow.
        """
        if self.path:
            return parse_manifests(self.text, file=self.place)
        if text_at(self.holder.object, "apiVersion").startswith(_OPENSHIFT):
            from kueuecore._openshift import configuration_of  # few have one

            return (configuration_of(self.holder),)
        return (self.holder,)

    def written(self) -> Manifest:
        """Return the Configuration at the position of its holder."""
        (document,) = self.documents()
        source = self.holder.source
        at = replace(source.without_fields(), _start=source.line_of(self.path)) if self.path else document.source
        return Manifest(document.object, at)


@dataclass(frozen=True, slots=True)
class GateSource:
    """Feature gates, and the object that sets them.

    Args:
        holder: A Deployment of Kueue, or values of its Helm chart.
        gates: Whether each gate is on.
    """

    holder: Manifest
    gates: Mapping[str, bool]

    @property
    def content(self) -> str:
        """A text that is the same for the same gates."""
        return json.dumps(self.gates, sort_keys=True)


def documents_in(text: str | bytes, file: str) -> tuple[Manifest, ...]:
    """Read a file that should hold a Configuration: Kubernetes objects, or values of a Helm chart.

    Raises:
        ManifestError: It is neither.
    """
    try:
        return parse_manifests(text, file=file)
    except ManifestError:
        with suppress(ManifestError):
            values = [it for it in parse_mappings(text, file=file) if not text_at(it.object, "kind")]
            if sources_in(values):
                return tuple(values)
        raise


def sources_in(manifests: Iterable[Manifest], *, of_any_group: bool = False) -> list[ConfigurationSource]:
    """Find the Configurations of Kueue that some objects hold.

    Args:
        manifests: The objects.
        of_any_group: Take any object of kind Configuration, with any apiVersion or none.
    """
    return [it for manifest in manifests for it in _sources(manifest, of_any_group=of_any_group)]


def is_configuration(plain: JsonObject) -> bool:
    """Whether an object is Kueue's Configuration; other programs have that kind too."""
    return text_at(plain, "kind") == "Configuration" and text_at(plain, "apiVersion").startswith(_GROUP)


def _sources(manifest: Manifest, *, of_any_group: bool) -> Iterator[ConfigurationSource]:
    plain = manifest.object
    kind, version = text_at(plain, "kind"), text_at(plain, "apiVersion")
    if kind == "Configuration" and (of_any_group or is_configuration(plain)):
        yield ConfigurationSource(manifest)
    elif kind == "ConfigMap":
        for key, text in object_at(plain, "data").items():
            if isinstance(text, str) and _KIND.search(text) and (of_any_group or _OF_KUEUE.search(text)):
                yield ConfigurationSource(manifest, f"data[{key}]", text)
    elif kind == "Kueue" and version.startswith(_OPENSHIFT):
        yield ConfigurationSource(manifest)
    elif kind in _CHARTED or not (kind and version):
        for path, values in _mappings(plain):
            if isinstance(text := values.get(_OF_CHART), str):
                yield ConfigurationSource(manifest, f"{path}.{_OF_CHART}".removeprefix("."), text)


def _mappings(plain: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield all mappings in an object with their paths, the outer ones first."""
    left: list[tuple[str, JsonValue]] = [("", plain)]
    while left:
        path, value = left.pop()
        if isinstance(value, dict):
            yield path, value
            left += ((f"{path}.{name}".removeprefix("."), it) for name, it in reversed(value.items()))
        elif isinstance(value, str) and f"{_OF_CHART}:" in value:
            # Argo CD's Application may have the values as text.
            with suppress(ManifestError):
                left += ((path, it.object) for it in parse_mappings(value, file=""))
        elif isinstance(value, list):
            left += ((f"{path}[{index}]", it) for index, it in reversed([*enumerate(value)]))


def gates_in(manifests: Iterable[Manifest]) -> list[GateSource]:
    """Find the feature gates that Deployments of Kueue, or values of its chart, set on its command line.

    Raises:
        ManifestError: One is not of the form Name=true.
    """
    found = []
    for manifest in manifests:
        kind = text_at(manifest.object, "kind")
        gates: dict[str, bool] = {}
        if kind == "Deployment":
            gates = dict(_gates_of_deployment(manifest))
        elif kind in _CHARTED or not kind:
            gates = dict(_gates_of_chart(manifest.object))
        if gates:
            found.append(GateSource(manifest, gates))
    return found


def _gates_of_deployment(manifest: Manifest) -> Iterator[tuple[str, bool]]:
    pod = object_at(manifest.object, "spec", "template", "spec")
    name = text_at(manifest.object, "metadata", "name")
    for place, container in enumerate(map(object_at, list_at(pod, "containers"))):
        if "kueue" not in name and "kueue" not in text_at(container, "image"):
            continue
        given = [it for field in ("command", "args") for it in list_at(container, field) if isinstance(it, str)]
        for index, argument in enumerate(given):
            flag, equals, value = argument.partition("=")
            if flag in (_GATES, _GATES[1:]):
                text = value if equals else next(iter(given[index + 1 : index + 2]), "")
                try:
                    yield from gates_of_argument(text.strip("\"'"))
                except ValueError as error:
                    field, remedy = f"spec.template.spec.containers[{place}].args", "correct the argument"
                    raise ManifestError([manifest.problem(str(error), field=field, remedy=remedy)]) from None


def gates_of_argument(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the gates in the argument of `--feature-gates`.

    Raises:
        ValueError: One is not of the form Name=true.

    Example:
        >>> dict(gates_of_argument("PartialAdmission=false,TopologyAwareScheduling=1"))
        {'PartialAdmission': False, 'TopologyAwareScheduling': True}
    """
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if value.strip() not in _TRUTHS:
            raise ValueError(f"{quoted(part)} is not of the form Name=true or Name=false")
        yield name.strip(), _TRUTHS[value.strip()]


def _gates_of_chart(plain: JsonObject) -> Iterator[tuple[str, bool]]:
    for _, values in _mappings(plain):
        # Other charts have feature gates too, but not beside this key.
        if _OF_CHART in object_at(values, "managerConfig"):
            for gate in map(object_at, list_at(object_at(values, "controllerManager"), "featureGates")):
                is_on = gate.get("enabled")
                if isinstance(is_on, bool) and text_at(gate, "name"):
                    yield text_at(gate, "name"), is_on
