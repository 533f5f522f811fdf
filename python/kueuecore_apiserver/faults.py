"""Faults on demand: refusals, broken connections, slow answers, watches that end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import TypeAlias

from kueuecore.api_server import RefusedError
from kueuecore_apiserver.refusals import no_such_resource
from kueuecore_apiserver.requests import Request

__all__ = ["Closing", "Fault", "FaultKind", "Faults", "SeededFaults", "refusal_of"]


class Closing(StrEnum):
    """When the connection breaks."""

    BEFORE = "before"
    """Before the request is carried out."""
    AFTER = "after"
    """After the write is carried out, so that its response is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The fault of one request.

    Args:
        refusal: The answer to send instead of carrying the request out.
        retry_after_seconds: The header `Retry-After` of the refusal.
        closing: When to break the connection.
        delay_seconds: How long to wait before carrying the request out.
        answer_delay_seconds: How long to wait between carrying the request out and answering.
        watch_ends_after: Ends a watch after this many events; 0 ends a watch with nothing to send at once.
        watch_ends_when_idle: Whether a watch ends as soon as everything is sent.
        watch_breaks: Whether a watch ends improperly: the connection breaks.
        watch_is_gone: Whether a watch begins with an error event of code 410.

    Example:
        >>> Fault(refusal=refusal_of(429), retry_after_seconds=1).refusal.code
        429
    """

    refusal: RefusedError | None = None
    retry_after_seconds: int | None = None
    closing: Closing | None = None
    delay_seconds: float = 0.0
    answer_delay_seconds: float = 0.0
    watch_ends_after: int | None = None
    watch_ends_when_idle: bool = False
    watch_breaks: bool = False
    watch_is_gone: bool = False


Faults: TypeAlias = Callable[[Request], Fault | None]
"""Returns the fault of a request, if it has one. It is called in the order in which requests arrive."""

_MESSAGES = {
    409: "the object has been modified; please apply your changes to the latest version and try again",
    429: "the server has received too many requests and has asked us to try again later",
    500: "Internal error occurred: etcdserver: leader changed",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def refusal_of(code: int) -> RefusedError:
    """Return a refusal in the words of a server in trouble.

    Args:
        code: 404 (a kind that is missing for a moment), 409, 429, 500, 503 or 504.

    Raises:
        ValueError: The code is another one.
    """
    if code == 404:
        return no_such_resource()
    if code not in _MESSAGES:
        raise ValueError(f"code must be 404 or one of {', '.join(map(str, _MESSAGES))}, not {code}")
    details = {"retryAfterSeconds": 1} if code in (429, 503) else {}
    return RefusedError(code, _MESSAGES[code], reason="Timeout" if code == 504 else "", details=details)


class FaultKind(StrEnum):
    """The faults of a seeded plan."""

    CONFLICT = "conflict"
    TOO_MANY_REQUESTS = "too-many-requests"
    INTERNAL_ERROR = "internal-error"
    UNAVAILABLE = "unavailable"
    NO_SUCH_KIND = "no-such-kind"
    CLOSED_BEFORE = "closed-before"
    CLOSED_AFTER = "closed-after"
    SLOW = "slow"
    WATCH_ENDS = "watch-ends"
    WATCH_BREAKS = "watch-breaks"
    WATCH_IS_GONE = "watch-is-gone"


_OF_WATCHES = (FaultKind.WATCH_ENDS, FaultKind.WATCH_BREAKS, FaultKind.WATCH_IS_GONE)
_OF_WRITES = (FaultKind.CONFLICT, FaultKind.CLOSED_AFTER)
_WRITES = ("create", "update", "patch", "delete", "deletecollection")


class SeededFaults:
    """Faults drawn from a seed: the same requests in the same order meet the same faults.

    Args:
        seed: The seed.
        rates: The probability of each kind of fault, from 0 to 1, for requests to which it applies. Conflicts, and
            connections that break after the write, apply to writes; ends of watches apply to watches.
        spares: Returns whether a request is spared from faults.
        slow_seconds: How long slow answers take.

    Example:
        >>> faults = SeededFaults(seed=1, rates={FaultKind.CONFLICT: 1.0})
        >>> faults(Request.of("GET", "/api/v1/pods", {})) is None
        True
        >>> faults(Request.of("POST", "/api/v1/namespaces/a/pods", {})).refusal.code
        409
    """

    def __init__(
        self,
        *,
        seed: int,
        rates: Mapping[FaultKind, float],
        spares: Callable[[Request], bool] = lambda request: not request.resource,
        slow_seconds: float = 0.05,
    ) -> None:
        for kind, rate in rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"rates[{kind}] must be between 0 and 1, not {rate}")
        self._random, self._rates = Random(seed), dict(rates)
        self._spares, self._slow_seconds = spares, slow_seconds
        self.n_drawn = dict.fromkeys(self._rates, 0)
        """How often each kind of fault has happened."""

    def __call__(self, request: Request) -> Fault | None:
        """Draw the fault of a request."""
        if self._spares(request):
            return None
        for kind, rate in self._rates.items():
            if not _fits(kind, request) or self._random.random() >= rate:
                continue
            self.n_drawn[kind] += 1
            return self._fault(kind)
        return None

    def _fault(self, kind: FaultKind) -> Fault:
        match kind:
            case FaultKind.CONFLICT:
                return Fault(refusal=refusal_of(409))
            case FaultKind.TOO_MANY_REQUESTS:
                return Fault(refusal=refusal_of(429), retry_after_seconds=1)
            case FaultKind.INTERNAL_ERROR:
                return Fault(refusal=refusal_of(500))
            case FaultKind.UNAVAILABLE:
                return Fault(refusal=refusal_of(503), retry_after_seconds=1)
            case FaultKind.NO_SUCH_KIND:
                return Fault(refusal=refusal_of(404))
            case FaultKind.CLOSED_BEFORE:
                return Fault(closing=Closing.BEFORE)
            case FaultKind.CLOSED_AFTER:
                return Fault(closing=Closing.AFTER)
            case FaultKind.SLOW:
                return Fault(answer_delay_seconds=self._slow_seconds)
            case FaultKind.WATCH_ENDS:
                return Fault(watch_ends_after=self._random.randrange(10))
            case FaultKind.WATCH_BREAKS:
                return Fault(watch_ends_after=self._random.randrange(10), watch_breaks=True)
            case FaultKind.WATCH_IS_GONE:
                return Fault(watch_is_gone=True)


def _fits(kind: FaultKind, request: Request) -> bool:
    if kind in _OF_WATCHES:
        return request.verb == "watch"
    return kind not in _OF_WRITES or request.verb in _WRITES
