"""What a fleet is made of and what it is asked for, checked before anything happens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kueuecore._arguments import each, shown, text
from kueuecore.manifests import Manifest, ManifestLike, as_manifest, parse_manifests, to_json_lines

__all__ = ["check_settings", "checked_names", "checked_seed", "requests_of"]


def checked_names(workers: Iterable[str]) -> tuple[str, ...]:
    """The names of the workers.

    Raises:
        TypeError: They are no names.
        ValueError: One is empty, or is there twice.
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
    """The seed.

    Raises:
        TypeError: It is no whole number: of any other the draws could not be made again.
    """
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise TypeError(f"seed must be a whole number, not {type(seed).__name__}")
    return seed


def check_settings(what: str, given: Mapping[str, object] | None, kind: type, names: tuple[str, ...]) -> None:
    """Check that settings belong to existing clusters.

    Args:
        what: What they are called, for errors.
        given: The settings by name.
        kind: What each of them is.
        names: The clusters that are there.

    Raises:
        TypeError: They are something else.
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
    """Objects as requests bring them: copies, as JSON.

    Raises:
        ManifestError: A text that cannot be read, or an object that JSON cannot hold.
        TypeError: What is no object.
    """
    if isinstance(manifests, str):
        given = list(parse_manifests(manifests))
    elif isinstance(manifests, Mapping) or not isinstance(manifests, Iterable):
        given = [as_manifest(manifests)]
    else:
        given = [as_manifest(it) for it in each("manifests", manifests)]
    copies = map(json.loads, to_json_lines(given).splitlines())
    return [replace(it, object=copy) for it, copy in zip(given, copies, strict=True)]
