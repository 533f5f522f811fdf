"""What a job does in a simulation once it is admitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from kueuecore._arguments import flag, instance, text
from kueuecore._rows import json_name
from kueuecore.times import later

__all__ = ["JobPlan", "NodeLoss"]


class NodeLoss(StrEnum):
    """What happens to a job's run when Kueue records that one of its nodes failed (`status.unhealthyNodes`).

    The pods have left that node by then (`JobPlan.linger_seconds`). It lasts until they get another node
    (`StepKind.REPLACED`) or the node is back; a job that is evicted instead starts over once it is admitted again.
    """

    RUNS_ON = "RunsOn"
    """It keeps running, as in the recorded runs of Kueue."""
    WAITS = "Waits"
    """It pauses and then continues: its work is saved elsewhere."""
    STARTS_OVER = "StartsOver"
    """It pauses and then starts over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """What a job does once it is admitted; by default it runs forever, and nothing goes wrong.

    Args:
        run_seconds: How long it runs; `None`: forever.
        ready_seconds: With `waitForPodsReady` in the configuration, how long after its n-th admission its pods are
            ready. The last entry holds for all later admissions; `None` in the list: never. Without a list, at once.
            `run_seconds` starts when the pods are first ready in an admission. Pods that replace those of a lost node
            take the same time.
        fail_seconds: How long after they are first ready in an admission one of them fails; `None`: never.
        recover_seconds: How long after the failure all are ready again; `None`: never.
        linger_seconds: How long its pods stay on a failed node (rules/08 §13.2); `None`: they are gone at once.
        node_loss: What happens to its run once they are gone.
        save_seconds: The work between two checkpoints. If it is evicted, or starts over after a node failure, it
            continues from the last checkpoint; `None`: it has none, and starts from the beginning.
        ends_failed: Whether it fails at the end of its run time: the reason of its condition Finished is `Failed`
            instead of `Succeeded`.
        done_seconds: How much of its run was done when it arrived, for a Workload that was admitted before. An eviction
            loses that too.
    """

    run_seconds: float | None = None
    ready_seconds: Sequence[float | None] | None = None
    fail_seconds: float | None = None
    recover_seconds: float | None = None
    linger_seconds: float | None = None
    node_loss: NodeLoss = NodeLoss.RUNS_ON
    save_seconds: float | None = None
    ends_failed: bool = False
    done_seconds: float | None = None


def plan_fields(plan: JobPlan) -> dict[str, object]:
    """Return a plan as the fields of an event in JSON, whose spans the extension checks.

    Raises:
        TypeError: It is not a plan, or one of its other values has the wrong type.
    """
    instance("plan", plan, JobPlan)
    ready = plan.ready_seconds
    if ready is not None and not isinstance(ready, list | tuple):
        raise TypeError(f"ready_seconds must be a list of numbers of seconds, not {type(ready).__name__}")
    values = {name: getattr(plan, name) for name in _JSON_NAMES}
    values |= {"node_loss": text("node_loss", plan.node_loss), "ends_failed": flag("ends_failed", plan.ends_failed)}
    return {_JSON_NAMES[name]: value for name, value in values.items()}


def check_plan(plan: JobPlan, *, at: int) -> None:
    """Check a plan as `plan_fields` does, and its spans.

    Args:
        plan: The plan.
        at: The earliest time at which the job may start, in nanoseconds since 1970.

    Raises:
        TypeError: One of its values has the wrong type.
        ValueError: One of its spans is invalid, or goes past April 2262.
    """
    plan_fields(plan)
    NodeLoss(plan.node_loss)
    spans = [(name, getattr(plan, name)) for name in _SPANS]
    spans += [("ready_seconds", seconds) for seconds in plan.ready_seconds or ()]
    for name, seconds in spans:
        if seconds is not None and later(at, seconds, name) == at and name == "save_seconds":
            raise ValueError("save_seconds: must be greater than 0")


_JSON_NAMES = {field.name: json_name(field.name) for field in fields(JobPlan)}
_SPANS = [name for name in _JSON_NAMES if name.endswith("_seconds") and name != "ready_seconds"]
