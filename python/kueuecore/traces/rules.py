"""Rules for the jobs of a trace: their queues, priorities, and resource names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import Source
from kueuecore.traces.queue_names import PLACEHOLDER
from kueuecore.traces.scaling import Scale

__all__ = ["STANDARD_RESOURCES", "ColumnSource", "GpuFractions", "JobRule", "TraceRules"]

STANDARD_RESOURCES: Mapping[str, str] = MappingProxyType({"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu"})
"""The names in requests for a trace's resources, unless rules set others."""


class GpuFractions(StrEnum):
    """How many devices a pod requests that uses a fraction of one."""

    UP = "up"
    """Round up: half a GPU counts as one, as in a cluster without sharing."""
    NEAREST = "nearest"
    """Round to the nearest, halves up: less than half a GPU requests no device."""
    DOWN = "down"
    """Round down: half a GPU requests no device."""
    THOUSANDTHS = "thousandths"
    """Keep fractions: one unit of the resource is a thousandth of a GPU, in quotas too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRule:
    """A rule for the jobs that it matches.

    Args:
        queue: `namespace/localqueue`, which may contain fields of the job in braces: `{user}/jobs`.
        when: Patterns by field of the trace; a job must match one pattern of each field. Empty: every job.
        priority: Their priority; None: that of the trace.
        requests: What a pod requests instead of the trace's values, by resource, in milli-units for `cpu` and whole
            units for the rest. 0: nothing.
    """

    queue: str
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    priority: int | None = None
    requests: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSource:
    """The source of a trace's column in a table.

    Args:
        column: The name of the column in the file.
        times: A factor for its numbers: 1000 for a column of whole CPUs.
    """

    column: str
    times: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRules:
    """How the jobs of a trace become Workloads.

    Args:
        rules: The rules; the first that matches a job counts.
        default: The rule for jobs that no other matches; None: an error.
        resources: The name in requests for each resource of the trace; None: it is not requested.
        gpu_fractions: How to count fractions of a GPU.
        scale: Which jobs to take, and how to stretch times.
        columns: For tables, the columns with other names in the file.
        begin: When time starts, in seconds by the clock of the file, for dates since 1970; earlier jobs are left out.
            None: with the first job.
        source: The position of the rules, for errors.

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
    begin: float | None = None
    source: Source = field(default_factory=Source, compare=False, repr=False)

    def all_rules(self) -> tuple[JobRule, ...]:
        """Return the rules in their order, the default last."""
        return self.rules if self.default is None else (*self.rules, self.default)

    def fields(self) -> frozenset[str]:
        """Return the fields of jobs that the rules use.

        Example:
            >>> sorted(TraceRules(default=JobRule(queue="{team}/jobs", when={"user": ("a*",)})).fields())
            ['team', 'user']
        """
        given = self.all_rules()
        return frozenset({row for rule in given for row in (*rule.when, *PLACEHOLDER.findall(rule.queue))})

    def rule_names(self) -> tuple[str, ...]:
        """Return the field path of each of `all_rules`."""
        names = [f"rules[{index}]" for index in range(len(self.rules))]
        return tuple(names if self.default is None else [*names, "default"])

    def error(self, message: str, field_path: str, remedy: str) -> ManifestError:
        """Return an error about a field of the rules, with its position."""
        file, line = self.source.file, self.source.line_of(field_path) or None
        return ManifestError([Problem(message, field=field_path, remedy=remedy, file=file, line=line)])
