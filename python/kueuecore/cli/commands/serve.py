"""`kueuecore serve`: schedules the jobs of a cluster, or judges a Kueue that does."""

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
from kueuecore.cli.preflight_options import add_preflight, check_preflight
from kueuecore.cli.streams import to_stderr
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest

if TYPE_CHECKING:
    from kueuecore.kubernetes import Address, ServeSettings
    from kueuecore.kubernetes.api import Answered, Api
    from kueuecore.kubernetes.dry_run.service import DryRunSettings
    from kueuecore.kubernetes.settings import CertificateSettings
    from kueuecore.kubernetes.snapshots import ForecastSettings
    from kueuecore.multikueue import Dispatcher

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Schedules the jobs of a Kubernetes cluster by Kueue's rules, in Kueue's place: it creates Workloads, admits and
evicts them, starts and stops their jobs, and writes statuses and events. The cluster needs Kueue's CRDs.

With --preflight it only looks: what stands in the way in this cluster, and which commands mend it.
With --dry-run it runs beside a Kueue, writes nothing, and judges each of Kueue's decisions. --journal keeps what it
finds; read it with `kueuecore history --journal DIR`.

Logs are JSON on standard error, one object per line. docs/run-in-a-cluster.md lists prerequisites and limits."""

EXAMPLES = """\
  kueuecore serve --dry-run --config kueue.yaml --journal /var/lib/kueuecore --metrics-address 127.0.0.1:9090
  kueuecore serve --preflight --as system:serviceaccount:kueue-system:kueuecore --config deploy/kueuecore.yaml
  kueuecore serve --config /etc/kueuecore/configuration.yaml         in a pod, as deploy/kueuecore.yaml starts it
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
    given.add_argument(
        "--webhooks",
        action="store_true",
        help="also serve Kueue's webhooks, where the Configuration says; deploy/webhooks.yaml has what they need",
    )
    given.add_argument(
        "--multikueue-policy",
        metavar="FILE",
        help="which workers of MultiKueue get copies; a file with the fields of fleet.policy in scenarios; by default "
        "the dispatcher that the Configuration names",
    )
    given.add_argument(
        "--allow-code", action="store_true", help="run the program that the file of --multikueue-policy names"
    )
    add_preflight(add)
    forecasts = add.add_argument_group("forecasts")
    forecasts.add_argument(
        "--forecast",
        metavar="annotate",
        nargs="?",
        const="metrics",
        choices=["metrics", "annotate"],
        help="forecast when workloads are admitted; the first of each ClusterQueue, as metrics; with annotate, also as "
        "annotations of the Workloads",
    )
    forecasts.add_argument(
        "--forecast-every",
        metavar="SECONDS",
        type=int,
        help="how often to forecast; by default every 60 seconds; a round may take a quarter of that",
    )
    shadows = add.add_argument_group("dry run")
    shadows.add_argument(
        "--dry-run", action="store_true", help="write nothing, and judge the decisions of the Kueue in the cluster"
    )
    shadows.add_argument(
        "--journal", metavar="DIR", type=Path, help="with --dry-run: keep decisions, states and summaries there"
    )
    shadows.add_argument(
        "--summary-at", metavar="HH:MM", help="with --dry-run: when to sum up the day, in UTC; by default 00:00"
    )
    process = add.add_argument_group("process")
    process.add_argument(
        "--leader-elect",
        metavar="true|false",
        choices=["true", "false"],
        help="hold Kueue's Lease before scheduling; by default as in the Configuration",
    )
    process.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    ports = add.add_argument_group("ports")
    at_home = {"metrics": "", "health": "", "visibility": ", and only in a pod"}
    for name in at_home:
        ports.add_argument(
            f"--{name}-address",
            metavar="HOST:PORT",
            help=f"where to serve {name}; 0 to turn it off; by default as in the Configuration{at_home[name]}",
        )
    ports.add_argument(
        "--metrics-secure",
        metavar="true|false",
        choices=["true", "false"],
        help="serve metrics over TLS, to whom the API server allows it; by default true unless on loopback",
    )
    for name in ("metrics", "visibility"):
        ports.add_argument(
            f"--{name}-cert-path",
            metavar="DIR",
            type=Path,
            help=f"the folder of tls.crt and tls.key for {name}, read again when they change; by default as in Kueue",
        )


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore serve`; returns the exit code."""
    try:
        importlib.import_module("kubernetes")
        importlib.import_module("prometheus_client")
    except ImportError as error:
        to_stderr(f"kueuecore serve: {error}: install it with pip install 'kueuecore[serve]'")
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
    from kueuecore.kubernetes.dry_run.beside import kueue_beside
    from kueuecore.kubernetes.dry_run.service import serve_shadow
    from kueuecore.kubernetes.election import LeaseLostError
    from kueuecore.kubernetes.endpoints import ListenError
    from kueuecore.kubernetes.https.tls import CertificateError

    def connect(answered: Answered, qps: float | None, burst: int) -> Api:
        place = {"server": options.server, "kubeconfig": options.kubeconfig, "context": options.context}
        return Api.connect(**place, qps=qps, burst=burst, answered=answered)

    try:
        check_preflight(options)
        settings = _settings(options, given.configuration)
        keeps = _dry_run_settings(options)
        dispatcher = _dispatcher(options, given.configuration)
    except ManifestError:
        raise
    except ValueError as error:
        to_stderr(f"kueuecore serve: {error}")
        return ExitCode.BAD_INPUT
    try:
        if options.preflight:
            from kueuecore.cli.preflight_report import run_preflight  # few need it

            return run_preflight(options, connect(lambda *_: None, None, 1), given.configuration, settings.lease)
        if options.dry_run:
            namespace = text_at(given.configuration.to_dict(), "namespace")
            given = found(kueue_beside(connect(lambda *_: None, None, 1), namespace=namespace))
            serve_shadow(
                connect,
                settings,
                configuration=given.configuration,
                keeps=keeps,
                configure=lambda api: found(kueue_beside(api, namespace=namespace)).configuration,
                started=lambda: _say(given),
            )
        else:
            configuration = given.configuration
            serve(connect, settings, configuration=configuration, dispatcher=dispatcher, started=lambda *_: _say(given))
    except ManifestError:
        # The release of the Kueue in the cluster refuses what is in the file.
        raise
    except (ConfigException, CertificateError) as error:
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
    from kueuecore.kubernetes.settings import WebhookSettings

    if options.dry_run:
        _check_dry_run(options)
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
    if options.webhooks:
        settings = replace(settings, webhooks=WebhookSettings.of(configuration))
    if options.visibility_address is not None:
        settings = replace(settings, visibility=_address("visibility", options.visibility_address))
    settings = replace(settings, forecasts=_forecasts(options))
    settings = replace(settings, certificates=_certificates(options, settings.certificates))
    if options.leader_elect == "false" or options.dry_run:
        settings = replace(settings, lease=None)
    elif options.leader_elect == "true" and settings.lease is None:
        raise ValueError("the Configuration has no Lease: set leaderElection.leaderElect: true there")
    return settings


def _forecasts(options: argparse.Namespace) -> ForecastSettings | None:
    from kueuecore.kubernetes.snapshots import ForecastExport, ForecastSettings

    if options.forecast is None:
        if options.forecast_every is not None:
            raise ValueError("--forecast-every is for --forecast: add that, or leave it out")
        return None
    seconds = 60 if options.forecast_every is None else options.forecast_every
    try:
        return ForecastSettings(export=ForecastExport(options.forecast), seconds=seconds)
    except ValueError as error:
        raise ValueError(f"--forecast-every: {error}") from None


def _check_dry_run(options: argparse.Namespace) -> None:
    if options.forecast is not None:
        raise ValueError("--dry-run does not forecast: leave out --forecast, and ask `kueuecore eta`")
    if options.webhooks:
        raise ValueError("--dry-run writes nothing, and webhooks change and refuse objects: leave out one of them")
    if options.leader_elect == "true":
        raise ValueError("--dry-run takes no part in the election: leave out --leader-elect")
    if options.visibility_address is not None and _address("visibility", options.visibility_address) is not None:
        raise ValueError("--dry-run does not serve the visibility API: leave out --visibility-address")
    if options.visibility_cert_path is not None:
        raise ValueError("--dry-run does not serve the visibility API: leave out --visibility-cert-path")


def _dispatcher(options: argparse.Namespace, configuration: Configuration) -> Dispatcher | None:
    from kueuecore.kubernetes.workers.policy import chosen_dispatcher

    if options.multikueue_policy is not None and options.dry_run:
        raise ValueError("--dry-run dispatches nothing: leave out --multikueue-policy")
    if options.allow_code and options.multikueue_policy is None:
        raise ValueError("--allow-code is for the file of --multikueue-policy: add that, or leave it out")
    try:
        return chosen_dispatcher(configuration, options.multikueue_policy, allow_code=options.allow_code)
    except ManifestError:
        raise
    except ValueError as error:
        raise ValueError(f"{options.config}: {error}") from None


def _certificates(options: argparse.Namespace, given: CertificateSettings) -> CertificateSettings:
    return replace(
        given,
        metrics_folder=options.metrics_cert_path or given.metrics_folder,
        visibility_folder=options.visibility_cert_path or given.visibility_folder,
        secures_metrics=None if options.metrics_secure is None else options.metrics_secure == "true",
    )


def _dry_run_settings(options: argparse.Namespace) -> DryRunSettings:
    from kueuecore.kubernetes.dry_run.service import DryRunSettings
    from kueuecore.times import SECOND_NS

    if options.journal is not None and not options.dry_run:
        raise ValueError("--journal is for --dry-run: without it, keep the log, which `kueuecore history` reads too")
    if options.summary_at is None:
        return DryRunSettings(options.journal)
    if not options.dry_run:
        raise ValueError("--summary-at is for --dry-run: add that, or leave it out")
    hours, colon, minutes = options.summary_at.partition(":")
    is_time = colon and hours.isdecimal() and minutes.isdecimal() and int(hours) < 24 and int(minutes) < 60
    if not is_time:
        raise ValueError(f"--summary-at: {options.summary_at!r} is no time of the day: write HH:MM, such as 06:30")
    return DryRunSettings(options.journal, (int(hours) * 60 + int(minutes)) * 60 * SECOND_NS)


def _address(name: str, text: str) -> Address | None:
    from kueuecore.kubernetes import Address

    try:
        return Address.parse(text)
    except ValueError as error:
        raise ValueError(f"--{name}-address: {error}") from None
