"""Writes the CAs of a server's certificate where API servers look for them."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes.api import MERGE_PATCH, Api

__all__ = ["API_SERVICES", "MUTATING_WEBHOOKS", "VALIDATING_WEBHOOKS", "publish_cas"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
"""The path of all APIServices."""
MUTATING_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
"""The path of all MutatingWebhookConfigurations."""
VALIDATING_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
"""The path of all ValidatingWebhookConfigurations."""


def publish_cas(api: Api, cas: str, paths: Iterable[str]) -> None:
    """Write CAs to webhook configurations, APIServices and conversions of definitions that do not have them yet.

    An object that does not exist is left out, and one that was changed meanwhile is left for the next time.

    Args:
        api: The API server.
        cas: The CAs, as PEM.
        paths: The paths of the objects.

    Raises:
        RefusedError: The server refuses.
        UnansweredError: The server does not answer.
    """
    bundle = base64.b64encode(cas.encode()).decode()
    for path in paths:
        try:
            found = api.get(path)
            change = _change(found, bundle)
            if change:
                version: JsonObject = {"resourceVersion": text_at(found, "metadata", "resourceVersion")}
                api.send("PATCH", path, {"metadata": version, **change}, content_type=MERGE_PATCH)
                _LOGGER.info("CAs published", extra={"object": path})
        except RefusedError as error:
            if error.code not in (404, 409):
                raise


def _change(found: JsonObject, bundle: str) -> JsonObject:
    """Return the merge patch that gives an object its CAs; empty if it has them."""
    if "webhooks" in found:
        webhooks = list_at(found, "webhooks")
        changed = [
            {**object_at(each), "clientConfig": _with(object_at(each, "clientConfig"), bundle)} for each in webhooks
        ]
        return {} if changed == webhooks else {"webhooks": [*changed]}
    spec = object_at(found, "spec")
    if "conversion" in spec:
        place = object_at(spec, "conversion", "webhook", "clientConfig")
        is_due = bool(place) and place != _with(place, bundle)
        return {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}} if is_due else {}
    if spec.get("caBundle") == bundle and not spec.get("insecureSkipTLSVerify"):
        return {}
    return {"spec": {"caBundle": bundle, "insecureSkipTLSVerify": None}}


def _with(client: JsonObject, bundle: str) -> JsonObject:
    return {**client, "caBundle": bundle}
