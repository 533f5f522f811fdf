"""Rules about AdmissionChecks that keep ClusterQueues inactive (rules/02 §5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._text import quoted
from kueuecore.findings.active_checks import activity_of, is_check, with_active_checks
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.labels import correction, names_of

__all__ = ["inactive_checks", "missing_checks"]


@rule("KC406", "missing-admission-check", Severity.ERROR, "a ClusterQueue whose AdmissionCheck does not exist")
def missing_checks(facts: Facts) -> Iterator[Hit]:
    """It makes the ClusterQueue inactive."""
    known = facts.of_kind("AdmissionCheck")
    for queue in facts.cluster_queues.values():
        for field, name in _named_checks(queue.object):
            if name not in known:
                yield hit(
                    queue,
                    f"Not found: {quoted(name)}: there is no such AdmissionCheck, so the ClusterQueue admits nothing",
                    field=field,
                    remedy=correction(name, known, kind="AdmissionCheck"),
                )


@rule("KC415", "inactive-check", Severity.NOTE, "an AdmissionCheck that is not active, which a ClusterQueue needs")
def inactive_checks(facts: Facts) -> Iterator[Hit]:
    """In a run its ClusterQueues admit nothing until its controller says that it is active.

    Here workloads are tried as if it were, as manifests have no status.
    """
    queues: dict[str, list[str]] = {}
    for name, queue in facts.cluster_queues.items():
        for _, needed in _named_checks(queue.object):
            queues.setdefault(needed, []).append(name)
    given = replace(facts.world, manifests=facts.given)
    world = with_active_checks(given, now=facts.now, assumes_active=facts.assumes_active_checks)
    checks = {
        text_at(manifest.object, "metadata", "name"): manifest for manifest in world.manifests if is_check(manifest)
    }
    for name, check in checks.items():
        activity = activity_of(check.object)
        if name not in queues or text_at(activity, "status") == "True":
            continue
        kept = f"ClusterQueue{'s' * (len(queues[name]) > 1)} {names_of(queues[name])} inactive"
        if activity:
            message = f"it is not active, which keeps {kept}: {text_at(activity, 'message') or 'it does not say why'}"
            remedy = "give its controller what it needs"
        else:
            message = f"it has no condition Active, which keeps {kept} in `kueuecore run`"
            remedy = "pass --assume-checks-active if its controller runs in the cluster"
        yield hit(check, message, field="spec.controllerName", remedy=remedy)


def _named_checks(queue: JsonObject) -> Iterator[tuple[str, str]]:
    """The AdmissionChecks that a ClusterQueue names, each with its field."""
    strategy = list_at(queue, "spec", "admissionChecksStrategy", "admissionChecks")
    if strategy:
        path = "spec.admissionChecksStrategy.admissionChecks"
        named = [(f"{path}[{index}].name", object_at(check).get("name")) for index, check in enumerate(strategy)]
    else:
        # Only v1beta1 has this field.
        plain = list_at(queue, "spec", "admissionChecks") if text_at(queue, "apiVersion").endswith("/v1beta1") else []
        named = [(f"spec.admissionChecks[{index}]", name) for index, name in enumerate(plain)]
    yield from ((field, name) for field, name in named if isinstance(name, str))
