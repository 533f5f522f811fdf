"""A Kubernetes API server for tests: HTTP on loopback, for kubectl and real client libraries, strict, with faults.

The in-memory server [`ApiServer`][kueuecore.api_server.ApiServer] holds the objects; this package adds HTTP and the
rules of a real server.

Example:
    >>> from kueuecore.api_server import ApiServer
    >>> from kueuecore_apiserver import Fault, HttpApiServer, refusal_of
    >>> def faults(request):
    ...     return Fault(refusal=refusal_of(503)) if request.verb == "delete" else None
    >>> server = HttpApiServer(ApiServer(), faults=faults)
    >>> with server.serve() as url:
    ...     print(url.rpartition(":")[0])
    http://127.0.0.1
"""

from __future__ import annotations

from kueuecore_apiserver.access import AccessRules
from kueuecore_apiserver.faults import Closing, Fault, FaultKind, Faults, SeededFaults, refusal_of
from kueuecore_apiserver.requests import Request
from kueuecore_apiserver.server import HttpApiServer
from kueuecore_apiserver.store import Schema, Schemas

__all__ = [
    "AccessRules",
    "Closing",
    "Fault",
    "FaultKind",
    "Faults",
    "HttpApiServer",
    "Request",
    "Schema",
    "Schemas",
    "SeededFaults",
    "refusal_of",
]
