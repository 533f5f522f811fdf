"""Traces of real clusters: recorded jobs as columns, and as Workloads of a simulation.

Example:
    >>> from kueuecore import simulate
    >>> trace, rules = read_trace("examples/traces/cluster_log.csv"), read_rules("examples/traces/rules.yaml")
    >>> queues = queues_for(trace, rules, quota={"cpu": 64, "nvidia.com/gpu": 16})
    >>> run = simulate(queues, submissions=trace.submissions(rules), now="2026-01-01T00:00:00Z")
    >>> len(run.outcome_table) == len(trace)
    True
"""

from kueuecore.traces.queues import queues_for
from kueuecore.traces.read_trace import TraceFormat, read_trace
from kueuecore.traces.rule_reader import read_rules
from kueuecore.traces.rules import ColumnSource, GpuFractions, JobRule, TraceRules
from kueuecore.traces.scaling import Scale
from kueuecore.traces.text_column import TextColumn
from kueuecore.traces.trace import Trace, made_trace

__all__ = [
    "ColumnSource",
    "GpuFractions",
    "JobRule",
    "Scale",
    "TextColumn",
    "Trace",
    "TraceFormat",
    "TraceRules",
    "made_trace",
    "queues_for",
    "read_rules",
    "read_trace",
]
