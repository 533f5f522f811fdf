"""Options that name the cluster that a command without STATE reads."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from kueuecore._text import quoted

__all__ = ["add_cluster", "shown_namespace"]

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def add_cluster(add: argparse.ArgumentParser) -> None:
    """Add `--kubeconfig`, `--context`, `--server`, `--namespace` and `--all-namespaces`."""
    cluster = add.add_argument_group("cluster", "without files, the state is that of a cluster, which is only read")
    help_text = "by default KUBECONFIG or ~/.kube/config; in a pod its service account"
    cluster.add_argument("--kubeconfig", metavar="FILE", type=Path, help=help_text)
    cluster.add_argument("--context", metavar="NAME", help="a context of the kubeconfig; by default its current one")
    help_text = "an API server that needs no credentials, such as `kubectl proxy`"
    cluster.add_argument("--server", metavar="URL", default="", help=help_text)
    help_text = "look here for names without a namespace, and show its workloads; by default that of the context"
    cluster.add_argument("-n", "--namespace", metavar="NAME", default="", type=_namespace, help=help_text)
    help_text = "show the workloads of all namespaces"
    cluster.add_argument("-A", "--all-namespaces", action="store_true", help=help_text)


def _namespace(text: str) -> str:
    if text and not _NAMESPACE.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{quoted(text)} is no name of a namespace: lower-case letters, digits and hyphens"
        )
    return text


def shown_namespace(options: argparse.Namespace) -> str:
    """Return the only namespace of which workloads are shown; empty: all.

    Args:
        options: The options of `add_cluster`, after the state was read.
    """
    if options.all_namespaces:
        return ""
    own: str = getattr(options.source, "namespace", "")
    return options.namespace or own
