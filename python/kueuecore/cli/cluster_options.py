"""Options that name the cluster that a command without STATE reads."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["add_cluster", "shown_namespace"]


def add_cluster(add: argparse.ArgumentParser) -> None:
    """Add `--kubeconfig`, `--context`, `--server`, `--namespace` and `--all-namespaces`."""
    cluster = add.add_argument_group("cluster", "without files, the state is that of a cluster, which is only read")
    help_text = "by default KUBECONFIG or ~/.kube/config; in a pod its service account"
    cluster.add_argument("--kubeconfig", metavar="FILE", type=Path, help=help_text)
    cluster.add_argument("--context", metavar="NAME", help="a context of the kubeconfig; by default its current one")
    help_text = "an API server that needs no credentials, such as `kubectl proxy`"
    cluster.add_argument("--server", metavar="URL", default="", help=help_text)
    help_text = "look here for names without a namespace, and show its workloads; by default that of the context"
    cluster.add_argument("-n", "--namespace", metavar="NAME", default="", help=help_text)
    help_text = "show the workloads of all namespaces"
    cluster.add_argument("-A", "--all-namespaces", action="store_true", help=help_text)


def shown_namespace(options: argparse.Namespace) -> str:
    """Return the only namespace of which workloads are shown; empty: all.

    Args:
        options: The options of `add_cluster`, after the state was read.
    """
    if options.all_namespaces:
        return ""
    own: str = getattr(options.source, "namespace", "")
    return options.namespace or own
