"""`kueuecore eta`: forecasts when waiting workloads will be admitted, as a table or JSON."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path
from time import monotonic

from kueuecore._fields import Fields, seconds_of
from kueuecore._text import shown
from kueuecore.cli.cluster_options import add_cluster, shown_namespace
from kueuecore.cli.configured import configured
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.forecast_report import forecast_document, forecast_report, interim_lines
from kueuecore.cli.history_options import add_history, read_history
from kueuecore.cli.kueue_release import add_kueue, asked_release
from kueuecore.cli.named_workload import WORKLOAD_HELP, find_workload
from kueuecore.cli.progress import ctrl_c_raises, run_progress, ticking
from kueuecore.cli.state_file import add_trusted, given_objects
from kueuecore.cli.streams import output, to_stderr
from kueuecore.cli.study_options import add_look, count
from kueuecore.cli.table import Style
from kueuecore.cli.watching import Answer, add_watch, answer_or_watch
from kueuecore.errors import ManifestError, Problem
from kueuecore.forecasts import Eta, Experience, eta
from kueuecore.forecasts.backtest import N_MOMENTS
from kueuecore.forecasts.forecast import HORIZON_SECONDS, MAX_HORIZON_SECONDS, N_SEEDS
from kueuecore.forecasts.futures import enough_steps
from kueuecore.forecasts.playing import FIRST_SEEDS
from kueuecore.manifests import Manifest, object_ref
from kueuecore.scenarios import ClusterPart, Scenario, Spans
from kueuecore.scenarios.edits import parse_value
from kueuecore.scenarios.present_reader import newest_time_of
from kueuecore.scenarios.scenario_reader import KIND, scenario_of
from kueuecore.scenarios.spans import read_spans
from kueuecore.studies.running import threads
from kueuecore.world import World, is_workload

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

_BUDGET_SECONDS = 30.0
# So much longer it waits for the first futures.
_PATIENCE_SECONDS = 90.0
# Between answers of --watch.
_PAUSE_SECONDS = 10.0
# What is over sooner, as it seems after the first futures, needs no answers on the way.
_INTERIM_SECONDS = 3.0

DESCRIPTION = """\
Forecasts when waiting workloads will be admitted: the times by which it happens with a probability of 10, 50
and 90 %. Plays the present state of a cluster forward many times.

Run times and arrivals are drawn from its history. With too little of that it gives bounds instead.
Makes such forecasts for moments of the past too, corrects today's by how these turned out, and says how many
held, and what is assumed."""

EXAMPLES = """\
  kueuecore eta team-a/train                         in the cluster of the current context
  kueuecore eta dump.yaml team-a/train               by when it is admitted, with 10, 50 and 90 %
  kueuecore eta dump.yaml                            all waiting workloads
  kueuecore eta dump.yaml team-a/train --run-seconds '{mean: 30m}'    if nothing has finished yet
  kueuecore eta dump.yaml train --run-seconds team-b/lq=2h --arrivals none
  kueuecore eta dump.yaml train --history jobs.txt --history http://prometheus:9090      with what others know
  kubectl get -A -o yaml ns,resourceflavors,clusterqueues,cohorts,localqueues,workloads | kueuecore eta - train
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    help_text = (
        "the present state of a cluster: a file, a directory or -; or a YAML file of kind Scenario; without it, the "
        "cluster"
    )
    add.add_argument("state", metavar="STATE", nargs="?", help=help_text)
    add.add_argument(
        "workloads",
        metavar="WORKLOAD",
        nargs="*",
        default=[],
        help=f"{WORKLOAD_HELP}; by default all that are waiting",
    )
    add_cluster(add)
    given = add.add_argument_group("assumptions")
    help_text = (
        "how long jobs run, as in a scenario: 30m; or '{mean: 30m}', '{lognormal: {median: 10m, sigma: 1}}'; prefix "
        "it with NAMESPACE/LOCALQUEUE= or CLUSTERQUEUE= for one queue; repeatable; by default fitted to finished jobs"
    )
    given.add_argument("--run-seconds", metavar="[QUEUE=]DISTRIBUTION", action="append", default=[], help=help_text)
    help_text = (
        "fitted: workloads keep arriving as they have so far; none: no more arrive; by default fitted, unless a "
        "scenario has work of its own"
    )
    given.add_argument("--arrivals", choices=["fitted", "none"], help=help_text)
    help_text = "fit arrivals to this last span of time only, such as 24h; by default to all there are"
    given.add_argument("--window", metavar="DURATION", type=_span, help=help_text)
    help_text = "how far to look ahead, such as 12h; by default 30d, or less where too much happens"
    given.add_argument("--horizon", metavar="DURATION", type=_span, help=help_text)
    add_history(given)
    given.add_argument("--config", metavar="FILE", help="Kueue's Configuration, as for `kueuecore run`")
    add_kueue(given)
    given.add_argument(
        "--now", metavar="TIME", type=_time, help="the time of the dump; by default the newest time in its objects"
    )
    add_trusted(given)
    help_text = f"how many futures; by default {N_SEEDS}, or as many as the budget allows"
    add.add_argument("--seeds", metavar="N", type=count, help=help_text)
    help_text = (
        "how many moments of the past to forecast, at most; how these turned out corrects today's forecasts, and is "
        f"shown; 0: none; by default {N_MOMENTS}"
    )
    add.add_argument("--backtest", metavar="N", type=_count_or_zero, default=N_MOMENTS, help=help_text)
    help_text = (
        f"stop after this time, such as 5m, once there are {FIRST_SEEDS} futures; by default 30s, or none with --seeds"
    )
    add.add_argument("--budget", metavar="DURATION", type=_span, help=help_text)
    add.add_argument(
        "--workers",
        metavar="N",
        type=count,
        default=os.cpu_count() or 1,
        help="number of threads; by default one per core",
    )
    out = add.add_argument_group("output")
    help_text = "quantiles in percent, such as 5,50,95; by default 10,50,90"
    out.add_argument("--quantiles", metavar="P,...", type=_quantiles, default=(10.0, 50.0, 90.0), help=help_text)
    out.add_argument(
        "-o", "--output", choices=["table", "json"], default="table", help="json also has the result of each future"
    )
    add_look(out)
    add_watch(out)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore eta`; returns the exit code."""
    options.paths, options.workloads = _divided(options)
    options.recursive = options.strict = False
    options.past = None
    # With --watch, what was forecast for the past serves all answers.
    options.experience = Experience()
    return answer_or_watch(options, lambda: _answer(options), pause_seconds=_PAUSE_SECONDS)


def _answer(options: argparse.Namespace) -> Answer:
    begin = monotonic()
    scenario = _scenario(options)
    if options.past is None:
        # Once for all answers of --watch: it may be large.
        options.past = read_history(options, scenario.cluster.objects, now=scenario.start)
        if not options.quiet:
            to_stderr(*(f"note: {shown(note)}" for note in options.past.notes))
    run_seconds = dict(map(_run_seconds, options.run_seconds))
    seeds = range(scenario.seed, scenario.seed + (options.seeds or N_SEEDS))
    budget = options.budget or (inf if options.seeds else _BUDGET_SECONDS)
    n_played = n_past = n_moments = 0
    began_playing = 0.0
    with (
        ctrl_c_raises(),
        threads(min(options.workers, len(seeds))) as executor,
        run_progress(quiet=options.quiet) as bar,
        ticking(
            lambda: _progress_line(n_played, len(seeds), n_past, n_moments), quiet=options.quiet or bar is not None
        ),
    ):

        def progress(n_over: int, n_all: int) -> None:
            nonlocal n_played, began_playing
            began_playing = began_playing or monotonic()
            n_played = n_over
            if bar is not None:
                bar(n_over, n_all)

        def progress_of_past(n_over: int, n_all: int) -> None:
            nonlocal n_past, n_moments
            n_past, n_moments = n_over, n_all

        def is_enough(n_first: int) -> bool:
            spent = monotonic() - begin
            return spent >= budget + (0 if n_first >= FIRST_SEEDS else _PATIENCE_SECONDS)

        def interim(found: Eta) -> None:
            spent = monotonic() - begin
            whole = spent + (monotonic() - began_playing) / len(found.seeds) * (len(seeds) - len(found.seeds))
            if not options.quiet and whole >= _INTERIM_SECONDS:
                to_stderr(*interim_lines(found, options.quantiles))

        found = eta(
            scenario,
            _named(options, scenario),
            seeds=seeds,
            horizon_seconds=options.horizon or HORIZON_SECONDS,
            most_steps=None if options.horizon else enough_steps(len(scenario.cluster.objects)),
            run_seconds=run_seconds,
            arrivals=None if options.arrivals is None else options.arrivals == "fitted",
            window_seconds=options.window,
            history=options.past.jobs,
            rates=options.past.rates,
            n_moments=options.backtest,
            experience=options.experience,
            trusted=options.trusted,
            executor=executor,
            progress=progress,
            progress_of_past=progress_of_past,
            is_enough=is_enough,
            interim=interim,
        )
    return _shown(found, scenario, options)


def _shown(found: Eta, scenario: Scenario, options: argparse.Namespace) -> Answer:
    namespace = "" if options.workloads else shown_namespace(options)
    if namespace:
        shown_ones = tuple(one for one in found.forecasts if one.workload.startswith(f"{namespace}/"))
        found = replace(found, forecasts=shown_ones)
    if not options.quiet:
        to_stderr(*(f"warning: {shown(warning)}" for warning in found.assumptions.warnings))
    if options.output == "json":
        text = forecast_document(found, options.quantiles, scenario.release)
    else:
        text = forecast_report(found, options.quantiles, Style.of(output(), options.color)) + "\n"
    return Answer(text, ExitCode.OK, _essence(found, options.quantiles))


def _progress_line(n_played: int, n_seeds: int, n_past: int, n_moments: int) -> str:
    past = f", {n_past} of {n_moments} moments of the past looked at" if n_moments else ""
    return f"{n_played} of {n_seeds} futures played{past}"


def _essence(found: Eta, percentages: Sequence[float]) -> str:
    """The forecasts to two digits: a later look at the same jobs differs in the third."""
    parts = []
    for forecast in found.forecasts:
        quantiles = [f"{forecast.quantile(percent / 100):.2g}" if forecast.seconds else "" for percent in percentages]
        parts.append(f"{forecast.workload} {forecast.status} {forecast.never} {' '.join(quantiles)}")
    return "\n".join(parts)


def _divided(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Tell the file of the state from a workload of the cluster: both may come first."""
    named = [options.state] if options.state is not None else []
    if options.source is None and named and (named[0] == "-" or _names_file(named[0])):
        return named, options.workloads
    return [], [*named, *options.workloads]


def _names_file(text: str) -> bool:
    try:
        return text.endswith((".yaml", ".yml", ".json", ".gz")) or Path(text).exists()
    except OSError:
        # It is too long, for example.
        return False


def _scenario(options: argparse.Namespace) -> Scenario:
    """Read the state, which is a scenario or a dump."""
    manifests = given_objects(options, takes_scenario=True)
    if options.source is not None:
        # A state that was read before is none, though a Scenario may have been in its folder.
        manifests = tuple(manifest for manifest in manifests if manifest.object.get("kind") != KIND)
    if any(manifest.object.get("kind") == KIND for manifest in manifests):
        for option, given, field in (
            ("--config", options.config, "cluster.configuration"),
            ("--now", options.now, "start"),
            ("--trusted", options.trusted or None, "cluster.objects"),
        ):
            if given is not None:
                remedy = f"set `{field}` in the scenario"
                raise ManifestError.of(f"{option} works with a dump only", remedy=remedy, file=options.paths[0])
        return scenario_of(manifests, options.paths[0], release=options.kueue, default_release=asked_release(None))
    kueue = configured(options.config, [], manifests, kueue=options.kueue)
    if not options.quiet:
        to_stderr(*kueue.notes)
    cluster = ClusterPart(objects=manifests, configuration=kueue.configuration)
    # Without any time it is 1970, as for `kueuecore run`.
    now = options.now if options.now is not None else newest_time_of(cluster) or 0
    return Scenario(cluster=cluster, start=now)


def _named(options: argparse.Namespace, scenario: Scenario) -> list[str] | None:
    """The Workloads that the arguments name; None: all that wait."""
    if not options.workloads:
        return None
    given, configuration = scenario.cluster.objects, scenario.cluster.configuration
    world = World.of(given, configuration=configuration, trusted=options.trusted)
    refs = [object_ref(manifest.object) for manifest in world.manifests if is_workload(manifest.object)]
    keys = [(ref.namespace, ref.name) for ref in refs]
    return ["/".join(find_workload(workload, world, given=given, keys=keys)) for workload in options.workloads]


def _run_seconds(text: str) -> tuple[str, Spans]:
    """A queue (empty: all others) and how long its jobs run."""
    queue, equals, value = text.partition("=")
    if not equals or any(mark in queue for mark in " {["):
        queue, value = "", text
    problems: list[Problem] = []
    document = Manifest({"--run-seconds": parse_value(value)})
    spans = read_spans(Fields(document, document.object, "", problems), "--run-seconds")
    if problems or spans is None:
        if not problems:
            raise ManifestError.of("a duration is needed", field="--run-seconds", remedy="write 30m or {mean: 30m}")
        raise ManifestError(problems)
    return queue, spans


def _span(text: str) -> float:
    """Parse the duration of an option; days are allowed."""
    try:
        seconds = seconds_of(float(text)) if text.replace(".", "", 1).isdigit() else seconds_of(text)
    except ValueError:
        seconds = None
    if seconds is None or not 0 < seconds <= MAX_HORIZON_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration above 0 and up to ten years, such as 12h or 30d")
    return seconds


def _count_or_zero(text: str) -> int:
    return 0 if text == "0" else count(text)


def _time(text: str) -> int:
    from kueuecore.times import beginning_ns

    try:
        return beginning_ns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _quantiles(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(isfinite(part) and 0 < part < 100 for part in found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of percentages between 0 and 100, such as 10,50,90")
    return tuple(sorted(set(found)))
