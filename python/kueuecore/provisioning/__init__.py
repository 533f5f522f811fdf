"""Requests capacity by ProvisioningRequests (rules/07 §4), and provides it in virtual time.

`ProvisioningController` is Kueue's controller without its I/O, for a `kueuecore.controller.Controller`.
`VirtualProvisioning` adds a provider of capacity in virtual time: one that follows a script (`ScriptedCapacity`), or
one with a finite stock for which orders queue up (`QueuedCapacity`). `Autoscaler` is the provider's half alone, for
requests that are stored elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.provisioning.autoscaler import Autoscaler, RequestStep
    from kueuecore.provisioning.capacity import (
        CapacityOutcome,
        CapacityProvider,
        CapacityRequest,
        CapacityState,
        CapacityWithNodes,
        RequestedPodSet,
        ScriptedCapacity,
    )
    from kueuecore.provisioning.config import config_of, delay_seconds
    from kueuecore.provisioning.controller import ProvisioningController
    from kueuecore.provisioning.queued import QueuedCapacity, Stock
    from kueuecore.provisioning.requests import RequestCondition, request_name, template_name
    from kueuecore.provisioning.virtual import VirtualProvisioning

__all__ = [
    "Autoscaler",
    "CapacityOutcome",
    "CapacityProvider",
    "CapacityRequest",
    "CapacityState",
    "CapacityWithNodes",
    "ProvisioningController",
    "QueuedCapacity",
    "RequestCondition",
    "RequestStep",
    "RequestedPodSet",
    "ScriptedCapacity",
    "Stock",
    "VirtualProvisioning",
    "config_of",
    "delay_seconds",
    "request_name",
    "template_name",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.provisioning.autoscaler": "Autoscaler RequestStep",
        "kueuecore.provisioning.capacity": """
            CapacityOutcome CapacityProvider CapacityRequest CapacityState CapacityWithNodes RequestedPodSet
            ScriptedCapacity
        """,
        "kueuecore.provisioning.config": "config_of delay_seconds",
        "kueuecore.provisioning.controller": "ProvisioningController",
        "kueuecore.provisioning.queued": "QueuedCapacity Stock",
        "kueuecore.provisioning.requests": "RequestCondition request_name template_name",
        "kueuecore.provisioning.virtual": "VirtualProvisioning",
    },
)
