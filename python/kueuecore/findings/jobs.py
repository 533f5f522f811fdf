"""Rules about jobs that Kueue does not manage, or whose pods it deletes (rules/10)."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import list_at, text_at, texts_at
from kueuecore._text import quoted
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.manifest_fields import quota_fields
from kueuecore.findings.topology_objects import KUEUE_GROUP
from kueuecore.jobs import Ignored
from kueuecore.jobs.context import JobsConfiguration
from kueuecore.jobs.pod import TOTAL_COUNT
from kueuecore.jobs.pod_group import by_precedence, is_runnable_or_succeeded
from kueuecore.manifests import Manifest

__all__ = ["excess_pods", "incomplete_pod_groups", "lost_tolerations", "unmanaged_jobs"]

_QUEUE = f"{KUEUE_GROUP}queue-name"
_GROUP = f"{KUEUE_GROUP}pod-group-name"
# Why a job is left alone although Kueue manages its kind and namespace: what it does is over, or another has it.
_AT_REST = (
    *("it has finished", "it is being deleted", "it has no replicas", "its Workload", "a CronJob makes"),
    *("the controller of", "Kueue has no integration"),
)
_NOT_MANAGED = ("managedJobsNamespaceSelector", "the integration", "Kueue does not know")


@rule("KC409", "unmanaged-job", Severity.WARNING, "a job that names a queue, but gets no Workload")
def unmanaged_jobs(facts: Facts) -> Iterator[Hit]:
    """It runs outside of all quota: its namespace, kind or version is not managed, or it makes no valid Workload.

    It is a note where no Configuration is given: the kind may be enabled elsewhere.
    """
    for ignored in facts.world.ignored:
        is_assumed = ignored.reason.startswith("the integration") and facts.configuration_manifest is None
        is_owned = ignored.reason.endswith("owns it, and has the Workload")
        names_queue = _QUEUE in texts_at(ignored.manifest.object, "metadata", "labels")
        if names_queue and not (is_owned or ignored.reason.startswith(_AT_REST) or _is_group(ignored)):
            yield hit(
                ignored.manifest,
                f"it gets no Workload, so it runs outside of all quota: {ignored.reason.partition(': name it')[0]}",
                field=f"metadata.labels[{_QUEUE}]",
                remedy=_remedy(ignored.reason, is_assumed=is_assumed),
                severity=Severity.NOTE if is_assumed else None,
            )


def _remedy(reason: str, *, is_assumed: bool) -> str:
    if reason.startswith("managedJobsNamespaceSelector"):
        return "label the namespace to match it, move the job to a managed namespace, or remove the label"
    if is_assumed:
        return "name it in integrations.frameworks of the Configuration, and check with that, or remove the label"
    if reason.startswith("the integration"):
        return "name it in integrations.frameworks of the Configuration, or remove the label"
    return "correct the job, or remove the label"


@rule("KC410", "incomplete-pod-group", Severity.WARNING, "a group of pods that gets no Workload, so that they wait")
def incomplete_pod_groups(facts: Facts) -> Iterator[Hit]:
    """Its pods are fewer than their pod-group-total-count says, or do not agree."""
    for ignored in facts.world.ignored:
        if _is_group(ignored) and not ignored.reason.startswith(_AT_REST):
            group = _group_of(ignored.manifest)
            is_short = "fewer runnable pods" in ignored.reason
            yield hit(
                ignored.manifest,
                f"group {quoted(group)} gets no Workload, so its pods stay gated: {ignored.reason}",
                field=f"metadata.annotations[{TOTAL_COUNT}]",
                remedy="create the other pods, or correct the count"
                if is_short
                else "give all pods of the group the same count and queue",
            )


@rule("KC411", "excess-pod", Severity.WARNING, "a pod that Kueue deletes, as its group has more than it counts")
def excess_pods(facts: Facts) -> Iterator[Hit]:
    """Kueue keeps those with its finalizer, then those that have started, then the oldest (rules/10 §5.4)."""
    configuration = JobsConfiguration() if facts.configuration is None else JobsConfiguration.of(facts.configuration)
    groups: dict[tuple[str, str], list[Manifest]] = {}
    without = {id(ignored.manifest) for ignored in facts.world.ignored}
    for manifest in facts.given:
        if text_at(manifest.object, "kind") == "Pod" and (name := _group_of(manifest)):
            groups.setdefault((text_at(manifest.object, "metadata", "namespace"), name), []).append(manifest)
    for (_, name), pods in groups.items():
        count = texts_at(pods[0].object, "metadata", "annotations").get(TOTAL_COUNT, "")
        running = [pod for pod in pods if is_runnable_or_succeeded(pod.object, configuration)]
        if not count.isdecimal() or any(id(pod) in without for pod in pods):
            continue
        for manifest in sorted(running, key=lambda pod: by_precedence(pod.object))[int(count) :]:
            yield hit(
                manifest,
                f"group {quoted(name)} has {len(running)} pods and counts {count}, so Kueue deletes this one",
                field=f"metadata.annotations[{TOTAL_COUNT}]",
                remedy="raise the count in all pods of the group, or leave this pod out",
            )


@rule("KC413", "lost-tolerations", Severity.WARNING, "a TrainJob that loses tolerations of its runtime when it starts")
def lost_tolerations(facts: Facts) -> Iterator[Hit]:
    """Kueue patches the tolerations of the flavor in, and the Trainer takes them instead of those of the runtime."""
    for key, job in facts.world.jobs.items():
        workload, state = facts.workloads.get(key), facts.states.get(key)
        if text_at(job.object, "kind") != "TrainJob" or workload is None or state is None:
            continue
        queue = facts.cluster_queues.get(state.cluster_queue or "")
        names = dict.fromkeys(field.flavor for field in quota_fields(queue)) if queue else {}
        given = {
            name: list_at(facts.flavors[name].object, "spec", "tolerations") for name in names if name in facts.flavors
        }
        for pod_set in list_at(workload.object, "spec", "podSets"):
            own = list_at(pod_set, "template", "spec", "tolerations")
            flavor = next(
                (
                    name
                    for name, assignment in given.items()
                    if assignment and any(one not in assignment for one in own)
                ),
                "",
            )
            if flavor:
                lost = [
                    text_at(toleration, "key") or "any taint" for toleration in own if toleration not in given[flavor]
                ]
                yield hit(
                    job,
                    f"in flavor {flavor}, which has tolerations, pod set {text_at(pod_set, 'name')} loses its own: "
                    f"{', '.join(lost)}",
                    field="spec.runtimeRef",
                    remedy="add them to the tolerations of the flavor",
                )
                break


def _is_group(ignored: Ignored) -> bool:
    """Whether it stands for a group of pods that Kueue would manage if they were right."""
    is_pod = text_at(ignored.manifest.object, "kind") == "Pod"
    return is_pod and bool(_group_of(ignored.manifest)) and not ignored.reason.startswith(_NOT_MANAGED)


def _group_of(manifest: Manifest) -> str:
    return texts_at(manifest.object, "metadata", "labels").get(_GROUP, "")
