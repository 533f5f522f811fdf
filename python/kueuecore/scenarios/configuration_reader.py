"""Reads which release of Kueue decides in a cluster of a scenario, and with which Configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kueuecore._fields import Fields
from kueuecore._json import JsonObject
from kueuecore.configuration import Configuration
from kueuecore.errors import ConfigurationError
from kueuecore.jobs import installed_frameworks
from kueuecore.manifests import API_VERSIONS
from kueuecore.releases import Release, UnknownReleaseError
from kueuecore.scenarios.named_paths import named_path
from kueuecore.simulation.sampling import check_sampling

__all__ = ["read_configuration", "read_release"]

_CONFIGURATION = {"apiVersion": API_VERSIONS["Configuration"], "kind": "Configuration"}


def read_release(section: Fields) -> Release | None:
    """Read the release of Kueue that a file names; None if it names none."""
    given = section.value("kueue")
    if given is None:
        return None
    if not isinstance(given, str | int | float) or isinstance(given, bool):
        section.complain("kueue", "not a release of Kueue", 'write its version, such as "0.17" or "0.17.3"')
        return None
    try:
        return Release.named(str(given))
    except UnknownReleaseError as error:
        message, _, remedy = str(error).rpartition(": ")
        is_text = isinstance(given, str)
        section.complain("kueue", message, remedy if is_text else "write it in quotes: as a number, 0.20 is 0.2")
        return None


def read_configuration(
    section: Fields, release: Release, folder: Path, *, feature_gates: Mapping[str, bool] | None = None
) -> Configuration:
    """Read Kueue's Configuration, and record what is wrong with it.

    Args:
        section: The fields that it is among.
        release: The release of Kueue that starts with it.
        folder: The folder that file names are relative to.
        feature_gates: Feature gates as on its command line.
    """
    given = section.value("configuration")
    if not isinstance(given, str | dict | None):
        section.complain("configuration", "neither a file nor a mapping", "name a file, or write its fields")
        return Configuration()
    try:
        if isinstance(given, str):
            path = named_path(section, "configuration", given, folder)
            if path is None:
                return Configuration()
            configuration = Configuration.read(path, feature_gates=feature_gates, release=release)
            return _with_samples(configuration, file=str(path))
        frameworks: JsonObject = {"integrations": {"frameworks": list(installed_frameworks(release))}}
        plain = {**_CONFIGURATION, **(frameworks if given is None else given)}
        file = section.document.source.file
        configuration = Configuration.parse(json.dumps(plain), file=file, feature_gates=feature_gates, release=release)
        return _with_samples(configuration, file=file)
    except ConfigurationError as error:
        where = ".".join(filter(None, (section.path, "configuration")))
        section.problems += [
            replace(problem, field=".".join(filter(None, (where, problem.field))), line=None)
            if isinstance(given, dict)
            else problem
            for problem in error.problems
        ]
        return Configuration()


def _with_samples(configuration: Configuration, *, file: str) -> Configuration:
    """Check that a Configuration's samples can be taken in virtual time."""
    try:
        check_sampling(configuration)
    except ConfigurationError as error:
        raise error.in_file(file) from None
    return configuration
