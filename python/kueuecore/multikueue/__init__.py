"""MultiKueue: a manager that dispatches workloads to worker clusters, without its I/O (rules/06).

`Manager` takes watch events of the manager cluster and the workers, and returns what to create, delete and patch where.
A `Dispatcher` decides which workers get a copy. Kueue's own are here; any object with a method `nominate` and any
function of a `Dispatch` works too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.multikueue.adapters import Adapter, Status, SyncContext
    from kueuecore.multikueue.attempts import MAX_ATTEMPTS
    from kueuecore.multikueue.commands import (
        MANAGER,
        Command,
        Connect,
        ManagerProblem,
        ManagerTurn,
    )
    from kueuecore.multikueue.connections import ConnectionReason
    from kueuecore.multikueue.dispatcher_protocol import (
        Attempt,
        AttemptOutcome,
        Dispatch,
        Dispatcher,
        KnownCluster,
        Nomination,
        Overflowing,
        OverflowPolicy,
        Override,
        Recall,
        RecallingDispatcher,
    )
    from kueuecore.multikueue.functions import DispatchFunction, FunctionDispatcher
    from kueuecore.multikueue.kind_adapters import adapters_of
    from kueuecore.multikueue.kubeconfigs import connection_problem, kubeconfig_path_problem, kubeconfig_problem
    from kueuecore.multikueue.kueue_dispatchers import AllAtOnce, External, Incremental, dispatcher_of
    from kueuecore.multikueue.manager import Manager
    from kueuecore.multikueue.settings import MultiKueueSettings, WinCondition

__all__ = [
    "MANAGER",
    "MAX_ATTEMPTS",
    "Adapter",
    "AllAtOnce",
    "Attempt",
    "AttemptOutcome",
    "Command",
    "Connect",
    "ConnectionReason",
    "Dispatch",
    "DispatchFunction",
    "Dispatcher",
    "External",
    "FunctionDispatcher",
    "Incremental",
    "KnownCluster",
    "Manager",
    "ManagerProblem",
    "ManagerTurn",
    "MultiKueueSettings",
    "Nomination",
    "OverflowPolicy",
    "Overflowing",
    "Override",
    "Recall",
    "RecallingDispatcher",
    "Status",
    "SyncContext",
    "WinCondition",
    "adapters_of",
    "connection_problem",
    "dispatcher_of",
    "kubeconfig_path_problem",
    "kubeconfig_problem",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.multikueue.adapters": "Adapter Status SyncContext",
        "kueuecore.multikueue.attempts": "MAX_ATTEMPTS",
        "kueuecore.multikueue.commands": """
            MANAGER Command Connect ManagerProblem ManagerTurn
        """,
        "kueuecore.multikueue.connections": "ConnectionReason",
        "kueuecore.multikueue.dispatcher_protocol": """
            Attempt AttemptOutcome Dispatch Dispatcher KnownCluster Nomination Overflowing OverflowPolicy Override
            Recall RecallingDispatcher
        """,
        "kueuecore.multikueue.functions": "DispatchFunction FunctionDispatcher",
        "kueuecore.multikueue.kind_adapters": "adapters_of",
        "kueuecore.multikueue.kubeconfigs": "connection_problem kubeconfig_path_problem kubeconfig_problem",
        "kueuecore.multikueue.kueue_dispatchers": "AllAtOnce External Incremental dispatcher_of",
        "kueuecore.multikueue.manager": "Manager",
        "kueuecore.multikueue.settings": "MultiKueueSettings WinCondition",
    },
)
