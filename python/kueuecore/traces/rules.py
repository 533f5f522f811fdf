"""What becomes of the jobs of a trace: their queues, priorities, and the names of resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import Source
from kueuecore.traces.scaling import Scale

__all__ = ["STANDARD_RESOURCES", "ColumnSource", "GpuFractions", "JobRule", "TraceRules"]

STANDARD_RESOURCES: Mapping[str, str] = MappingProxyType({"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu"})
"""What the resources of traces are called in requests, unless rules say otherwise."""


class GpuFractions(StrEnum):
    """How many devices a pod requests that uses a part of one."""

    UP = "up"
    """A whole one for each part of one: half a GPU counts as one, as in a cluster without sharing."""
    NEAREST = "nearest"
    """The nearest whole number, halves up: below half a GPU no device is requested."""
    DOWN = "down"
    """Whole devices only: half a GPU is no device."""
    THOUSANDTHS = "thousandths"
    """Parts are kept: one unit of the resource is a thousandth of a GPU, and quotas count so, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRule:
    """What becomes of the jobs that it matches.

    Args:
        queue: `namespace/localqueue`; fields of the job may stand in braces: `{user}/jobs`.
        when: Patterns by field of the trace; a job has to match one pattern of each field. Empty: every job.
        priority: Their priority; None: that of the trace.
        requests: What a pod requests in place of what the trace says, by resource, in milli-units of `cpu` and whole
            units of the rest. 0: nothing.
    """

    queue: str
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    priority: int | None = None
    requests: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSource:
    """Where a column of a trace comes from in a table.

    Args:
        column: The name of the column in the file.
        times: Factor of its numbers: 1000 for a column of whole CPUs.
    """

    column: str
    times: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRules:
    """How jobs of a trace become Workloads.

    Args:
        rules: The first that matches a job counts.
        default: What holds for jobs that no rule matches; None: that is an error.
        resources: The name of each resource of the trace in requests; None: it is not requested.
        gpu_fractions: What becomes of parts of a GPU.
        scale: Which jobs are taken, and how times are stretched.
        columns: For tables, the columns that have other names there.
        source: Where the rules stand, for errors.

    Example:
        >>> rules = TraceRules(rules=(JobRule(when={"user": ("a*",)}, queue="team-a/jobs"),),
        ...                    default=JobRule(queue="{user}/jobs"))
        >>> rules.rule_names()
        ('rules[0]', 'default')
    """

    rules: tuple[JobRule, ...] = ()
    default: JobRule | None = None
    resources: Mapping[str, str | None] = field(default_factory=lambda: STANDARD_RESOURCES)
    gpu_fractions: GpuFractions = GpuFractions.UP
    scale: Scale = field(default_factory=Scale)
    columns: Mapping[str, ColumnSource] = field(default_factory=dict)
    source: Source = field(default_factory=Source, compare=False, repr=False)

    def all_rules(self) -> tuple[JobRule, ...]:
        """Return the rules in their order, the default last."""
        return self.rules if self.default is None else (*self.rules, self.default)

    def rule_names(self) -> tuple[str, ...]:
        """Return the field path of each of `all_rules`."""
        names = [f"rules[{index}]" for index in range(len(self.rules))]
        return tuple(names if self.default is None else [*names, "default"])

    def error(self, message: str, field_path: str, remedy: str) -> ManifestError:
        """Return an error about a field of the rules, with its place."""
        file, line = self.source.file, self.source.line_of(field_path) or None
        return ManifestError([Problem(message, field=field_path, remedy=remedy, file=file, line=line)])
