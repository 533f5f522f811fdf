"""Checks the arguments of a fleet before anything happens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kueuecore._arguments import each, shown, text
from kueuecore.manifests import Manifest, ManifestLike, as_manifest, parse_manifests, to_json_lines

__all__ = ["check_settings", "checked_names", "checked_seed", "requests_of"]


def checked_names(workers: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the workers.

    Raises:
        TypeError: They are not strings.
        ValueError: A name is empty or duplicate.
    """
    names: list[str] = []
    for index, given in enumerate(each("workers", workers.keys() if isinstance(workers, Mapping) else workers)):
        if not (name := text(f"workers[{index}]", given)):
            raise ValueError(f"workers[{index}]: a worker without a name: give that of its MultiKueueCluster")
        if name in names:
            raise ValueError(f"workers[{index}]: two workers have the same name: {shown(name)}")
        names.append(name)
    return tuple(names)


def checked_seed(seed: object) -> int:
    """Return the seed.

    Raises:
        TypeError: It is not an integer: draws from any other seed would not be reproducible.
    """
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise TypeError(f"seed must be a whole number, not {type(seed).__name__}")
    return seed


def check_settings(what: str, given: Mapping[str, object] | None, kind: type, names: tuple[str, ...]) -> None:
    """Check that settings belong to existing clusters.

    Args:
        what: What to call the settings in errors.
        given: The settings by name.
        kind: The type of each.
        names: The existing clusters.

    Raises:
        TypeError: They are of another type.
        ValueError: There is no such cluster.
    """
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"{what} must map names to {kind.__name__}, not be {type(given).__name__}")
    for name, settings in (given or {}).items():
        if name not in names:
            known = ", ".join(map(shown, names))
            raise ValueError(f"{what}[{shown(name)}]: there is no such cluster; give one of {known}")
        if not isinstance(settings, kind):
            raise TypeError(f"{what}[{shown(name)}] must be a {kind.__name__}, not {type(settings).__name__}")


def requests_of(manifests: str | ManifestLike | Iterable[ManifestLike]) -> list[Manifest]:
    """Return objects as requests carry them: copies, as JSON.

    Raises:
        ManifestError: A text cannot be parsed, or JSON cannot represent an object.
        TypeError: Something is not an object.
    """
    if isinstance(manifests, str):
        given = list(parse_manifests(manifests))
    elif isinstance(manifests, Mapping) or not isinstance(manifests, Iterable):
        given = [as_manifest(manifests)]
    else:
        given = [as_manifest(manifest) for manifest in each("manifests", manifests)]
    copies = map(json.loads, to_json_lines(given).splitlines())
    return [replace(manifest, object=copy) for manifest, copy in zip(given, copies, strict=True)]
