"""Scenarios: clusters, their work and a seed in one file, simulated in virtual time.

Example:
    >>> outcome = run("examples/scenario/scenario.yaml")
    >>> outcome.all.n_jobs, outcome.all.n_finished
    (60, 60)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.scenarios.cluster_part import ClusterPart
    from kueuecore.scenarios.distributions import Empirical, Gamma, InOrder, LogNormal, Span, Spans, Weibull
    from kueuecore.scenarios.early_ends import EarlyEnds
    from kueuecore.scenarios.edits import Edit, parse_edit, parse_target
    from kueuecore.scenarios.fleet_part import Disconnection, FleetPart, WorkerPart
    from kueuecore.scenarios.fleet_results import FleetResults, FleetSummary
    from kueuecore.scenarios.generator_reader import GeneratedRun, read_generator
    from kueuecore.scenarios.hourly_arrivals import HourlyArrivals
    from kueuecore.scenarios.job_outcomes import JobOutcome, JobOutcomes
    from kueuecore.scenarios.node_groups import NodeFailure, NodeGroup, NodeLevel, NodeState
    from kueuecore.scenarios.outcomes import QuotaOutcome, ScenarioEnding, ScenarioOutcome, WorkloadVersion
    from kueuecore.scenarios.present import Present
    from kueuecore.scenarios.running import run, run_scenario
    from kueuecore.scenarios.scenario import Scenario
    from kueuecore.scenarios.scenario_reader import read_scenario
    from kueuecore.scenarios.schema import scenario_schema
    from kueuecore.scenarios.timed_changes import (
        ApplyObjects,
        DeleteObject,
        PatchObject,
        ScaleQuota,
        Target,
        TimedChange,
    )
    from kueuecore.scenarios.waits import Waits, waits_by
    from kueuecore.scenarios.work import Arrival, Work

__all__ = [
    "ApplyObjects",
    "Arrival",
    "ClusterPart",
    "DeleteObject",
    "Disconnection",
    "EarlyEnds",
    "Edit",
    "Empirical",
    "FleetPart",
    "FleetResults",
    "FleetSummary",
    "Gamma",
    "GeneratedRun",
    "HourlyArrivals",
    "InOrder",
    "JobOutcome",
    "JobOutcomes",
    "LogNormal",
    "NodeFailure",
    "NodeGroup",
    "NodeLevel",
    "NodeState",
    "PatchObject",
    "Present",
    "QuotaOutcome",
    "ScaleQuota",
    "Scenario",
    "ScenarioEnding",
    "ScenarioOutcome",
    "Span",
    "Spans",
    "Target",
    "TimedChange",
    "Waits",
    "Weibull",
    "Work",
    "WorkerPart",
    "WorkloadVersion",
    "parse_edit",
    "parse_target",
    "read_generator",
    "read_scenario",
    "run",
    "run_scenario",
    "scenario_schema",
    "waits_by",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.scenarios.cluster_part": "ClusterPart",
        "kueuecore.scenarios.distributions": "Empirical Gamma InOrder LogNormal Span Spans Weibull",
        "kueuecore.scenarios.early_ends": "EarlyEnds",
        "kueuecore.scenarios.edits": "Edit parse_edit parse_target",
        "kueuecore.scenarios.fleet_part": "Disconnection FleetPart WorkerPart",
        "kueuecore.scenarios.fleet_results": "FleetResults FleetSummary",
        "kueuecore.scenarios.generator_reader": "GeneratedRun read_generator",
        "kueuecore.scenarios.hourly_arrivals": "HourlyArrivals",
        "kueuecore.scenarios.job_outcomes": "JobOutcome JobOutcomes",
        "kueuecore.scenarios.node_groups": "NodeFailure NodeGroup NodeLevel NodeState",
        "kueuecore.scenarios.outcomes": "QuotaOutcome ScenarioEnding ScenarioOutcome WorkloadVersion",
        "kueuecore.scenarios.present": "Present",
        "kueuecore.scenarios.running": "run run_scenario",
        "kueuecore.scenarios.scenario": "Scenario",
        "kueuecore.scenarios.scenario_reader": "read_scenario",
        "kueuecore.scenarios.schema": "scenario_schema",
        "kueuecore.scenarios.timed_changes": "ApplyObjects DeleteObject PatchObject ScaleQuota Target TimedChange",
        "kueuecore.scenarios.waits": "Waits waits_by",
        "kueuecore.scenarios.work": "Arrival Work",
    },
)
