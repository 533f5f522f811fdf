"""Admits one object as an API server with Kueue's webhooks does: the object as stored, warnings, or a refusal.

Use it to serve Kueue's webhooks, to check manifests before you apply them, or to make an in-memory API server strict
(`kueuecore.api_server.ApiServer(webhooks=...)`). None of it needs a server.

Example:
    >>> job = {"apiVersion": "batch/v1", "kind": "Job",
    ...        "metadata": {"name": "sum", "namespace": "lab", "labels": {"kueue.x-k8s.io/queue-name": "jobs"}},
    ...        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "sum"}]}}}}
    >>> stored = admit(job)
    >>> stored.object["spec"]["suspend"], stored.warnings
    (True, ())
    >>> job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "all jobs"
    >>> try:
    ...     admit(job)
    ... except RefusedError as refused:
    ...     print(refused.code, refused.reason, str(refused)[:49])
    403 Forbidden admission webhook "vjob.kb.io" denied the request
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kueuecore import _core
from kueuecore._arguments import instance, mapping
from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore._text import shortened, shown
from kueuecore.api_server import RefusedError
from kueuecore.configuration import Configuration
from kueuecore.errors import Problem
from kueuecore.jobs import INTEGRATIONS, Integration, JobsConfiguration
from kueuecore.jobs.context import Surroundings, group_of
from kueuecore.jobs.jobs_to_workloads import surroundings_of
from kueuecore.jobs.lifecycle import known_integration
from kueuecore.jobs.pod_group import POD_GROUP
from kueuecore.jobs.webhooks import Refuser, verdict_on_change, verdict_on_creation
from kueuecore.manifests import Manifest, ManifestLike, as_manifest, object_ref, to_json_lines

__all__ = ["RefusedError", "Stored", "admit"]

_KUEUE_GROUP = "kueue.x-k8s.io"
_SERVED = (f"{_KUEUE_GROUP}/v1beta2", f"{_KUEUE_GROUP}/v1beta1")
# The only kind whose older version is not marked as deprecated.
_NOT_DEPRECATED = "MultiKueueConfig"
_REASONS = {
    "Invalid value": "FieldValueInvalid",
    "Duplicate value": "FieldValueDuplicate",
    "Unsupported value": "FieldValueNotSupported",
    "Required value": "FieldValueRequired",
    "Forbidden": "FieldValueForbidden",
    "Not found": "FieldValueNotFound",
    "Too many": "FieldValueTooMany",
    "Too long": "FieldValueTooLong",
}


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as the server stores it.

    Args:
        object: The object with all defaults, in the newest version, without what the server itself adds (UID, times,
            versions).
        warnings: The server's warnings.
    """

    object: JsonObject
    warnings: tuple[str, ...] = ()


def admit(
    new: ManifestLike,
    *,
    old: ManifestLike | None = None,
    around: Iterable[ManifestLike] | Surroundings = (),
    configuration: Configuration | None = None,
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
) -> Stored:
    """Admit or refuse an object as an API server with Kueue's webhooks does, on creation or as an update of `old`.

    Kueue's own kinds go through their schemas and webhooks; jobs of enabled integrations through their webhooks, and
    through their schemas as far as Kueue reads them. Objects of other kinds are stored unchanged.

    Args:
        new: The object.
        old: The stored object, for an update.
        around: Related objects, in any order, read only for jobs: LocalQueues, ClusterQueues and
            AdmissionChecks, WorkloadPriorityClasses named `default`, Namespaces, owners, runtimes of TrainJobs, and
            Workloads of StatefulSets. If you ask about many jobs, `Surroundings` reads them once.
        configuration: Kueue's Configuration; by default that of a new installation.
        integrations: The kinds of jobs.

    Raises:
        RefusedError: The server refuses it: 422 by the schema, 403 by a webhook, 404 if Kueue has no such kind or
            version.
        ManifestError: A server could not have stored `old` or an object in `around`.
        ValueError: `old` is another object.

    Kueue: `pkg/webhooks`, `pkg/controller/jobframework/base_webhook.go`, `config/components/crd`.
    """
    manifest = as_manifest(new, "new")
    before = None if old is None else as_manifest(old, "old").object
    settings = Configuration() if configuration is None else instance("configuration", configuration, Configuration)
    if before is not None:
        _require_one_object(before, manifest.object)
    api_version, kind = text_at(manifest.object, "apiVersion"), text_at(manifest.object, "kind")
    if group_of(api_version) == _KUEUE_GROUP:
        return _own_kind(manifest, before, settings)
    integration = mapping("integrations", integrations).get((group_of(api_version), kind))
    if integration is None or integration is POD_GROUP or integration.api_version != api_version:
        return Stored(manifest.object)
    if isinstance(around, Surroundings):
        surroundings = around
    else:
        surroundings = surroundings_of(around, JobsConfiguration.of(configuration), integrations)
    if before is None:
        verdict = verdict_on_creation(manifest.object, integration, surroundings)
    else:
        known_integration(before, integrations)
        verdict = verdict_on_change(before, manifest.object, integration, surroundings)
    match verdict.refused_by:
        case None:
            return Stored(verdict.job, verdict.warnings)
        case Refuser.SCHEMA:
            causes = [(_reason(problem), problem) for problem in verdict.problems]
            raise _invalid(manifest, causes)
        case Refuser.MUTATING_WEBHOOK:
            raise _denied(f"m{kind.lower()}.kb.io", manifest, verdict.problems)
        case Refuser.VALIDATING_WEBHOOK:
            raise _denied(f"v{kind.lower()}.kb.io", manifest, verdict.problems)


def _require_one_object(old: JsonObject, new: JsonObject) -> None:
    refs = [replace(entry, namespace=entry.namespace or "default") for entry in map(object_ref, (old, new))]
    uids = {uid for entry in (old, new) if (uid := text_at(entry, "metadata", "uid"))}
    if refs[0] != refs[1] or len(uids) > 1:
        raise ValueError(f"old and new must be the same object, not {refs[0]} and {refs[1]}")


def _own_kind(manifest: Manifest, old: JsonObject | None, configuration: Configuration) -> Stored:
    api_version, kind = text_at(manifest.object, "apiVersion"), text_at(manifest.object, "kind")
    before = None if old is None else (text_at(old, "apiVersion"), to_json_lines([old]))
    answer = None
    if api_version in _SERVED and kind.isascii():
        answer = _core.admit(api_version, kind, to_json_lines([manifest]), before, configuration._core)
    if answer is None:
        raise RefusedError(404, "the server could not find the requested resource")
    stored, is_by_webhook, causes, ignored = answer
    if stored is None and is_by_webhook:
        raise _denied(f"v{kind.lower()}.kb.io", manifest, [problem for _, problem in causes])
    if stored is None:
        raise _invalid(manifest, causes)
    is_deprecated = api_version != _SERVED[0] and kind != _NOT_DEPRECATED
    deprecated = ("This version is deprecated. Use v1beta2 instead.",) if is_deprecated else ()
    return Stored(stored, (*deprecated, *(message for _, message in ignored)))


def _invalid(manifest: Manifest, causes: Sequence[tuple[str, Problem]]) -> RefusedError:
    """Return the API server's answer to an object that violates its schema."""
    plain = manifest.object
    group, kind = group_of(text_at(plain, "apiVersion")), text_at(plain, "kind")
    name = text_at(plain, "metadata", "name")
    listed: list[JsonValue] = [
        {"reason": reason, "message": problem.message, "field": problem.field} for reason, problem in causes
    ]
    details: JsonObject = {"name": name, "group": group, "kind": kind, "causes": listed}
    about = f'{".".join(filter(None, (kind, group)))} "{name}"'
    problems = [problem for _, problem in causes]
    return RefusedError(
        422, f"{about} is invalid: {_joined(problems)}", details=details, problems=_placed(manifest, problems)
    )


def _denied(webhook: str, manifest: Manifest, problems: Sequence[Problem]) -> RefusedError:
    """Return the API server's answer when a webhook refuses: one message, no causes."""
    message = f'admission webhook "{webhook}" denied the request: {_joined(problems)}'
    return RefusedError(403, message, problems=_placed(manifest, problems))


def _joined(problems: Sequence[Problem]) -> str:
    """Join errors as Go's aggregates do, each once."""
    texts = list(
        dict.fromkeys(
            ": ".join(filter(None, (shortened(problem.field), shown(problem.message)))) for problem in problems
        )
    )
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _placed(manifest: Manifest, problems: Sequence[Problem]) -> tuple[Problem, ...]:
    return tuple(manifest.locate(replace(problem, object=object_ref(manifest.object))) for problem in problems)


def _reason(problem: Problem) -> str:
    """Return the reason of a cause, from the first words of its message."""
    return _REASONS.get(problem.message.partition(":")[0], "FieldValueInvalid")
