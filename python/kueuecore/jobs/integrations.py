"""Lists all kinds of jobs that Kueue knows in one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kueuecore.jobs.app_wrapper import APP_WRAPPER
from kueuecore.jobs.batch_job import BATCH_JOB
from kueuecore.jobs.deployment import DEPLOYMENT
from kueuecore.jobs.integration import Integration
from kueuecore.jobs.job_set import JOB_SET
from kueuecore.jobs.kubeflow import KUBEFLOW_KINDS
from kueuecore.jobs.leader_worker_set import LEADER_WORKER_SET
from kueuecore.jobs.pod import POD
from kueuecore.jobs.pod_group import POD_GROUP
from kueuecore.jobs.ray import RAY_CLUSTER, RAY_JOB, RAY_SERVICE
from kueuecore.jobs.spark import SPARK_APPLICATION
from kueuecore.jobs.stateful_set import STATEFUL_SET
from kueuecore.jobs.train_job import TRAIN_JOB

__all__ = ["INTEGRATIONS", "with_kinds"]


class _Kinds(dict[tuple[str, str], Integration]):
    """Kinds of jobs by API group and kind."""

    def __init__(self, name: str, kinds: Iterable[Integration]) -> None:
        super().__init__({(kind.group, kind.kind): kind for kind in kinds})
        self._name = name

    def __repr__(self) -> str:
        # `help` prints this as the default of many arguments.
        return self._name


INTEGRATIONS: Mapping[tuple[str, str], Integration] = _Kinds(
    "INTEGRATIONS",
    (
        BATCH_JOB,
        JOB_SET,
        POD,
        POD_GROUP,
        DEPLOYMENT,
        STATEFUL_SET,
        LEADER_WORKER_SET,
        *KUBEFLOW_KINDS,
        RAY_CLUSTER,
        RAY_SERVICE,
        RAY_JOB,
        TRAIN_JOB,
        APP_WRAPPER,
        SPARK_APPLICATION,
    ),
)
"""The kinds of jobs that become Workloads, by API group and kind."""


def with_kinds(*own: Integration) -> Mapping[tuple[str, str], Integration]:
    """Return the kinds that Kueue knows and your own, for the functions that take `integrations`.

    Args:
        own: Your kinds; they replace those that Kueue knows.
    """
    names = ", ".join(integration.kind for integration in own)
    return _Kinds(f"with_kinds({names})", (*INTEGRATIONS.values(), *own))
