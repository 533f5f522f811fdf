"""`kueuecore serve`: schedules the jobs of a cluster, or shadows a Kueue that does."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kueuecore._configuration_sources import read_documents
from kueuecore._json import text_at
from kueuecore._text import logged
from kueuecore.cli.configured import Configured, configured, configured_by
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.kueue_release import add_kueue
from kueuecore.cli.streams import to_stderr
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest

if TYPE_CHECKING:
    from kueuecore.kubernetes import Address, ServeSettings
    from kueuecore.kubernetes.api import Answered, Api

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Schedules the jobs of a Kubernetes cluster by Kueue's rules, in Kueue's place: it creates Workloads, admits and
evicts them, starts and stops their jobs, and writes statuses and events. The cluster needs Kueue's CRDs.
With --dry-run it runs beside a Kueue, writes nothing, and logs where it would decide differently.

Logs are JSON on standard error, one object per line. docs/run-in-a-cluster.md lists prerequisites and limits."""

EXAMPLES = """\
  kueuecore serve --kubeconfig ~/.kube/config --config kueue.yaml --dry-run
  kueuecore serve                              in a pod, as deploy/kueuecore.yaml starts it
  kueuecore serve --server http://127.0.0.1:8001 --leader-elect=false
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    cluster = add.add_argument_group("cluster")
    cluster.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=Path,
        help="by default the pod's service account, else KUBECONFIG or ~/.kube/config",
    )
    cluster.add_argument("--context", metavar="NAME", help="a context of the kubeconfig; by default its current one")
    cluster.add_argument("--server", metavar="URL", default="", help="an API server that needs no credentials")
    given = add.add_argument_group("scheduling")
    given.add_argument(
        "--config", metavar="FILE", help="Kueue's Configuration; by default the one in Kueue's release manifest"
    )
    add_kueue(given, sources="the file of --config, else with --dry-run that of the Kueue in the cluster")
    given.add_argument("--dry-run", action="store_true", help="write nothing, and log where Kueue decides differently")
    process = add.add_argument_group("process")
    process.add_argument(
        "--leader-elect",
        metavar="true|false",
        choices=["true", "false"],
        help="hold Kueue's Lease before scheduling; by default as in the Configuration",
    )
    for name in ("metrics", "health"):
        process.add_argument(
            f"--{name}-address",
            metavar="HOST:PORT",
            help=f"where to serve {name}; 0 to turn it off; by default as in the Configuration",
        )
    process.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore serve`; returns the exit code."""
    try:
        importlib.import_module("kubernetes")
        importlib.import_module("prometheus_client")
    except ImportError as error:
        to_stderr(f"kueuecore serve: {error}: install it with pip install 'kueuecore[kubernetes]'")
        return ExitCode.BAD_INPUT
    from kueuecore.kubernetes.json_logs import logged_to
    from kueuecore.kubernetes.signals import ended_by_sigterm

    documents = read_documents(options.config) if options.config else None

    def found(beside: Sequence[Manifest] = ()) -> Configured:
        if documents is None:
            return configured(None, [], beside, kueue=options.kueue)
        return configured_by(documents, [], beside, kueue=options.kueue)

    given = found()
    with ended_by_sigterm(), logged_to(sys.stderr, level=options.log_level):
        return _serve(options, given, found)


def _serve(options: argparse.Namespace, given: Configured, found: Callable[[Sequence[Manifest]], Configured]) -> int:
    from kubernetes.config import ConfigException

    from kueuecore.kubernetes import serve
    from kueuecore.kubernetes.api import Api
    from kueuecore.kubernetes.beside import kueue_beside
    from kueuecore.kubernetes.election import LeaseLostError
    from kueuecore.kubernetes.endpoints import ListenError
    from kueuecore.kubernetes.shadow import serve_shadow

    def connect(answered: Answered, qps: float | None, burst: int) -> Api:
        place = {"server": options.server, "kubeconfig": options.kubeconfig, "context": options.context}
        return Api.connect(**place, qps=qps, burst=burst, answered=answered)

    try:
        settings = _settings(options, given.configuration)
    except ValueError as error:
        to_stderr(f"kueuecore serve: {error}")
        return ExitCode.BAD_INPUT
    try:
        if options.dry_run:
            namespace = text_at(given.configuration.to_dict(), "namespace")
            given = found(kueue_beside(connect(lambda *_: None, None, 1), namespace=namespace))
            serve_shadow(connect, settings, configuration=given.configuration, started=lambda: _say(given))
        else:
            serve(connect, settings, configuration=given.configuration, started=lambda *_: _say(given))
    except ManifestError:
        # The release of the Kueue in the cluster refuses what is in the file.
        raise
    except ConfigException as error:
        to_stderr(f"kueuecore serve: {error}")
        return ExitCode.BAD_INPUT
    except Exception as error:
        extra = {"error": logged(error) or type(error).__name__, "notes": getattr(error, "__notes__", [])}
        # Ordinary failures of a cluster need no traceback.
        cause = None if isinstance(error, ListenError | LeaseLostError) else error
        logging.getLogger("kueuecore.kubernetes").critical("cannot continue", extra=extra, exc_info=cause)
        return ExitCode.UNAVAILABLE
    return ExitCode.OK


def _say(given: Configured) -> None:
    """Log where the release of Kueue and its gates come from."""
    logger = logging.getLogger("kueuecore.kubernetes")
    for note in given.notes:
        severity, _, text = note.partition(": ")
        logger.log(logging.WARNING if severity == "warning" else logging.INFO, text)


def _settings(options: argparse.Namespace, configuration: Configuration) -> ServeSettings:
    from kueuecore.kubernetes import ServeSettings

    if options.server and (options.kubeconfig is not None or options.context is not None):
        raise ValueError("--server has no credentials: leave out --kubeconfig and --context, or --server")
    try:
        settings = ServeSettings.of(configuration)
    except ValueError as error:
        raise ValueError(f"{options.config}: {error}") from None
    if options.metrics_address is not None:
        settings = replace(settings, metrics=_address("metrics", options.metrics_address))
    if options.health_address is not None:
        settings = replace(settings, health=_address("health", options.health_address))
    if options.leader_elect == "false" or options.dry_run:
        settings = replace(settings, lease=None)
    elif options.leader_elect == "true" and settings.lease is None:
        raise ValueError("the Configuration has no Lease: set leaderElection.leaderElect: true there")
    return settings


def _address(name: str, text: str) -> Address | None:
    from kueuecore.kubernetes import Address

    try:
        return Address.parse(text)
    except ValueError as error:
        raise ValueError(f"--{name}-address: {error}") from None
