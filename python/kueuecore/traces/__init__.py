"""Traces of real clusters: recorded jobs as columns, and as Workloads of a simulation."""

from kueuecore.traces.rules import ColumnSource, GpuFractions, JobRule, TraceRules
from kueuecore.traces.scaling import Scale
from kueuecore.traces.text_column import TextColumn
from kueuecore.traces.trace import Trace, made_trace

__all__ = ["ColumnSource", "GpuFractions", "JobRule", "Scale", "TextColumn", "Trace", "TraceRules", "made_trace"]
