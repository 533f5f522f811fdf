"""Simulates a cluster in virtual time: workloads arrive, checks are decided, jobs run, are evicted and end.

`simulate` plays a whole run, with millions of workloads; a `VirtualCluster` advances step by step, several of them
side by side if you like. Both use the engine's clock.
"""

from kueuecore.simulation.checkpoint import Checkpoint
from kueuecore.simulation.cluster import VirtualCluster
from kueuecore.simulation.copies import Copies
from kueuecore.simulation.run import (
    Domain,
    Happening,
    NodeLoss,
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
