"""Finds what `kueuecore serve` needs of a cluster and does not find there: kinds, rights, the Lease, a release."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore._kinds import KUEUE
from kueuecore.controller import WATCHED
from kueuecore.jobs.context import group_of
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.election import LeaseSettings
from kueuecore.kubernetes.preflight.look import ADMISSION, Look
from kueuecore.kubernetes.preflight.obstacles import Level, Obstacle
from kueuecore.kubernetes.preflight.rights import Right
from kueuecore.releases import Release

__all__ = ["kueue_beside_it", "lacking_kinds", "lacking_rights", "nobody_suspends"]

_GROUP, _, _VERSION = KUEUE.partition("/")
_N_THREADS = 8
_SERVICE_ACCOUNT = "system:serviceaccount:"
# The first release of Kubernetes that serves MutatingAdmissionPolicies as v1.
_POLICIES_SINCE = "v1.36"


def lacking_kinds(look: Look, watched: Mapping[str, tuple[str, str]], release: Release) -> Iterator[Obstacle]:
    """Find kinds that the cluster does not serve.

    Args:
        look: The cluster.
        watched: What `serve` watches: apiVersion and plural by kind.
        release: The release of Kueue whose definitions belong there.
    """
    missing = {kind: place for kind, place in watched.items() if not look.serves(*place)}
    of_kueue = [kind for kind, (api_version, _) in missing.items() if group_of(api_version) == _GROUP]
    if of_kueue:
        others = [version for version in look.versions(_GROUP) if version != _VERSION]
        served = f"the cluster serves {', '.join(others)} of them" if others else "the cluster has none of them"
        message = f"{', '.join(of_kueue)} of {KUEUE} are missing ({served}): nothing is decided without them"
        crds = f"github.com/kubernetes-sigs/kueue/config/components/crd?ref={release.tag}"
        mend = f"kubectl apply --server-side -k '{crds}'"
        yield Obstacle(Level.ERROR, "kinds", KUEUE, message, (mend,))
    needed = [f"{api_version} {kind}" for kind, (api_version, _) in missing.items() if kind in WATCHED]
    for kind in needed:
        if not kind.startswith(_GROUP):
            message = "the cluster does not serve it: nothing is decided without it"
            yield Obstacle(Level.ERROR, "kinds", kind, message, ("kubectl version",))
    optional = [f"{plural}.{group_of(version)}" for kind, (version, plural) in missing.items() if kind not in WATCHED]
    absent = sorted(name for name in optional if not name.endswith(f".{_GROUP}"))
    if absent:
        message = f"count as empty until their definitions come: {', '.join(absent)}"
        yield Obstacle(Level.NOTE, "kinds", "what the Configuration enables", message)


def lacking_rights(api: Api, rights: Iterable[Right], *, user: str = "") -> Iterator[Obstacle]:
    """Ask for each right whether `serve` has it.

    Args:
        api: The API server.
        rights: What `serve` needs.
        user: Whose rights; empty: those of the credentials that ask.
    """
    with ThreadPoolExecutor(_N_THREADS) as pool:
        listed = [*rights]
        found = pool.map(partial(_is_allowed, api, user=user), listed)
        missing = [right for right, is_allowed in zip(listed, found, strict=True) if not is_allowed]
    for (namespace, group, resource), part in groupby(missing, lambda it: (it.namespace, it.group, it.resource)):
        verbs = [right.verb for right in part]
        shown = f"{resource}.{group}" if group else resource
        who = user or "these credentials"
        place = f" in namespace {namespace}" if namespace else ""
        message = f"{who} may not {', '.join(verbs)} them{place}"
        yield Obstacle(Level.ERROR, "rights", shown, message, (_granting(namespace, group, resource, verbs),))


def _granting(namespace: str, group: str, resource: str, verbs: Sequence[str]) -> str:
    """Return the command that adds a rule to the role of deploy/kueuecore.yaml."""
    rule = {"apiGroups": [group], "resources": [resource], "verbs": [*verbs]}
    patch = json.dumps([{"op": "add", "path": "/rules/-", "value": rule}], separators=(",", ":"))
    role = f"role kueuecore-leader-election -n {namespace}" if namespace else "clusterrole kueuecore"
    return f"kubectl patch {role} --type=json -p '{patch}'"


def _is_allowed(api: Api, right: Right, *, user: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    asked: JsonObject = {"verb": right.verb, "group": right.group, "resource": resource}
    asked |= {name: text for name, text in (("subresource", subresource), ("namespace", right.namespace)) if text}
    kind = "SubjectAccessReview" if user else "SelfSubjectAccessReview"
    spec: JsonObject = {"resourceAttributes": asked}
    if user:
        spec |= {"user": user, "groups": _groups_of(user)}
    path = f"/apis/authorization.k8s.io/v1/{kind.lower()}s"
    answer = api.send("POST", path, {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec})
    return object_at(answer, "status").get("allowed") is True


def _groups_of(user: str) -> list[JsonValue]:
    """Return the groups that an API server gives a user; those of people are known to it alone."""
    groups: list[JsonValue] = ["system:authenticated"]
    if user.startswith(_SERVICE_ACCOUNT):
        namespace = user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return groups


def kueue_beside_it(look: Look, release: Release, lease: LeaseSettings | None) -> Iterator[Obstacle]:
    """Compare the release of Kueue's Deployment with the one that would decide, and say who holds the Lease."""
    deployment = next((row for row in look.kueue if text_at(row, "kind") == "Deployment"), None)
    n_ready = 0
    if deployment is not None:
        metadata = object_at(deployment, "metadata")
        n_ready = int_at(deployment, "status", "readyReplicas")
        object_ = f"Deployment {text_at(metadata, 'namespace')}/{text_at(metadata, 'name')}"
        shown = _version_of(deployment)
        message = (
            f"Kueue {shown or 'of an unknown release'} with {n_ready} ready replicas; {release.title} would decide here"
        )
        mends = (f"kueuecore serve --kueue {shown.removeprefix('v')}",) if shown and shown != release.tag else ()
        yield Obstacle(Level.WARNING if mends else Level.NOTE, "release", object_, message, mends)
    if lease is None:
        if n_ready:
            message = "Kueue runs, and nothing keeps both from deciding: leaderElection.leaderElect is false here"
            yield Obstacle(Level.ERROR, "lease", "Lease", message, ("kueuecore serve --leader-elect=true",))
        return
    spec = object_at(look.lease(lease), "spec")
    if holder := text_at(spec, "holderIdentity"):
        renewed, seconds = text_at(spec, "renewTime"), int_at(spec, "leaseDurationSeconds")
        message = f"{holder} renewed it at {renewed}, for {seconds} s: serve follows until it is given up or expires"
        yield Obstacle(Level.NOTE, "lease", f"Lease {lease.namespace}/{lease.name}", message)


def _version_of(deployment: JsonObject) -> str:
    """Return the tag of Kueue's image; empty if it has none."""
    for container in list_at(deployment, "spec", "template", "spec", "containers"):
        image = text_at(object_at(container), "image").partition("@")[0].rpartition("/")[2]
        name, _, tag = image.partition(":")
        if name == "kueue":
            return tag
    return ""


def nobody_suspends(look: Look) -> Iterator[Obstacle]:
    """Find that no webhook and no policy changes new Jobs: they would start at once, whatever the quota."""
    if not look.serves(ADMISSION, "mutatingadmissionpolicies"):
        message = f"has no MutatingAdmissionPolicies (v1 since {_POLICIES_SINCE}): only webhooks can suspend new jobs"
        yield Obstacle(Level.NOTE, "server", f"API server {look.version}", message)
    for configuration in look.all("MutatingWebhookConfiguration"):
        for webhook in map(object_at, list_at(configuration, "webhooks")):
            service = object_at(webhook, "clientConfig", "service")
            place = text_at(service, "namespace"), text_at(service, "name")
            if _changes_jobs(object_at(webhook)) and (not service or look.is_ready(*place) is not False):
                return
    for policy in look.all("MutatingAdmissionPolicy"):
        if _changes_jobs({"rules": list_at(policy, "spec", "matchConstraints", "resourceRules")}):
            return
    if {"mutatingwebhookconfigurations", "mutatingadmissionpolicies"} & {row.partition(".")[0] for row in look.unread}:
        return
    message = "nothing changes new Jobs: those that are not created suspended start at once, whatever the quota"
    mend = "kubectl apply -f deploy/admission-policies.yaml"
    if not look.serves(ADMISSION, "mutatingadmissionpolicies"):
        mend = "kubectl apply -f deploy/webhooks.yaml"
    yield Obstacle(Level.WARNING, "suspension", "jobs.batch", message, (mend,))


def _changes_jobs(webhook: JsonObject) -> bool:
    """Return whether a webhook or a policy is asked about new Jobs."""
    for rule in map(object_at, list_at(webhook, "rules")):
        groups, resources, operations = (
            {*map(str, list_at(rule, key))} for key in ("apiGroups", "resources", "operations")
        )
        if groups & {"batch", "*"} and resources & {"jobs", "*", "*/*"} and operations & {"CREATE", "*"}:
            return True
    return False
