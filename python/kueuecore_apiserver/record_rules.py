"""The rules of Events and Leases, which client libraries write beside jobs and pods, and often get wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kueuecore._json import object_at, text_at
from kueuecore_apiserver.refusals import Cause, bad_request
from kueuecore_apiserver.requests import Object

__all__ = ["check_micro_times", "event_causes", "lease_causes"]

_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
# Times that have exactly six digits of a second.
_MICRO_TIMES = {
    "Event": (("eventTime",), ("series", "lastObservedTime")),
    "Lease": (("spec", "acquireTime"), ("spec", "renewTime")),
}


def check_micro_times(manifest: Object) -> None:
    """Check times that have microseconds.

    Raises:
        RefusedError: A time has another format (400).
    """
    kind = manifest["kind"]
    for path in _MICRO_TIMES.get(kind, ()):
        time = object_at(manifest, *path[:-1]).get(path[-1])
        if time is not None and not (isinstance(time, str) and _MICRO_TIME.fullmatch(time)):
            raise bad_request(
                f'{kind} in version "v1" cannot be handled as a {kind}: {".".join(path)}: parsing time "{time}" as '
                f'"{_LAYOUT}": it needs six digits after the second'
            )


def event_causes(event: Object) -> Iterator[Cause]:
    """Yield what is wrong with an Event: it must be in the namespace of its object, or else in `default`."""
    own, regarding = text_at(event, "metadata", "namespace"), text_at(event, "involvedObject", "namespace")
    if own != (regarding or "default"):
        yield Cause("involvedObject.namespace", f'Invalid value: "{regarding}": does not match event.namespace')
    if event.get("eventTime") is not None:
        for name in ("reportingComponent", "reportingInstance", "action"):
            if not text_at(event, name):
                yield Cause(name, "Required value")


def lease_causes(lease: Object) -> Iterator[Cause]:
    """Yield what is wrong with a Lease."""
    spec = object_at(lease, "spec")
    for name, least, words in (("leaseDurationSeconds", 1, "0"), ("leaseTransitions", 0, "or equal to 0")):
        value = spec.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            yield Cause(f"spec.{name}", f"Invalid value: {value}: must be greater than {words}")
