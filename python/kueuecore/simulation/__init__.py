"""Virtual time: workloads come, their checks are decided on, jobs run, are evicted and end.

`simulate` plays a whole run, with workloads by the million; `VirtualCluster` goes step by step, several of them side by
side. Both are on one clock, that of the engine.
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
