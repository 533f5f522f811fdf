"""CustomResourceDefinitions that keep all fields: for job frameworks, and for Kueue where schemas do not matter."""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore._kinds import KINDS, KUEUE
from kueuecore.jobs import INTEGRATIONS
from kueuecore_apiserver.requests import Object

__all__ = ["framework_crds", "kueue_crds", "plain_crd"]

_BUILT_IN_GROUPS = ("", "apps", "batch")
_TRAINER = "trainer.kubeflow.org/v1alpha1"
# Kinds beside the jobs: the version, the kind, and whether it is namespaced.
_BESIDE_JOBS = (
    (_TRAINER, "TrainingRuntime", True),
    (_TRAINER, "ClusterTrainingRuntime", False),
    ("autoscaling.x-k8s.io/v1", "ProvisioningRequest", True),
)
_WITH_STATUS = ("AdmissionCheck", "ClusterQueue", "Cohort", "LocalQueue", "MultiKueueCluster", "Workload")


def plain_crd(
    api_version: str,
    kind: str,
    *,
    namespaced: bool = True,
    has_status: bool = True,
    short_names: Sequence[str] = (),
) -> Object:
    """Return a CustomResourceDefinition that keeps all fields of its objects.

    Args:
        api_version: Group and version.
        kind: The kind, from which the plural follows by the rules of English.
        namespaced: Whether its objects are namespaced.
        has_status: Whether the status is a subresource.
        short_names: Short names in commands.

    Example:
        >>> plain_crd("ray.io/v1", "RayJob")["metadata"]["name"]
        'rayjobs.ray.io'
    """
    group, _, version = api_version.partition("/")
    singular = kind.lower()
    plural = f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}{'es' * singular.endswith('s') or 's'}"
    served: Object = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    if has_status:
        served["subresources"] = {"status": {}}
    names = {"kind": kind, "plural": plural, "singular": singular, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {**names, "shortNames": list(short_names)} if short_names else names,
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [served],
        },
    }


def framework_crds() -> list[Object]:
    """Return the kinds of the job frameworks that Kueue supports, and the kinds that go with them."""
    jobs = [integration for (group, _), integration in INTEGRATIONS.items() if group not in _BUILT_IN_GROUPS]
    listed = [plain_crd(job.api_version, job.kind) for job in jobs]
    return [*listed, *(plain_crd(version, kind, namespaced=namespaced) for version, kind, namespaced in _BESIDE_JOBS)]


def kueue_crds() -> list[Object]:
    """Return Kueue's kinds in v1beta2, without their schemas."""
    short = {
        "ClusterQueue": ("cq",),
        "LocalQueue": ("queue", "lq"),
        "ResourceFlavor": ("flavor", "rf"),
        "Workload": ("wl",),
    }
    return [
        plain_crd(
            KUEUE,
            kind.name,
            namespaced=kind.is_namespaced,
            has_status=kind.name in _WITH_STATUS,
            short_names=short.get(kind.name, ()),
        )
        for kind in sorted(KINDS, key=lambda kind: kind.name)
        if kind.api_version == KUEUE
    ]
