"""The scheduling core of Kueue as a library: objects in, decisions out, nothing done.

Make an `Engine`, `apply` objects, ask for a `cycle`, read the `Decision`. Everything here is imported when it is first
used.
"""

from __future__ import annotations

from importlib import import_module

# Type checkers know this name. Importing `typing` would take most of the start-up, before Ctrl-C is handled.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from kueuecore import objects as objects
    from kueuecore.answers import Change as Change
    from kueuecore.answers import Explanation as Explanation
    from kueuecore.answers import Unblocking as Unblocking
    from kueuecore.answers import explain as explain
    from kueuecore.answers import unblock as unblock
    from kueuecore.configuration import Configuration as Configuration
    from kueuecore.configuration import FeatureGate as FeatureGate
    from kueuecore.configuration import feature_gates as feature_gates
    from kueuecore.decisions import Decision as Decision
    from kueuecore.decisions import Event as Event
    from kueuecore.decisions import Outcome as Outcome
    from kueuecore.decisions import Pending as Pending
    from kueuecore.decisions import PodSetAdmission as PodSetAdmission
    from kueuecore.decisions import Preemption as Preemption
    from kueuecore.decisions import ReplacedSlice as ReplacedSlice
    from kueuecore.decisions import Undecided as Undecided
    from kueuecore.decisions import WhatIf as WhatIf
    from kueuecore.decisions import WorkloadAdmission as WorkloadAdmission
    from kueuecore.engine import Applied as Applied
    from kueuecore.engine import Engine as Engine
    from kueuecore.errors import ConfigurationError as ConfigurationError
    from kueuecore.errors import EngineBrokenError as EngineBrokenError
    from kueuecore.errors import KueuecoreError as KueuecoreError
    from kueuecore.errors import ManifestError as ManifestError
    from kueuecore.errors import ObjectRef as ObjectRef
    from kueuecore.errors import OutOfTimeError as OutOfTimeError
    from kueuecore.errors import Problem as Problem
    from kueuecore.errors import UnknownObjectError as UnknownObjectError
    from kueuecore.errors import UnsettledError as UnsettledError
    from kueuecore.manifests import Manifest as Manifest
    from kueuecore.manifests import parse_manifests as parse_manifests
    from kueuecore.manifests import read_manifests as read_manifests
    from kueuecore.simulation import Happening as Happening
    from kueuecore.simulation import NodeLoss as NodeLoss
    from kueuecore.simulation import Operation as Operation
    from kueuecore.simulation import Run as Run
    from kueuecore.simulation import RunEnding as RunEnding
    from kueuecore.simulation import SimulatedCycle as SimulatedCycle
    from kueuecore.simulation import Step as Step
    from kueuecore.simulation import StepKind as StepKind
    from kueuecore.simulation import VirtualCluster as VirtualCluster
    from kueuecore.simulation import simulate as simulate
    from kueuecore.states import ClusterQueueState as ClusterQueueState
    from kueuecore.states import LocalQueueState as LocalQueueState
    from kueuecore.states import PendingWorkload as PendingWorkload
    from kueuecore.states import QuotaRow as QuotaRow
    from kueuecore.states import Stage as Stage
    from kueuecore.states import WorkloadState as WorkloadState
    from kueuecore.steady_state import Ending as Ending
    from kueuecore.steady_state import PreemptionLoop as PreemptionLoop
    from kueuecore.steady_state import Settled as Settled
    from kueuecore.steady_state import find_preemption_loop as find_preemption_loop
    from kueuecore.steady_state import settle as settle
    from kueuecore.submissions import Submissions as Submissions
    from kueuecore.topology import DomainCapacity as DomainCapacity
    from kueuecore.topology import PlacedPods as PlacedPods
    from kueuecore.topology import Placement as Placement
    from kueuecore.version import KUEUE_COMMIT as KUEUE_COMMIT
    from kueuecore.version import KUEUE_VERSION as KUEUE_VERSION
    from kueuecore.world import World as World

    __version__: str

# In reading order: the module that each public name comes from.
_MODULES = {
    "kueuecore.engine": ("Engine", "Applied"),
    "kueuecore.configuration": ("Configuration", "FeatureGate", "feature_gates"),
    "kueuecore.decisions": (
        "Decision",
        "WorkloadAdmission",
        "PodSetAdmission",
        "Preemption",
        "Pending",
        "Event",
        "ReplacedSlice",
        "Undecided",
        "WhatIf",
        "Outcome",
    ),
    "kueuecore.states": (
        "Stage",
        "WorkloadState",
        "PendingWorkload",
        "ClusterQueueState",
        "LocalQueueState",
        "QuotaRow",
    ),
    "kueuecore.topology": ("Placement", "PlacedPods", "DomainCapacity"),
    "kueuecore.steady_state": ("settle", "Settled", "Ending", "PreemptionLoop", "find_preemption_loop"),
    "kueuecore.answers": ("explain", "Explanation", "unblock", "Unblocking", "Change"),
    "kueuecore.submissions": ("Submissions",),
    "kueuecore.simulation": (
        "simulate",
        "Happening",
        "NodeLoss",
        "Operation",
        "Run",
        "RunEnding",
        "SimulatedCycle",
        "Step",
        "StepKind",
        "VirtualCluster",
    ),
    "kueuecore.world": ("World",),
    "kueuecore.manifests": ("Manifest", "read_manifests", "parse_manifests"),
    "kueuecore.errors": (
        "KueuecoreError",
        "ManifestError",
        "ConfigurationError",
        "UnknownObjectError",
        "EngineBrokenError",
        "Problem",
        "ObjectRef",
        "OutOfTimeError",
        "UnsettledError",
    ),
    "kueuecore.version": ("KUEUE_VERSION", "KUEUE_COMMIT"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [*_HOMES, "__version__", "objects"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("kueuecore.version").version()
    if name == "objects":
        return import_module("kueuecore.objects")
    if name not in _HOMES:
        raise AttributeError(f"module 'kueuecore' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
