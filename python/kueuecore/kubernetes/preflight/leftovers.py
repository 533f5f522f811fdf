"""Finds what Kueue leaves behind when its pods go: webhooks, conversions, the visibility API, finalizers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._kinds import KINDS, KUEUE, Kind
from kueuecore.controller.in_use_finalizers import IN_USE_KINDS
from kueuecore.jobs.context import group_of
from kueuecore.jobs.workload_builder import RESOURCE_IN_USE
from kueuecore.kubernetes.preflight.look import Look
from kueuecore.kubernetes.preflight.obstacles import Level, Obstacle
from kueuecore.kubernetes.preflight.rights import Right

__all__ = ["dead_conversions", "dead_visibility", "dead_webhooks", "stuck_deletions"]

_GROUP, _, _VERSION = KUEUE.partition("/")
_CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_VISIBILITY = "visibility.kueue.x-k8s.io"
_OURS = "kueuecore"


def dead_webhooks(look: Look, rights: Collection[Right]) -> Iterator[Obstacle]:
    """Find webhooks that nobody answers, of the kinds that `serve` writes or users create."""
    written = {(right.group, right.resource) for right in rights if right.verb not in ("list", "watch")}
    for kind in _CONFIGURATIONS:
        for configuration in look.all(kind):
            services: dict[tuple[str, str], list[JsonObject]] = {}
            for webhook in map(object_at, list_at(configuration, "webhooks")):
                service = object_at(webhook, "clientConfig", "service")
                if service and _is_about(webhook, written):
                    place = text_at(service, "namespace"), text_at(service, "name")
                    services.setdefault(place, []).append(webhook)
            for place, webhooks in services.items():
                if look.is_ready(*place) is False:
                    yield _dead_webhooks(kind, configuration, place, webhooks)


def _is_about(webhook: JsonObject, resources: Collection[tuple[str, str]]) -> bool:
    """Return whether a webhook is asked about one of these resources."""
    for rule in map(object_at, list_at(webhook, "rules")):
        groups, names = ({*map(str, list_at(rule, key))} for key in ("apiGroups", "resources"))
        for group, resource in resources:
            plural, _, subresource = resource.partition("/")
            wanted = {resource, f"{plural}/*", f"*/{subresource}" if subresource else "*", "*/*"}
            if not groups.isdisjoint((group, "*")) and not names.isdisjoint(wanted):
                return True
    return False


def _dead_webhooks(
    kind: str, configuration: JsonObject, service: tuple[str, str], webhooks: list[JsonObject]
) -> Obstacle:
    name, (namespace, of) = text_at(configuration, "metadata", "name"), service
    nobody = f"Service {namespace}/{of} has no ready endpoint"
    about = {*map(str, (group for webhook in webhooks for group in _groups(webhook)))}
    refuses = any(webhook.get("failurePolicy", "Fail") == "Fail" for webhook in webhooks)
    asked = "its webhook is" if len(webhooks) == 1 else f"its {len(webhooks)} webhooks are"
    message = f"{nobody}: the API server refuses what {asked} about"
    if not refuses:
        message = f"{nobody}: each write of what {asked} about waits in vain"
    level, mend = Level.ERROR if refuses else Level.WARNING, f"kubectl delete {kind.lower()} {name}"
    if of.startswith(_OURS):
        # Those of `serve` itself, which is not there yet.
        level, mend = Level.WARNING, f"kubectl -n {namespace} rollout status deployment/kueuecore"
    elif _GROUP not in about:
        mend = f"kubectl -n {namespace} get endpointslices -l kubernetes.io/service-name={of}"
        message += "; it is not Kueue's: start what answers it"
    return Obstacle(level, "webhooks", f"{kind} {name}", message, (mend,))


def _groups(webhook: JsonObject) -> Iterator[JsonValue]:
    for rule in list_at(webhook, "rules"):
        yield from list_at(object_at(rule), "apiGroups")


def dead_conversions(look: Look) -> Iterator[Obstacle]:
    """Find Kueue's definitions whose objects nobody converts, and objects that may be stored in an older version."""
    # By what is wrong and the patch that mends it: names of definitions.
    wrong: dict[tuple[Level, str, str], list[str]] = {}
    for crd in look.all("CustomResourceDefinition"):
        if text_at(crd, "spec", "group") != _GROUP:
            continue
        name = text_at(crd, "metadata", "name")
        service = object_at(crd, "spec", "conversion", "webhook", "clientConfig", "service")
        place = text_at(service, "namespace"), text_at(service, "name")
        is_dead = bool(service) and look.is_ready(*place) is False
        older = [str(version) for version in list_at(crd, "status", "storedVersions") if version != _VERSION]
        patch = _without_conversion(crd)
        if older and _storage_version(crd) == _VERSION:
            yield _stored_older(name, ", ".join(older), is_dead=is_dead)
        elif is_dead:
            message = (
                f"Service {'/'.join(place)} has no ready endpoint, so requests for older versions get an error 500"
            )
            wrong.setdefault((Level.ERROR, message, patch), []).append(name)
        elif not service and '/served"' in patch:
            message = "older versions are served and nobody converts, so their writes lose fields with other names"
            wrong.setdefault((Level.WARNING, message, patch), []).append(name)
    for (level, message, patch), names in wrong.items():
        mend = f"for crd in {' '.join(names)}; do kubectl patch crd $crd --type=json -p '{patch}'; done"
        message += f"; without conversion only {_VERSION} should be served: {', '.join(names)}"
        yield Obstacle(level, "conversion", f"CustomResourceDefinitions of {_GROUP}", message, (mend,))


def _storage_version(crd: JsonObject) -> str:
    versions = map(object_at, list_at(crd, "spec", "versions"))
    return next((text_at(version, "name") for version in versions if version.get("storage")), "")


def _without_conversion(crd: JsonObject) -> str:
    """Return the JSON patch after which a definition needs nobody to convert, as it serves one version alone."""
    patch: list[JsonValue] = [{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "None"}}]
    for at, version in enumerate(map(object_at, list_at(crd, "spec", "versions"))):
        if version.get("served") and not version.get("storage"):
            path = f"/spec/versions/{at}"
            patch.append({"op": "test", "path": f"{path}/name", "value": version.get("name")})
            patch.append({"op": "replace", "path": f"{path}/served", "value": False})
    return json.dumps(patch, separators=(",", ":"))


def _stored_older(name: str, older: str, *, is_dead: bool) -> Obstacle:
    message = f"objects may still be stored as {older}, which Kueue converts: rewrite them while it runs"
    plural = name.partition(".")[0]
    stored = json.dumps({"status": {"storedVersions": [_VERSION]}}, separators=(",", ":"))
    mends: tuple[str, ...] = (
        f"kubectl get {plural}.{_VERSION}.{_GROUP} --all-namespaces -o json | kubectl replace -f -",
        f"kubectl patch crd {name} --subresource=status --type=merge -p '{stored}'",
    )
    if is_dead:
        mends = ("kubectl -n kueue-system scale deployment kueue-controller-manager --replicas=1", *mends)
    level = Level.ERROR if is_dead else Level.WARNING
    return Obstacle(level, "conversion", f"CustomResourceDefinition {name}", message, mends)


def dead_visibility(look: Look) -> Iterator[Obstacle]:
    """Find the APIServices of Kueue's visibility API that nobody serves."""
    for service in look.all("APIService"):
        if text_at(service, "spec", "group") != _VISIBILITY or not object_at(service, "spec", "service"):
            continue
        namespace, of = (text_at(service, "spec", "service", name) for name in ("namespace", "name"))
        if look.is_ready(namespace, of) is not False:
            continue
        name = text_at(service, "metadata", "name")
        message = f"Service {namespace}/{of} has no ready endpoint: discovery fails in part, and no namespace can end"
        if of.startswith(_OURS):
            mend = f"kubectl -n {namespace} rollout status deployment/kueuecore"
            yield Obstacle(Level.WARNING, "visibility", f"APIService {name}", message, (mend,))
        else:
            yield Obstacle(
                Level.ERROR, "visibility", f"APIService {name}", message, (f"kubectl delete apiservice {name}",)
            )


def stuck_deletions(look: Look, watched: Collection[str]) -> Iterator[Obstacle]:
    """Find objects that are being deleted and have Kueue's finalizer.

    Args:
        look: The cluster.
        watched: The kinds that `serve` watches.
    """
    for kind in KINDS:
        gets_finalizer = kind.name in IN_USE_KINDS or kind.name == "Workload"
        if group_of(kind.api_version) != _GROUP or not (gets_finalizer or kind.name in watched):
            continue
        look.api.kinds[kind.name] = kind.api_version, kind.plural
        is_removed = gets_finalizer and kind.name in watched
        for stored in look.all(kind.name):
            metadata = object_at(stored, "metadata")
            if metadata.get("deletionTimestamp") and RESOURCE_IN_USE in list_at(metadata, "finalizers"):
                yield _stuck(kind, metadata, is_removed=is_removed)


def _stuck(kind: Kind, metadata: JsonObject, *, is_removed: bool) -> Obstacle:
    name, namespace = text_at(metadata, "name"), text_at(metadata, "namespace")
    object_ = f"{kind.name} {namespace}/{name}" if namespace else f"{kind.name} {name}"
    message = f"is being deleted, and has the finalizer {RESOURCE_IN_USE}"
    if is_removed:
        return Obstacle(Level.NOTE, "finalizers", object_, f"{message}: serve removes it once nothing uses it")
    kept: list[JsonValue] = [row for row in list_at(metadata, "finalizers") if row != RESOURCE_IN_USE]
    patch = json.dumps({"metadata": {"finalizers": kept}}, separators=(",", ":"))
    where = f"-n {namespace} " if namespace else ""
    mend = f"kubectl {where}patch {kind.plural}.{_GROUP} {name} --type=merge -p '{patch}'"
    return Obstacle(Level.ERROR, "finalizers", object_, f"{message}, which nobody removes", (mend,))
