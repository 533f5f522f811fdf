"""The ClusterTrainingRuntimes that the Trainer ships, as far as Kueue reads them.

Clusters with the Trainer have them, but people seldom keep them among their manifests. What a
pod runs (image, command, volumes) does not matter to a Workload's quota and is left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore.jobs.train_job import API_VERSION, STEP_LABEL

__all__ = ["RELEASE", "SHIPPED_RUNTIMES", "missing_runtimes"]

RELEASE = "Kubeflow Trainer 2.3"
"""Their release: the one that Kueue is built with (rules/10 §5.11)."""

_TRAINER, _DATASET, _MODEL = "trainer", "dataset-initializer", "model-initializer"
_KIND = "ClusterTrainingRuntime"


def _job(name: str, step: str, resources: JsonObject | None = None) -> JsonObject:
    """A replicated job with one container; that of an initializer is named as its step, that of a node `node`."""
    container: JsonObject = {"name": step if step in (_DATASET, _MODEL) else "node"}
    if resources:
        container["resources"] = resources
    labels: JsonObject = {STEP_LABEL: step} if step else {}
    pods: JsonObject = {"spec": {"containers": [container]}}
    return {"name": name, "template": {"metadata": {"labels": labels}, "spec": {"template": pods}}}


def _spec(policy: JsonObject, *jobs: JsonObject) -> JsonObject:
    listed: list[JsonValue] = [*jobs]
    return {"mlPolicy": {"numNodes": 1, **policy}, "template": {"spec": {"replicatedJobs": listed}}}


_NODE, _DATA = _job("node", _TRAINER), _job(_DATASET, _DATASET)
_MPI = _spec({"mpi": {"runLauncherAsNode": True}}, _job("node", ""), _job("launcher", _TRAINER))
_TUNE = _spec({"torch": {}}, _DATA, _job(_MODEL, _MODEL), _job("node", _TRAINER, {"limits": {"nvidia.com/gpu": 2}}))
SHIPPED_RUNTIMES: dict[str, JsonObject] = {
    "torch-distributed": _spec({"torch": {}}, _NODE),
    "torch-distributed-with-cache": _spec({"torch": {}}, _DATA, _NODE),
    "jax-distributed": _spec({"jax": {}}, _NODE),
    "xgboost-distributed": _spec({"xgboost": {}}, _NODE),
    "deepspeed-distributed": _MPI,
    "mlx-distributed": _MPI,
    "torchtune-llama3.2-1b": _TUNE,
    "torchtune-llama3.2-3b": _TUNE,
    "torchtune-qwen2.5-1.5b": _TUNE,
}
"""Their specs, by name."""


def missing_runtimes(objects: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """Return the shipped runtimes that TrainJobs among some objects name, and that are not among them.

    Args:
        objects: Objects of any kinds.

    Example:
        >>> spec = {"runtimeRef": {"name": "torch-distributed"}}
        >>> job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "spec": spec}
        >>> [it["metadata"] for it in missing_runtimes([job])]
        [{'name': 'torch-distributed'}]
    """
    named: dict[str, None] = {}
    there: set[str] = set()
    for plain in objects:
        if text_at(plain, "apiVersion") != API_VERSION:
            continue
        kind, reference = text_at(plain, "kind"), object_at(plain, "spec", "runtimeRef")
        if kind == _KIND:
            there.add(text_at(plain, "metadata", "name"))
        elif kind == "TrainJob" and (text_at(reference, "kind") or _KIND) == _KIND:
            named[text_at(reference, "name")] = None
    return tuple(
        {
            "apiVersion": API_VERSION,
            "kind": _KIND,
            "metadata": {"name": name},
            "spec": copy.deepcopy(SHIPPED_RUNTIMES[name]),
        }
        for name in named
        if name in SHIPPED_RUNTIMES and name not in there
    )
