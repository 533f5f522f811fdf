"""What the JSON Schemas of the answers have in common."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject
from kueuecore.agents.shapes import COUNT, TEXT, TEXTS, described, list_of, mapping_of, one_of, optional, record

__all__ = [
    "BY_RESOURCE",
    "CHECK_STATE",
    "NOT_PLACED",
    "NOW",
    "PREEMPTION",
    "RELEASE",
    "RULE",
    "STATUS",
    "WORKLOAD",
    "answer",
]

_LEFT = record({"path": TEXT, "shown": COUNT, "left": COUNT})
ABOUT = described(
    record(
        {
            "state": described(TEXT, "what was asked about: the files, or the context of the cluster"),
            "command": described(TEXT, "the command that gives the same answer in a terminal"),
            "notes": described(TEXTS, "notes and warnings of the command"),
            "left": described(
                list_of(_LEFT), "lists that were cut to fit the limit on size, and how many rows are left"
            ),
        }
    ),
    "where the answer comes from, and what is not in it",
)
RELEASE = record({"version": TEXT}, may_lack={"commit": TEXT})
HEAD = {"schema": COUNT, "kueuecore": TEXT, "kueue": RELEASE}
NOW = {"now": described(TEXT, "the time of the answer, RFC 3339")}
STATUS = one_of("Pending", "QuotaReserved", "Admitted", "Finished", "Undecided")
RULE = described(TEXT, "a section of the rules, such as `02 §2.2`: resource kueuecore://rules/02/2.2")
WORKLOAD = {
    "namespace": TEXT,
    "name": TEXT,
    "status": STATUS,
    "clusterQueue": optional(TEXT),
    "reason": TEXT,
    "message": TEXT,
}
PREEMPTION = {"workload": TEXT, "clusterQueue": TEXT, "reason": TEXT, "message": TEXT}
BY_RESOURCE = mapping_of(TEXT)
NOT_PLACED = record({"podSet": TEXT, "asksFor": TEXT, "why": TEXT})
CHECK_STATE = record({"name": TEXT, "state": TEXT, "message": TEXT, "since": optional(TEXT), "retryCount": COUNT})


def answer(fields: Mapping[str, JsonObject], *, may_lack: Mapping[str, JsonObject] | None = None) -> JsonObject:
    """Return the schema of an answer.

    Args:
        fields: Those that it always has, between the head and `about`.
        may_lack: Those that it may have.
    """
    return record({**HEAD, **fields, "about": ABOUT}, may_lack=may_lack)
