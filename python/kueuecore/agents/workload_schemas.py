"""The JSON Schemas of answers about workloads: `explain`, `unblock`, `what-if`, `eta` and `history` with `-o json`."""

from __future__ import annotations

from kueuecore.agents.common_schemas import (
    BY_RESOURCE,
    CHECK_STATE,
    NOT_PLACED,
    NOW,
    PREEMPTION,
    RULE,
    WORKLOAD,
    answer,
)
from kueuecore.agents.shapes import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    TEXTS,
    described,
    free_record,
    list_of,
    mapping_of,
    one_of,
    optional,
    record,
)

__all__ = ["ETA", "EXPLAIN", "HISTORY", "UNBLOCK", "WHAT_IF"]

_LEVEL = record(
    {
        "kind": one_of("ClusterQueue", "Cohort"),
        "name": TEXT,
        "nominal": optional(TEXT),
        "borrowingLimit": optional(TEXT),
        "lendingLimit": optional(TEXT),
        "subtreeQuota": optional(TEXT),
        "usage": TEXT,
        "needed": TEXT,
        "available": optional(TEXT),
        "missing": TEXT,
        "binds": described(optional(TEXT), "Quota or BorrowingLimit: that is exhausted here"),
    }
)
_KEPT = record({"kind": TEXT, "name": TEXT, "free": TEXT})
_ASKED = record(
    {
        "resource": TEXT,
        "amount": TEXT,
        "potential": optional(TEXT),
        "verdict": one_of("Fits", "Contested", "ExceedsMaximum"),
        "levels": list_of(_LEVEL),
        "kept": list_of(_KEPT),
    }
)
_FLAVOR = record(
    {
        "flavor": TEXT,
        "mode": one_of("Fit", "Preempt", "NoFit"),
        "isChosen": FLAG,
        "borrowingLevel": COUNT,
        "preemption": optional(TEXT),
        "reasons": TEXTS,
        "asked": list_of(_ASKED),
    }
)
_CONTENDER = record({"kind": TEXT, "name": TEXT, "now": optional(NUMBER), "then": optional(NUMBER)})
_HOLDER = record(
    {
        "namespace": TEXT,
        "name": TEXT,
        "clusterQueue": TEXT,
        "priority": {"type": "integer"},
        "uses": list_of(record({"flavor": TEXT, "resource": TEXT, "amount": TEXT})),
        "verdict": described(TEXT, "what the search for victims says of it"),
        "rule": RULE,
        "link": TEXT,
        "why": TEXT,
        "shares": list_of(record({"strategy": TEXT, "ours": _CONTENDER, "theirs": _CONTENDER, "passes": FLAG})),
        "ties": list_of(record({"chosen": TEXT, "equals": TEXTS})),
    }
)
_FULL_NODE = record(
    {
        "flavor": TEXT,
        "path": TEXTS,
        "resource": TEXT,
        "asked": TEXT,
        "allocatable": TEXT,
        "outside": TEXT,
        "used": TEXT,
        "free": TEXT,
    }
)
_ON_NODE = record({"path": TEXTS, "heldBy": TEXT, "priority": {"type": "integer"}, "takes": TEXT, "why": TEXT})
EXPLAIN = answer(
    {
        **NOW,
        "workload": record(
            {
                **WORKLOAD,
                "ahead": described(TEXTS, "those ahead of it in its queue"),
                "whyAhead": list_of(record({"workload": TEXT, "rule": TEXT, "why": TEXT})),
                "replaces": optional(TEXT),
                "preemptedBy": optional(TEXT),
                "evicted": described(
                    optional(record({"at": TEXT, "reason": TEXT, "message": TEXT})),
                    "its last eviction, if it has had no quota since",
                ),
                "keptFor": described(TEXTS, "a cycle keeps quota for these; without any one it would get it"),
                "requeueAt": described(optional(TEXT), "until when it is not tried again"),
                "admissionChecks": list_of(CHECK_STATE),
                "note": optional(TEXT),
            }
        ),
        "would": described(one_of("Fits", "Preempts", "Waits"), "what the next cycle would do with it as its head"),
        "reason": TEXT,
        "message": TEXT,
        "obstacles": described(
            list_of(
                record(
                    {
                        "podSet": optional(COUNT),
                        "flavor": optional(TEXT),
                        "resource": optional(TEXT),
                        "rule": RULE,
                        "link": TEXT,
                        "text": TEXT,
                    }
                )
            ),
            "all that stands in its way, from the ClusterQueue up",
        ),
        "podSets": list_of(
            record(
                {
                    "index": COUNT,
                    "reasons": TEXTS,
                    "notTried": TEXTS,
                    "unavailable": TEXTS,
                    "flavors": list_of(_FLAVOR),
                }
            )
        ),
        "searches": described(
            list_of(
                record(
                    {
                        "contested": list_of(record({"flavor": TEXT, "resource": TEXT})),
                        "isFound": FLAG,
                        "asksForPlace": FLAG,
                        "holders": list_of(_HOLDER),
                    }
                )
            ),
            "who holds what it needs, and which of them may be preempted",
        ),
        "notPlaced": described(list_of(NOT_PLACED), "pod sets without a place in the topology"),
        "leftOut": described(TEXTS, "nodes of its flavors that take no pods"),
        "fullNodes": described(list_of(_FULL_NODE), "what nodes lack for one more of its pods"),
        "onNodes": described(list_of(_ON_NODE), "who is on those nodes"),
    }
)

_EDIT = record({"target": described(TEXT, "KIND/NAME:PATH"), "value": {}})
UNBLOCK = answer(
    {
        **NOW,
        "workload": record(WORKLOAD),
        "tried": COUNT,
        "isStopped": FLAG,
        "notTried": TEXTS,
        "changes": described(
            list_of(
                record(
                    {
                        "kind": TEXT,
                        "what": TEXT,
                        "before": TEXT,
                        "after": TEXT,
                        "edits": described(list_of(_EDIT), "`what_if` takes each as `set`: TARGET=VALUE"),
                        "deletions": described(TEXTS, "`what_if` takes them as `delete`"),
                        "objects": list_of(free_record("a Kubernetes object to add")),
                        "would": TEXT,
                        "preemptions": list_of(record(PREEMPTION)),
                        "evicted": TEXTS,
                        "moved": TEXTS,
                        "isLeast": FLAG,
                    }
                )
            ),
            "each was tried and admits it; those that disturb others least come first",
        ),
        "notEnough": list_of(record({"kind": TEXT, "what": TEXT, "before": TEXT, "most": TEXT, "why": TEXT})),
    }
)

_STANDING = record(
    {
        "stage": TEXT,
        "clusterQueue": optional(TEXT),
        "flavors": mapping_of(BY_RESOURCE),
        "message": TEXT,
    }
)
WHAT_IF = answer(
    {
        **NOW,
        "workloads": described(
            list_of(
                record(
                    {
                        "workload": TEXT,
                        "job": optional(TEXT),
                        "localQueue": TEXT,
                        "clusterQueue": optional(TEXT),
                        "would": one_of("Fits", "Preempts", "Waits", "Undecided"),
                        "ahead": COUNT,
                        "podSets": list_of(
                            record(
                                {
                                    "name": TEXT,
                                    "count": COUNT,
                                    "flavors": BY_RESOURCE,
                                    "resourceUsage": BY_RESOURCE,
                                    "domains": mapping_of(COUNT),
                                }
                            )
                        ),
                        "preemptions": list_of(record({**PREEMPTION, "why": optional(TEXT)})),
                        "reason": TEXT,
                        "message": TEXT,
                        "undecided": optional(record({"field": TEXT, "message": TEXT})),
                    }
                )
            ),
            "the workloads of `objects`, each tried alone",
        ),
    },
    may_lack={
        "settled": described(
            record(
                {
                    "ending": one_of("Settled", "Repeating", "CycleLimit"),
                    "cycles": COUNT,
                    "moves": list_of(
                        record(
                            {
                                "workload": TEXT,
                                "move": TEXT,
                                "before": optional(_STANDING),
                                "after": optional(_STANDING),
                            }
                        )
                    ),
                }
            ),
            "with `settle`: who moves",
        )
    },
)

_QUANTILE = record({"percent": NUMBER, "seconds": optional(NUMBER), "time": optional(TEXT)})
_BOUNDS = record(
    {
        "notBefore": described(
            optional(record({"ends": COUNT, "isExact": FLAG, "holding": COUNT, "goFirst": COUNT, "workloads": TEXTS})),
            "how many of those that hold quota must end first",
        ),
        "latest": described(
            optional(record({"seconds": NUMBER, "time": TEXT, "isBound": FLAG})),
            "if nobody arrives and all jobs run to their limits",
        ),
        "pastWaits": optional(
            record(
                {
                    "clusterQueue": TEXT,
                    "n": COUNT,
                    "quantiles": list_of(record({"percent": NUMBER, "seconds": optional(NUMBER)})),
                }
            )
        ),
    }
)
ETA = answer(
    {
        **NOW,
        "horizonSeconds": NUMBER,
        "futures": COUNT,
        "futuresAsked": COUNT,
        "isShortened": FLAG,
        "seeds": list_of(COUNT),
        "unknown": described(optional(TEXT), "why there are bounds at most"),
        "nMoments": described(COUNT, "at how many moments of the past the same was forecast"),
        "record": described(
            optional(record({"n": COUNT, "nHeld": COUNT, "nEarly": COUNT, "nLate": COUNT})),
            "how many 80 % intervals of the past held",
        ),
        "workloads": list_of(
            record(
                {
                    "namespace": TEXT,
                    "name": TEXT,
                    "job": optional(TEXT),
                    "status": TEXT,
                    "since": optional(TEXT),
                    "quantiles": described(list_of(_QUANTILE), "null: not within the horizon"),
                    "futures": described(list_of(_QUANTILE), "the same over the futures alone, not calibrated"),
                    "isCalibrated": FLAG,
                    "shareNotAdmitted": optional(NUMBER),
                    "never": described(optional(TEXT), "why it is never admitted as things are"),
                    "bounds": described(optional(_BOUNDS), "what holds however long jobs run, if too few have ended"),
                    "draws": described(list_of(optional(NUMBER)), "seconds to admission in each future"),
                }
            )
        ),
        "assumptions": record(
            {
                "holdingQuota": COUNT,
                "pending": COUNT,
                "jobsOfScenario": COUNT,
                "arrivalWindowSeconds": optional(NUMBER),
                "arrivals": list_of(record({"localQueue": TEXT, "seen": COUNT, "perHour": NUMBER})),
                "runTimes": list_of(
                    record(
                        {
                            "localQueue": optional(TEXT),
                            "priority": optional({"type": "integer"}),
                            "source": TEXT,
                            "finished": COUNT,
                            "running": COUNT,
                            "medianSeconds": optional(NUMBER),
                        }
                    )
                ),
                "warnings": TEXTS,
            }
        ),
    }
)

_STEP = record(
    {
        "at": described(optional(TEXT), "when, RFC 3339; null: not recorded"),
        "before": described(optional(TEXT), "of one without `at`: it was before this time"),
        "until": optional(TEXT),
        "what": described(
            TEXT, "such as Created, Waiting, QuotaReserved, Admitted, Preempted, Evicted, Requeued, Finished"
        ),
        "by": described(optional(TEXT), "who did it, such as the workload that preempted it"),
        "cluster": optional(TEXT),
        "rule": optional(RULE),
        "link": optional(TEXT),
        "sentence": TEXT,
        "reason": TEXT,
        "message": TEXT,
        "count": described(COUNT, "how often this was recorded"),
        "sources": described(TEXTS, "where it is recorded"),
    }
)
HISTORY = answer(
    {
        "workload": record({"namespace": TEXT, "name": TEXT, "status": optional(TEXT)}),
        "steps": described(list_of(_STEP), "oldest first; of a long history the newest"),
        "notRecorded": described(TEXTS, "what is not known, and why"),
    }
)
