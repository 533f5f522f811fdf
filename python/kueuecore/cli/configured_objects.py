"""What `check` and `prove` look at: the objects in files or in the cluster, with Kueue's Configuration."""

from __future__ import annotations

import argparse

from kueuecore.cli.cluster_options import add_cluster
from kueuecore.cli.configured import Configured, add_configuration, configured
from kueuecore.cli.namespace_labels import add_namespace_labels, with_namespaces
from kueuecore.cli.state_file import add_assumed_checks, add_strict, add_trusted, given_objects
from kueuecore.cli.streams import to_stderr
from kueuecore.manifests import Manifest

__all__ = ["add_configured_objects", "configured_objects"]


def add_configured_objects(add: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the arguments that `configured_objects` reads, and `--trusted` and `--assume-checks-active`.

    Returns:
        The group of those that are about the input, for more of them.
    """
    help_text = "a YAML or JSON file, a directory, or - for stdin; without any, the cluster"
    add.add_argument("paths", metavar="PATH", nargs="*", help=help_text)
    add_cluster(add)
    given = add.add_argument_group("input")
    given.add_argument("-R", "--recursive", action="store_true", help="read subdirectories too")
    add_configuration(given)
    add_trusted(given)
    add_namespace_labels(given)
    add_assumed_checks(given)
    add_strict(given)
    return given


def configured_objects(options: argparse.Namespace) -> tuple[tuple[Manifest, ...], Configured]:
    """Return the objects that the options name, and the Configuration that goes with them; notes are shown.

    Raises:
        ManifestError: Something cannot be read.
        ConfigurationError: The Configuration is wrong.
    """
    manifests = with_namespaces(given_objects(options), options.namespace_labels)
    kueue = configured(options.config, options.feature_gates, manifests, kueue=options.kueue)
    if not options.quiet:
        to_stderr(*kueue.notes)
    return manifests, kueue
