"""The JSON Schemas of answers about the whole state: pages of it, `check` and `upgrade` with `-o json`."""

from __future__ import annotations

from kueuecore.agents.common_schemas import BY_RESOURCE, CHECK_STATE, NOT_PLACED, NOW, RELEASE, STATUS, answer
from kueuecore.agents.shapes import COUNT, FLAG, TEXT, TEXTS, described, list_of, mapping_of, one_of, optional, record

__all__ = ["CHECK", "COMPARE_RELEASES", "PENDING", "QUEUES"]

_LIMITS = {
    name: optional(TEXT)
    for name in ("nominal", "borrowingLimit", "lendingLimit", "subtreeQuota", "available", "potentialAvailable")
}
_QUOTA = record({"flavor": TEXT, "resource": TEXT, **_LIMITS, "usage": TEXT, "borrowed": TEXT})
_CURSOR = described(optional(TEXT), "pass it as `cursor` for the next page; null: this is the last one")
QUEUES = answer(
    {
        **NOW,
        "total": described(COUNT, "how many ClusterQueues match, on all pages"),
        "clusterQueues": list_of(
            record(
                {
                    "name": TEXT,
                    "cohort": optional(TEXT),
                    "active": FLAG,
                    "reason": TEXT,
                    "message": TEXT,
                    "pendingWorkloads": COUNT,
                    "reservingWorkloads": COUNT,
                    "admittedWorkloads": COUNT,
                    "localQueues": described(TEXTS, "NAMESPACE/NAME"),
                    "quota": described(list_of(_QUOTA), "Kubernetes quantities; null is unlimited, or no limit"),
                }
            )
        ),
        "cohorts": described(
            list_of(record({"name": TEXT, "parent": optional(TEXT), "quota": list_of(_QUOTA)})),
            "the cohorts above these ClusterQueues",
        ),
        "nextCursor": _CURSOR,
    }
)

_DOMAIN = record({"values": TEXTS, "path": optional(TEXTS), "count": COUNT})
_PLACEMENT = record({"flavor": TEXT, "levels": TEXTS, "domains": list_of(_DOMAIN)})
_ROW = record(
    {
        "namespace": TEXT,
        "name": TEXT,
        "owner": described(optional(TEXT), "its job, KIND/NAME"),
        "localQueue": TEXT,
        "clusterQueue": optional(TEXT),
        "priority": {"type": "integer"},
        "status": STATUS,
        "place": described(optional(TEXT), "active: it is tried; inadmissible: parked until something changes"),
        "positionInClusterQueue": described(optional(COUNT), "from 0"),
        "reason": TEXT,
        "message": described(TEXT, "Kueue's; in brackets what kueuecore adds where Kueue says nothing"),
        "note": optional(TEXT),
        "podSets": list_of(
            record(
                {
                    "name": TEXT,
                    "count": COUNT,
                    "flavors": BY_RESOURCE,
                    "resourceUsage": BY_RESOURCE,
                    "placement": optional(_PLACEMENT),
                }
            )
        ),
        "notPlaced": list_of(NOT_PLACED),
        "failedNodes": TEXTS,
        "admissionChecks": list_of(CHECK_STATE),
    }
)
PENDING = answer(
    {
        **NOW,
        "total": described(COUNT, "how many workloads wait and match, on all pages"),
        "reasons": described(mapping_of(COUNT), "how many of them there are for each reason of Kueue; empty: none yet"),
        "workloads": described(list_of(_ROW), "by ClusterQueue, then in the order of the queue"),
        "nextCursor": _CURSOR,
    }
)

# Configuration.

_OBJECT = record({"kind": TEXT, "namespace": optional(TEXT), "name": TEXT})
CHECK = answer(
    {
        "counts": record({"error": COUNT, "warning": COUNT, "note": COUNT}),
        "findings": list_of(
            record(
                {
                    "code": TEXT,
                    "name": TEXT,
                    "severity": one_of("error", "warning", "note"),
                    "object": optional(_OBJECT),
                    "file": optional(TEXT),
                    "line": optional(COUNT),
                    "field": optional(TEXT),
                    "message": TEXT,
                    "remedy": optional(TEXT),
                    "world": list_of(_OBJECT),
                }
            )
        ),
        "unfinished": TEXTS,
    }
)

_SWITCH = record(
    {"name": TEXT, "kind": TEXT, "before": optional(FLAG), "after": optional(FLAG), "what": TEXT, "pulls": TEXTS}
)
_FATE = record(
    {
        "status": TEXT,
        "clusterQueue": optional(TEXT),
        "flavors": mapping_of(BY_RESOURCE),
        "counts": mapping_of(COUNT),
        "domains": mapping_of(mapping_of(COUNT)),
        "preempts": list_of(record({"workload": TEXT, "reason": TEXT})),
        "evictions": TEXTS,
        "isActive": FLAG,
        "reason": TEXT,
        "message": TEXT,
    }
)
_CAUSE = record(
    {
        "switches": list_of(_SWITCH),
        "differences": list_of(
            record({"kind": TEXT, "key": TEXT, "before": optional(_FATE), "after": optional(_FATE)})
        ),
        "keeps": optional(record({"featureGates": mapping_of(FLAG), "kept": COUNT})),
    }
)
COMPARE_RELEASES = answer(
    {
        "from": RELEASE,
        "differs": FLAG,
        "workloads": COUNT,
        "runs": COUNT,
        "isStopped": FLAG,
        "endings": record({"before": TEXT, "after": TEXT}),
        "refusedGates": list_of(record({"name": TEXT, "value": FLAG, "place": TEXT, "why": TEXT, "remedy": TEXT})),
        "configurationProblems": TEXTS,
        "defaults": list_of(record({"name": TEXT, "before": TEXT, "after": TEXT, "decisions": COUNT, "what": TEXT})),
        "refusals": list_of(
            record(
                {
                    "kind": optional(TEXT),
                    "key": optional(TEXT),
                    "place": TEXT,
                    "isWarning": FLAG,
                    "field": TEXT,
                    "message": TEXT,
                    "remedy": TEXT,
                    "switches": list_of(_SWITCH),
                }
            )
        ),
        "causes": described(list_of(_CAUSE), "the changes of Kueue, each with the decisions that it changes"),
        "texts": described(list_of(_CAUSE), "changes of messages alone"),
    }
)
