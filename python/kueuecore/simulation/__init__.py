"""Simulates a cluster in virtual time: workloads arrive, checks are decided, jobs run, are evicted and end.

`simulate` plays a whole run, with millions of workloads; a `VirtualCluster` advances step by step, several of them
side by side if you like. Both use the engine's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.simulation.checkpoint import Checkpoint
    from kueuecore.simulation.cluster import VirtualCluster
    from kueuecore.simulation.copies import Copies
    from kueuecore.simulation.job_plan import JobPlan, NodeLoss
    from kueuecore.simulation.left_out import LeftOut
    from kueuecore.simulation.run import (
        Domain,
        Happening,
        Operation,
        Progress,
        Run,
        RunEnding,
        SimulatedCycle,
        Step,
        StepKind,
    )
    from kueuecore.simulation.whole_run import simulate

__all__ = [
    "Checkpoint",
    "Copies",
    "Domain",
    "Happening",
    "JobPlan",
    "LeftOut",
    "NodeLoss",
    "Operation",
    "Progress",
    "Run",
    "RunEnding",
    "SimulatedCycle",
    "Step",
    "StepKind",
    "VirtualCluster",
    "simulate",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.simulation.checkpoint": "Checkpoint",
        "kueuecore.simulation.cluster": "VirtualCluster",
        "kueuecore.simulation.copies": "Copies",
        "kueuecore.simulation.job_plan": "JobPlan NodeLoss",
        "kueuecore.simulation.left_out": "LeftOut",
        "kueuecore.simulation.run": "Domain Happening Operation Progress Run RunEnding SimulatedCycle Step StepKind",
        "kueuecore.simulation.whole_run": "simulate",
    },
)
