"""Requests capacity by ProvisioningRequests, and sets checks accordingly (rules/07 §4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore._kinds import KUEUE
from kueuecore.checks import Activity, CheckAnswer, CheckController, CheckState, Review, WorkloadKey, check_states
from kueuecore.configuration import Configuration
from kueuecore.decisions import Event
from kueuecore.errors import ObjectRef, UnknownObjectError
from kueuecore.jobs import StartError
from kueuecore.manifests import object_ref
from kueuecore.objects import ProvisioningRequestConfig
from kueuecore.provisioning.answers import Current, answer_of, is_admitted, is_true
from kueuecore.provisioning.config import CONTROLLER_NAME, config_of, reference_problem
from kueuecore.provisioning.pod_sets import (
    UnassignedPodSetError,
    is_request_needed,
    is_same_request,
    requested_pods,
    template_of,
)
from kueuecore.provisioning.requests import (
    API_VERSION,
    KIND,
    TEMPLATE_PREFIX,
    RequestCondition,
    attempt_of,
    is_as_configured,
    parameters_of,
    request_name,
    template_name,
    workload_of,
)
from kueuecore.times import backoff_ns
from kueuecore.writes import Answer, Verb, Write

__all__ = ["ProvisioningController"]

_CONFIG, _FLAVOR, _TEMPLATE = "ProvisioningRequestConfig", "ResourceFlavor", "PodTemplate"
_MANAGED = "kueue.x-k8s.io/managed"
# Bytes of an event's message, and of a check's.
_MAX_EVENT, _MAX_MESSAGE = 1024, 32 * 1024
# After the n-th refusal in a row: twice as long as before, as in a controller's queue.
_FIRST_DELAY_NS, _MAX_DELAY_NS = 5_000_000, 1_000_000_000_000


@dataclass(slots=True)
class _Of:
    """What is known about one workload.

    Args:
        requests: Its ProvisioningRequests by name.
        templates: Names of the PodTemplates that exist or are being created.
        sent: The open writes, by request.
        entries: The states of its checks at the last review.
        n_refused: How often in a row a write was refused.
    """

    requests: dict[str, JsonObject] = field(default_factory=dict)
    templates: set[str] = field(default_factory=set)
    sent: set[tuple[Verb, str]] = field(default_factory=set)
    entries: dict[str, CheckAnswer] = field(default_factory=dict)
    n_refused: int = 0


class ProvisioningController(CheckController):
    """Requests capacity by ProvisioningRequests, which a cluster autoscaler or another provider answers.

    It creates requests and PodTemplates, deletes those no longer needed, and sets the checks to what the requests
    report. PodTemplates are deleted along with their requests; Kueue makes the request their owner once it exists, and
    leaves the rest to the garbage collector.

    Args:
        deletes_on_eviction: Whether the requests of an evicted workload are deleted: feature gate
            `CleanupProvisioningRequestsOnEviction`, on by default.
        skips_empty_pod_sets: Whether no capacity is requested for pod sets without pods, as since Kueue 0.18.5.
        clears_messages: Whether an empty message replaces an older one of a check, as since Kueue 0.18.5.
        enforces_templates: Whether a PodTemplate that was there before with other contents is replaced: feature gate
            `EnforceProvisioningPodTemplateContents`, on by default. For that, PodTemplates are watched.
        seed: The seed of the random part of delays; without one there is none.

    Example:
        >>> controller = ProvisioningController()
        >>> check = {
        ...     "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "capacity"},
        ...     "spec": {
        ...         "controllerName": "kueue.x-k8s.io/provisioning-request",
        ...         "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "dws"},
        ...     },
        ... }
        >>> controller.observe(check, now=0)
        ()
        >>> controller.activity(check, now=0)
        Activity(is_active=False, reason='BadParametersRef', \
message='provisioningrequestconfigs.kueue.x-k8s.io "dws" not found')
    """

    controller_name = CONTROLLER_NAME
    kinds: Mapping[str, tuple[str, str]] = {
        _CONFIG: (KUEUE, "provisioningrequestconfigs"),
        _FLAVOR: (KUEUE, "resourceflavors"),
        KIND: (API_VERSION, "provisioningrequests"),
    }

    def __init__(
        self,
        *,
        deletes_on_eviction: bool = True,
        skips_empty_pod_sets: bool = True,
        clears_messages: bool = True,
        enforces_templates: bool = True,
        seed: int | None = None,
    ) -> None:
        if enforces_templates:
            self.kinds = {**self.kinds, _TEMPLATE: ("v1", "podtemplates")}
        self._enforces_templates = enforces_templates
        self._deletes_on_eviction = deletes_on_eviction
        self._skips_empty = skips_empty_pod_sets
        self._clears_messages = clears_messages
        self._seed = seed
        self._configs: dict[str, ProvisioningRequestConfig] = {}
        self._flavors: dict[str, JsonObject] = {}
        self._checks: dict[str, JsonObject] = {}
        self._workloads: dict[WorkloadKey, _Of] = {}
        # Workloads with refused writes, and until when nothing more is created for them.
        self._refused: dict[WorkloadKey, int] = {}
        self._owners: dict[ObjectRef, WorkloadKey] = {}
        # The PodTemplates that were seen, whoever created them.
        self._templates: dict[ObjectRef, JsonObject] = {}

    @classmethod
    def of(cls, configuration: Configuration | None) -> Self:
        """Return the controller of the Kueue that a Configuration is for."""
        if configuration is None:
            return cls()
        return cls(
            deletes_on_eviction=configuration.is_enabled("CleanupProvisioningRequestsOnEviction"),
            skips_empty_pod_sets=configuration.has_change("ProvisioningSkipsEmptyPodSets"),
            clears_messages=configuration.has_change("ProvisioningMessageCleared"),
            enforces_templates=configuration.is_enabled("EnforceProvisioningPodTemplateContents"),
        )

    # Observed objects.

    def observe(self, manifest: JsonObject, *, now: int) -> Collection[WorkloadKey]:
        """Take in an AdmissionCheck, or an object of its `kinds`.

        Raises:
            ManifestError: A config is not valid. Nothing has changed.
        """
        ref = object_ref(manifest)
        match ref.kind:
            case "AdmissionCheck":
                if text_at(manifest, "spec", "controllerName") != self.controller_name:
                    return self._users(ref.name) if self._checks.pop(ref.name, None) else ()
                self._checks[ref.name] = manifest
                return self._users(ref.name)
            case "ProvisioningRequestConfig":
                self._configs[ref.name] = config_of(manifest)
                return self._users_of_config(ref.name)
            case "ResourceFlavor":
                self._flavors[ref.name] = manifest
            case "PodTemplate" if self._enforces_templates and ref.name.startswith(TEMPLATE_PREFIX):
                self._templates[ref] = manifest
            case "ProvisioningRequest":
                key = workload_of(manifest)
                of = self._workloads.setdefault(key, _Of())
                of.requests[ref.name] = manifest
                of.sent.discard((Verb.CREATE, ref.name))
                of.n_refused = 0
                self._refused.pop(key, None)
                self._owners[ref] = key
                return (key,)
        return ()

    def forget(self, deleted: ObjectRef, *, now: int) -> Collection[WorkloadKey]:
        """Take in the deletion of one of these or of a Workload, whose requests are deleted too."""
        match deleted.kind:
            case "AdmissionCheck":
                return self._users(deleted.name) if self._checks.pop(deleted.name, None) else ()
            case "ProvisioningRequestConfig":
                return self._users_of_config(deleted.name) if self._configs.pop(deleted.name, None) else ()
            case "ResourceFlavor":
                self._flavors.pop(deleted.name, None)
            case "PodTemplate":
                self._templates.pop(deleted, None)
            case "Workload":
                self._forget((deleted.namespace, deleted.name))
            case "ProvisioningRequest":
                key = self._owners.pop(deleted, ("", ""))
                if (of := self._workloads.get(key)) is not None:
                    of.requests.pop(deleted.name, None)
                    of.sent.discard((Verb.DELETE, deleted.name))
                    return (key,)
        return ()

    def activity(self, check: JsonObject, *, now: int) -> Activity | None:
        """Return whether a check is active: its config exists. `None` if the status stays, as in Kueue."""
        problem, name = reference_problem(check), text_at(check, "spec", "parameters", "name")
        if not problem and name not in self._configs:
            problem = f'provisioningrequestconfigs.kueue.x-k8s.io "{name}" not found'
        conditions = (
            condition for condition in list_at(check, "status", "conditions") if text_at(condition, "type") == "Active"
        )
        if text_at(next(conditions, None), "status") == ("False" if problem else "True"):
            return None
        if problem:
            return Activity(False, "BadParametersRef", problem)
        return Activity(True, "Active", "The admission check is active")

    def requests_of(self, workload: WorkloadKey) -> tuple[JsonObject, ...]:
        """Return the ProvisioningRequests of a workload, by name."""
        of = self._workloads.get(workload, _Of())
        return tuple(of.requests[name] for name in sorted(of.requests))

    # Reviews.

    def review(self, workload: JsonObject, checks: Sequence[str], *, now: int) -> Review:
        """Return what a workload's requests mean for it, and what to request (rules/07 §4.2)."""
        held = {
            text_at(condition, "type")
            for condition in list_at(workload, "status", "conditions")
            if text_at(condition, "status") == "True"
        }
        ref = object_ref(workload)
        key = (ref.namespace, ref.name)
        if not held & {"QuotaReserved", "Finished", "Evicted"} or not (checks or key in self._workloads):
            return Review()
        of = self._workloads.setdefault(key, _Of())
        if "Finished" in held or ("Evicted" in held and self._deletes_on_eviction):
            if "Finished" in held and not of.requests:
                self._forget(key)
            return Review(writes=self._deletions(of, key, keep=()))
        if "Evicted" in held:
            return Review()
        of.entries = {name: CheckAnswer.of(entry) for name, entry in check_states(workload).items()}
        if any(reference_problem(self._checks[name]) for name in checks):
            # Kueue retries forever without doing anything.
            return Review()
        try:
            return self._reviewed(workload, of, key, self._current(workload, of, checks), now)
        except UnassignedPodSetError:
            return Review()

    def refused(self, write: Write, answer: Answer, *, now: int) -> Review:
        """Take in a refused write: the check reports it, and it is retried after a pause."""
        of = self._workloads.get(write.workload)
        if of is None:
            return Review()
        # The writes that were to follow were not made either.
        of.sent.clear()
        if write.object.kind == _TEMPLATE and not answer.is_conflict:
            of.templates.discard(write.object.name)
        of.n_refused += 1
        pause_ns = backoff_ns(of.n_refused, first_ns=_FIRST_DELAY_NS, longest_ns=_MAX_DELAY_NS)
        self._refused[write.workload] = now + pause_ns
        entry = of.entries.get(write.check)
        if write.verb is not Verb.CREATE or answer.is_conflict or entry is None:
            return Review()
        return self._failed(write.object, answer.error, write.workload, entry)

    def next_wake(self, *, after: int) -> int | None:
        """Return when the next refused write is retried."""
        return min((time for time in self._refused.values() if time > after), default=None)

    def due(self, now: int) -> Collection[WorkloadKey]:
        """Return the workloads with refused writes to retry now."""
        due = tuple(key for key, time in self._refused.items() if time <= now)
        for key in due:
            del self._refused[key]
        return due

    def _reviewed(
        self, workload: JsonObject, of: _Of, key: WorkloadKey, current: dict[str, Current], now: int
    ) -> Review:
        answers = self._answers(workload, of, current)
        changed = tuple(answer for name, answer in answers.items() if answer != of.entries[name])
        reported = [_event(key, "AdmissionCheckUpdated", _update(of.entries[item.name], item)) for item in changed]
        events = [
            event for event, item in zip(reported, changed, strict=True) if item.state != of.entries[item.name].state
        ]
        kept = [part.request for part in current.values() if part.request is not None]
        writes = list(self._deletions(of, key, keep=kept))
        for name, other in current.items():
            creation = self._creation(workload, of, other, answers.get(name, of.entries[name]), now)
            if isinstance(creation, Review):
                changed, events = (*changed, *creation.answers), [*events, *creation.events]
            else:
                writes += creation
        requests = [write.object for write in writes if write.object.kind == KIND and write.verb is Verb.CREATE]
        events += [
            _event(key, "ProvisioningRequestCreated", f'Created ProvisioningRequest: "{request.name}"')
            for request in requests
        ]
        return Review(answers=changed, writes=tuple(writes), events=tuple(events))

    def _current(self, workload: JsonObject, of: _Of, checks: Sequence[str]) -> dict[str, Current]:
        """Return for each check its config, whether it needs a request, and the request of its last attempt.

        Raises:
            UnassignedPodSetError: The admission does not fit the workload.
        """
        name, annotations = text_at(workload, "metadata", "name"), texts_at(workload, "metadata", "annotations")
        found: dict[str, Current] = {}
        for check in checks:
            config = self._configs.get(text_at(self._checks[check], "spec", "parameters", "name"))
            it = found[check] = Current(check, config)
            if config is None:
                continue
            it.is_needed = is_request_needed(workload, config, skips_empty=self._skips_empty)
            for requested, request in of.requests.items() if it.is_needed else ():
                attempt = attempt_of(requested, name, check)
                if attempt is not None and attempt > it.attempt and is_as_configured(request, config, annotations):
                    it.request, it.attempt = request, attempt
        return found

    def _answers(self, workload: JsonObject, of: _Of, current: Mapping[str, Current]) -> dict[str, CheckAnswer]:
        if any(part.is_needed and part.request is None for part in current.values()):
            # `[code quirk]` While one of the checks has no request, none is updated.
            return {}
        retries = {name: int_at(entry, "retryCount") for name, entry in check_states(workload).items()}
        seed = None if self._seed is None else f"{self._seed}/{text_at(workload, 'metadata', 'name')}"
        answers = {
            name: answer_of(workload, of.entries[name], current, n_retries=retries[name], seed=seed)
            for name, current in current.items()
        }
        if self._clears_messages:
            return answers
        return {
            name: answer if answer.message else replace(answer, message=of.entries[name].message)
            for name, answer in answers.items()
        }

    def _creation(
        self, workload: JsonObject, of: _Of, current: Current, answer: CheckAnswer, now: int
    ) -> Sequence[Write] | Review:
        """Return what to create for a check, or the check's new state if that is not possible."""
        config, request = current.config, current.request
        if config is None or not current.is_needed or answer.state is CheckState.READY:
            return ()
        if request is not None:
            is_over = is_true(request, RequestCondition.FAILED) or (
                is_true(request, RequestCondition.BOOKING_EXPIRED) and not is_admitted(workload)
            )
            # While the check is Retry, the eviction comes first.
            if not is_over or answer.state is not CheckState.PENDING:
                return ()
            attempt = current.attempt + 1
        else:
            attempt = int_at(check_states(workload)[current.check], "retryCount") + 1
        ref = object_ref(workload)
        name = request_name(ref.name, current.check, attempt)
        if (Verb.CREATE, name) in of.sent or now < self._refused.get((ref.namespace, ref.name), now):
            return ()
        return self._creations(workload, of, current.check, name, config)

    def _creations(
        self, workload: JsonObject, of: _Of, check: str, name: str, config: ProvisioningRequestConfig
    ) -> Sequence[Write] | Review:
        ref = object_ref(workload)
        key, writes, pod_sets = (ref.namespace, ref.name), list[Write](), list[JsonValue]()
        for pods in requested_pods(workload, config, skips_empty=self._skips_empty):
            template = ObjectRef(_TEMPLATE, template_name(name, pods.name), ref.namespace)
            try:
                body = template_of(pods, self._flavors)
            except (StartError, UnknownObjectError) as error:
                return self._failed(template, str(error), key, of.entries[check])
            metadata = _metadata(workload, template.name)
            manifest: JsonObject = {"apiVersion": "v1", "kind": _TEMPLATE, "metadata": metadata, "template": body}
            stored = self._templates.get(template)
            is_other = stored is not None and not is_same_request(stored, manifest)
            if is_other:
                # Its name can be guessed: a request for it would ask for other pods than have quota.
                writes.append(_deletion(_TEMPLATE, "v1", template.name, key, check))
                del self._templates[template]
            if is_other or (stored is None and template.name not in of.templates):
                writes.append(Write(Verb.CREATE, manifest, workload=key, check=check))
            pod_sets.append({"podTemplateRef": {"name": template.name}, "count": pods.count})
        parameters: JsonObject = dict(parameters_of(config, texts_at(workload, "metadata", "annotations")))
        spec: JsonObject = {
            "provisioningClassName": config.provisioning_class_name,
            "parameters": parameters,
            "podSets": pod_sets,
        }
        request: JsonObject = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": _metadata(workload, name),
            "spec": spec,
        }
        writes.append(Write(Verb.CREATE, request, workload=key, check=check))
        of.templates |= {write.object.name for write in writes[:-1]}
        of.sent.add((Verb.CREATE, name))
        return writes

    def _deletions(self, of: _Of, key: WorkloadKey, *, keep: Sequence[JsonObject]) -> tuple[Write, ...]:
        kept, writes = {text_at(manifest, "metadata", "name") for manifest in keep}, list[Write]()
        for name in sorted(of.requests.keys() - kept):
            if (Verb.DELETE, name) in of.sent:
                continue
            of.sent.add((Verb.DELETE, name))
            references = list_at(of.requests[name], "spec", "podSets")
            templates = [text_at(reference, "podTemplateRef", "name") for reference in references]
            of.templates -= set(templates)
            writes.append(_deletion(KIND, API_VERSION, name, key))
            for template in templates:
                self._templates.pop(ObjectRef(_TEMPLATE, template, key[0]), None)
                writes.append(_deletion(_TEMPLATE, "v1", template, key))
        return tuple(writes)

    def _failed(self, ref: ObjectRef, error: str, key: WorkloadKey, entry: CheckAnswer) -> Review:
        message = f'Error creating {ref.kind} "{ref.name}": {error}'
        answer = replace(entry, message=_cut(message, _MAX_MESSAGE))
        event = _event(key, "FailedCreate", message, kind="Warning")
        return Review(answers=() if answer == entry else (answer,), events=() if answer == entry else (event,))

    def _forget(self, key: WorkloadKey) -> None:
        of = self._workloads.pop(key, _Of())
        self._refused.pop(key, None)
        for name in of.requests:
            self._owners.pop(ObjectRef(KIND, name, key[0]), None)

    def _users(self, check: str) -> tuple[WorkloadKey, ...]:
        return tuple(key for key, of in self._workloads.items() if check in of.entries)

    def _users_of_config(self, config: str) -> tuple[WorkloadKey, ...]:
        checks = [
            name for name, check in self._checks.items() if text_at(check, "spec", "parameters", "name") == config
        ]
        return tuple({key: None for check in checks for key in self._users(check)})


def _deletion(kind: str, api_version: str, name: str, key: WorkloadKey, check: str = "") -> Write:
    metadata: JsonObject = {"namespace": key[0], "name": name}
    manifest: JsonObject = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    return Write(Verb.DELETE, manifest, workload=key, check=check)


def _metadata(workload: JsonObject, name: str) -> JsonObject:
    metadata = object_at(workload, "metadata")
    owner: JsonObject = {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "name": text_at(metadata, "name"),
        "uid": text_at(metadata, "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "namespace": text_at(metadata, "namespace"),
        "name": name,
        "labels": {_MANAGED: "true"},
        "ownerReferences": [owner],
    }


def _update(before: CheckAnswer, after: CheckAnswer) -> str:
    message = f"Admission check {after.name} updated state from {before.state} to {after.state}"
    return f"{message} with message: {after.message}" if after.message else message


def _event(key: WorkloadKey, reason: str, message: str, *, kind: str = "Normal") -> Event:
    return Event(kind, reason, *key, _cut(message, _MAX_EVENT))


def _cut(message: str, length: int) -> str:
    """Cut a message to a length."""
    return (
        message if len(message.encode()) <= length else f"{message.encode()[: length - 4].decode(errors='ignore')} ..."
    )
