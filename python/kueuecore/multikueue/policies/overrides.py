"""Per-worker changes to jobs as JSON patches, for example to use a local image registry.

Kueue copies jobs unchanged. Here, a worker gets them patched; changes to a pod template are applied to that of the
Workload, too, so that both match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._patches import merge_patch
from kueuecore.jobs import Surroundings, integration_of
from kueuecore.multikueue.dispatcher_protocol import Dispatch, Dispatcher, Nomination, Override, Recall
from kueuecore.multikueue.policies.json_patch import JsonPatchError, apply_json_patch, check_json_patch
from kueuecore.multikueue.policies.wrapping import inner_recall

__all__ = ["Overridden", "check_override", "override_of"]

# The fields that identify an object, with everything that contains them.
_IDENTITY = ("", "/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace")


@dataclass(frozen=True, slots=True)
class Overridden:
    """Patches jobs for some workers. A worker whose patch cannot be applied is left out and reported.

    Args:
        inner: The dispatcher that chooses.
        patches: A JSON patch (RFC 6902) of the job for each worker that needs one.

    Raises:
        JsonPatchError: A patch is malformed, or changes the identity of the job: the manager would never find one of
            another name, namespace or kind. Or `kueuecore[multikueue]` is not installed.
    """

    inner: Dispatcher
    patches: Mapping[str, Sequence[JsonObject]]

    def __post_init__(self) -> None:
        for operations in self.patches.values():
            check_override(operations)

    @property
    def waits_for_checks(self) -> bool:
        """The setting of the inner dispatcher."""
        return self.inner.waits_for_checks

    def nominate(self, dispatch: Dispatch) -> Nomination:
        """Nominate what the inner dispatcher chooses, with the overrides of these workers."""
        nomination = self.inner.nominate(dispatch)
        overrides, problems = dict(nomination.overrides), [nomination.problem] if nomination.problem else []
        failed = set()
        for name in nomination.clusters:
            if name not in self.patches:
                continue
            try:
                overrides[name] = override_of(dispatch.job, dispatch.workload, self.patches[name])
            except JsonPatchError as error:
                problems.append(f"cluster {name}: its override does not fit the job: {error}")
                failed.add(name)
        kept = tuple(name for name in nomination.clusters if name not in failed)
        return replace(nomination, clusters=kept, overrides=overrides, problem="; ".join(problems))

    def recall(self, dispatch: Dispatch, cluster: str) -> Recall:
        """Leave the decision to the inner dispatcher."""
        return inner_recall(self, dispatch, cluster)


def check_override(operations: Sequence[JsonObject]) -> None:
    """Check whether operations form a valid patch that keeps the identity of an object.

    Raises:
        JsonPatchError: They do not, or change name, namespace or kind; or the library is not installed.
    """
    check_json_patch(operations)
    for operation in operations:
        written = [text_at(operation, "path")] if operation.get("op") != "test" else []
        written += [text_at(operation, "from")] if operation.get("op") == "move" else []
        for path in written:
            if path in _IDENTITY:
                raise JsonPatchError(f"{path or 'the whole job'} cannot be changed: the manager would not find the job")


def override_of(job: JsonObject, workload: JsonObject, operations: Sequence[JsonObject]) -> Override:
    """Turn a JSON patch of a job into an override, for the job and for the pod templates of its Workload.

    Args:
        job: The job on the manager.
        workload: Its Workload.
        operations: The JSON patch.

    Raises:
        JsonPatchError: It cannot be applied.
    """
    after = apply_json_patch(job, operations)
    templates = _template_pointers(job)
    pod_sets: list[JsonValue] = []
    for pod_set in list_at(workload, "spec", "podSets"):
        pointer = templates.get(text_at(pod_set, "name"))
        inside = [] if pointer is None else [it for each in operations if (it := _inside(each, pointer)) is not None]
        template = apply_json_patch(object_at(pod_set, "template"), inside)
        pod_sets.append({**object_at(pod_set), "template": template})
    patch: JsonObject = {"spec": {"podSets": pod_sets}} if pod_sets != list_at(workload, "spec", "podSets") else {}
    return Override(workload=patch, job=object_at(merge_patch(job, after)))


def _template_pointers(job: JsonObject) -> dict[str, str]:
    """Return where the pod template of each pod set is in a job, as a JSON pointer."""
    integration = integration_of(job)
    if integration is None:
        return {}
    pod_sets = integration.pod_sets(job, Surroundings())
    return {
        pod_set.name.lower(): "".join(f"/{step}" for step in pod_set.path)
        for pod_set in pod_sets
        if pod_set.path is not None
    }


def _inside(operation: JsonObject, pointer: str) -> JsonObject | None:
    """Rewrite an operation on a job for the template at a pointer; None if it is about something else."""
    moved: JsonObject = dict(operation)
    for key in ("path", "from"):
        if key not in operation:
            continue
        path = text_at(operation, key)
        if path != pointer and not path.startswith(f"{pointer}/"):
            return None
        moved[key] = path[len(pointer) :]
    return moved
