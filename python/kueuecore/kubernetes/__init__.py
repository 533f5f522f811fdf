"""Watches a Kubernetes cluster and carries out decisions: the only part of kueuecore that does I/O.

Needs the extra `kubernetes`. Everything else in kueuecore decides without a cluster and does not import this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.kubernetes.api import Api, UnansweredError
    from kueuecore.kubernetes.election import Election, LeaseLostError, LeaseSettings
    from kueuecore.kubernetes.process import Process
    from kueuecore.kubernetes.service import serve
    from kueuecore.kubernetes.settings import Address, ServeSettings
    from kueuecore.kubernetes.watches import LateKinds, News, follow, list_all

__all__ = [
    "Address",
    "Api",
    "Election",
    "LateKinds",
    "LeaseLostError",
    "LeaseSettings",
    "News",
    "Process",
    "ServeSettings",
    "UnansweredError",
    "follow",
    "list_all",
    "serve",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.kubernetes.api": "Api UnansweredError",
        "kueuecore.kubernetes.election": "Election LeaseLostError LeaseSettings",
        "kueuecore.kubernetes.process": "Process",
        "kueuecore.kubernetes.service": "serve",
        "kueuecore.kubernetes.settings": "Address ServeSettings",
        "kueuecore.kubernetes.watches": "LateKinds News follow list_all",
    },
)
