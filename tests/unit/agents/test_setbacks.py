"""The sentences about what sets a workload back, beyond quota."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kueuecore.agents.setbacks import say_others, say_setback

AT, UNTIL = "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"
RETRY = {"name": "budget", "state": "Retry", "message": "no budget"}
TIMEOUT = {"at": AT, "reason": "PodsReadyTimeout", "message": "too late"}
OVER = {"at": AT, "reason": "DeactivatedDueToX", "message": "over"}


def named(names: Iterable[str]) -> str:
    return " and ".join(names)


def document(*, status: str = "Pending", **workload: Any) -> dict[str, Any]:
    return {"workload": {"status": status, **workload}}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (document(), ""),
        (document(status="QuotaReserved", admissionChecks=[{"name": "budget", "state": "Ready"}], requeueAt=UNTIL), ""),
        (
            document(status="QuotaReserved", admissionChecks=[RETRY], requeueAt=UNTIL),
            f"it waits for admission check budget, in state Retry: no budget; it holds its quota until {UNTIL}",
        ),
        (
            document(status="QuotaReserved", admissionChecks=[{"name": "a"}, {"name": "b"}]),
            "it waits for admission check a, in state Pending; it waits for admission check b, in state Pending",
        ),
        # Waiting for quota again is what the obstacles are about.
        (document(evicted=TIMEOUT), ""),
        (
            document(evicted=TIMEOUT, requeueAt=UNTIL),
            f"it was evicted at {AT} (PodsReadyTimeout): too late; it is not tried again before {UNTIL}",
        ),
        (document(evicted=OVER), f"it was evicted at {AT} (DeactivatedDueToX): over"),
        (
            document(keptFor=["lab/a", "lab/b"]),
            "quota is kept for lab/a and lab/b, which gets none yet: without it this workload would get quota "
            "(rule 05 §6.4)",
        ),
        ({**document(), "notPlaced": [{"why": "no room"}], "leftOut": ["n1 is cordoned"]}, "no room; n1 is cordoned"),
    ],
)
def test_what_sets_it_back_is_said(answer: dict[str, Any], said: str) -> None:
    assert say_setback(answer, named) == said


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (document(), ""),
        (document(preemptedBy="lab/high"), "it was preempted by lab/high"),
        (
            document(whyAhead=[{"workload": "lab/a", "why": "it is older"}, {"workload": "lab/b", "why": "x"}]),
            "ahead of it in the queue: lab/a and lab/b; of the first: it is older",
        ),
        (
            {
                **document(),
                "onNodes": [
                    {"heldBy": "lab/a", "why": "Victim: it is preempted"},
                    {"heldBy": "Pod x/y", "why": "a pod outside Kueue"},
                ],
            },
            "on the nodes are lab/a and Pod x/y; of Pod x/y: a pod outside Kueue",
        ),
    ],
)
def test_others_are_named(answer: dict[str, Any], said: str) -> None:
    assert say_others(answer, named) == said
