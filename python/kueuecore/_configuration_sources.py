"""Finds Kueue's Configuration in ConfigMaps, Helm values and OpenShift's Kueue, gates and release in Deployments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kueuecore._files import read_file
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._text import quoted
from kueuecore.errors import ConfigurationError, ManifestError
from kueuecore.manifests import Manifest, object_ref, parse_manifests, parse_mappings
from kueuecore.releases import Release, UnknownReleaseError, near_releases

__all__ = [
    "ConfigurationSource",
    "GateSource",
    "ShownRelease",
    "documents_in",
    "gates_in",
    "gates_of_argument",
    "is_configuration",
    "place_of",
    "read_documents",
    "shown_release",
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
_DEFINITION, _OF_KINDS = "CustomResourceDefinition", "kueue.x-k8s.io"
_NAME_LABEL, _VERSION_LABEL, _CHART_LABEL = "app.kubernetes.io/name", "app.kubernetes.io/version", "helm.sh/chart"
_NAME = "kueue"
# Who builds Kueue anew adds to its version, but what comes before a release is not that release.
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+(?:-(?:alpha|beta|devel|rc)[0-9A-Za-z.]*)?)(?:[-+_][0-9A-Za-z.+_-]*)?")
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
            plain: list[JsonValue] = [document.object for document in self.documents()]
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
    """Read what should hold a Configuration: Kubernetes objects, or values of a Helm chart.

    Raises:
        ConfigurationError: It is neither, or empty.
    """
    try:
        manifests = parse_manifests(text, file=file)
    except ManifestError as error:
        with suppress(ManifestError):
            values = [mapping for mapping in parse_mappings(text, file=file) if not text_at(mapping.object, "kind")]
            if sources_in(values):
                return tuple(values)
        raise ConfigurationError(error.problems) from None
    if not manifests:
        raise ConfigurationError.of("it is empty", remedy="give one document of kind Configuration", file=file)
    return manifests


def read_documents(name: str) -> tuple[Manifest, ...]:
    """Read a file that should hold a Configuration.

    Raises:
        ConfigurationError: It cannot be read, or as for `documents_in`.
    """
    try:
        data = read_file(Path(name))
    except OSError as error:
        raise ConfigurationError.of(f"cannot be read: {error.strerror}", file=name or '""') from None
    return documents_in(data, name)


def sources_in(manifests: Iterable[Manifest], *, of_any_group: bool = False) -> list[ConfigurationSource]:
    """Find the Configurations of Kueue that some objects hold.

    Args:
        manifests: The objects.
        of_any_group: Take any object of kind Configuration, with any apiVersion or none.
    """
    return [source for manifest in manifests for source in _sources(manifest, of_any_group=of_any_group)]


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
            left += ((f"{path}.{name}".removeprefix("."), item) for name, item in reversed(value.items()))
        elif isinstance(value, str) and f"{_OF_CHART}:" in value:
            # Argo CD's Application may have the values as text.
            with suppress(ManifestError):
                left += ((path, mapping.object) for mapping in parse_mappings(value, file=""))
        elif isinstance(value, list):
            left += ((f"{path}[{index}]", row) for index, row in reversed([*enumerate(value)]))


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
        given = [word for field in ("command", "args") for word in list_at(container, field) if isinstance(word, str)]
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


@dataclass(frozen=True, slots=True)
class ShownRelease:
    """The release of Kueue that objects show.

    Args:
        release: The release, or the nearest that is known; `None` if they show several.
        holders: The objects that it comes from.
        says: A sentence about that.
        is_certain: Whether it is the one that they show.
    """

    release: Release | None
    holders: tuple[Manifest, ...]
    says: str
    is_certain: bool


def shown_release(manifests: Iterable[Manifest], *, option: str) -> ShownRelease | None:
    """Find the release in Deployments of Kueue, definitions of its kinds, and what installs its chart.

    Args:
        manifests: The objects.
        option: What names another release, for the sentence about it.

    Returns:
        `None` if no object shows any.
    """
    found: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        if version := _version_of(manifest.object):
            found.setdefault(version, []).append(manifest)
    if not found:
        return None
    firsts = [(version, place_of(holders[0])) for version, holders in found.items()]
    if len(firsts) > 1:
        several = ", ".join(f"v{version} of {place}" for version, place in firsts)
        says = f"the objects show several releases of Kueue, so none is used: {several}; choose with {option}"
        return ShownRelease(None, (), says, is_certain=False)
    ((version, place),) = firsts
    holders = tuple(found[version])
    try:
        release = Release.named(version)
    except UnknownReleaseError:
        release = near_releases(version)[-1]
        unknown = f"{place} is of Kueue v{version}, which kueuecore does not know"
        says = f"{unknown}, so it decides as {release.title}; choose another with {option}"
        return ShownRelease(release, holders, says, is_certain=False)
    says = f"decides as {release.title}, the release of {place}; {option} replaces it"
    return ShownRelease(release, holders, says, is_certain=True)


def place_of(holder: Manifest) -> str:
    """Return the name and the position of an object, for a note about it."""
    ref = object_ref(holder.object)
    place = str(holder.source)
    return f"{ref if ref.name else ref.kind}" + (f" ({place})" if place else "")


def _version_of(plain: JsonObject) -> str:
    """Return the version of Kueue that an object of its installation shows; empty if it shows none."""
    match text_at(plain, "kind"):
        case "Deployment":
            pod = object_at(plain, "spec", "template", "spec")
            images = [_image(text_at(container, "image")) for container in list_at(pod, "containers")]
            tags = [tag for name, tag in images if name == _NAME]
            is_kueue = bool(tags) or text_at(plain, "metadata", "labels", _NAME_LABEL) == _NAME
            shown = [*map(_version, tags), _version_of_labels(plain)] if is_kueue else []
        case kind if kind == _DEFINITION:
            shown = [_version_of_labels(plain)] if text_at(plain, "spec", "group") == _OF_KINDS else []
        case "HelmRelease":
            chart = object_at(plain, "spec", "chart", "spec")
            shown = [_version(text_at(chart, "version"))] if _is_chart(text_at(chart, "chart")) else []
        case "Application":
            spec = object_at(plain, "spec")
            sources = [object_at(spec, "source"), *map(object_at, list_at(spec, "sources"))]
            shown = [
                _version(text_at(source, "targetRevision")) for source in sources if _is_chart(text_at(source, "chart"))
            ]
        case _:
            shown = []
    return next(filter(None, shown), "")


def _image(text: str) -> tuple[str, str]:
    """Return the name of an image without its registry and folders, and its tag.

    Example:
        >>> _image("localhost:5000/kueue/kueue:v0.17.1@sha256:1b2")
        ('kueue', 'v0.17.1')
    """
    name, _, tag = text.partition("@")[0].rpartition("/")[2].partition(":")
    return name, tag


def _version_of_labels(plain: JsonObject) -> str:
    labels = object_at(plain, "metadata", "labels")
    chart, _, version = text_at(labels, _CHART_LABEL).partition("-")
    # Another chart, of which Kueue is a part, has a version of its own.
    return "" if chart not in ("", _NAME) else _version(version) or _version(text_at(labels, _VERSION_LABEL))


def _version(text: str) -> str:
    found = _VERSION.fullmatch(text)
    return found[1] if found else ""


def _is_chart(name: str) -> bool:
    return name.rpartition("/")[2] == _NAME


def _gates_of_chart(plain: JsonObject) -> Iterator[tuple[str, bool]]:
    for _, values in _mappings(plain):
        # Other charts have feature gates too, but not beside this key.
        if _OF_CHART in object_at(values, "managerConfig"):
            for gate in map(object_at, list_at(object_at(values, "controllerManager"), "featureGates")):
                is_on = gate.get("enabled")
                if isinstance(is_on, bool) and text_at(gate, "name"):
                    yield text_at(gate, "name"), is_on
