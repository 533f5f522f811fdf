"""Describes in sentences what keeps a workload waiting, each with the rule behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kueuecore.answers.amounts import quantity_of, units_of
from kueuecore.answers.explanation import Asked, Explanation, Fate, FlavorTrial, Holder, Level, Search
from kueuecore.answers.shares import why_by_share
from kueuecore.states import Stage

__all__ = ["Obstacle", "obstacles", "rule_link", "why_by_fair_sharing", "why_it_borrows", "why_so"]

_FILES = {
    "02": "02-quota.md",
    "03": "03-flavor-assignment.md",
    "04": "04-preemption.md",
    "05": "05-cycle.md",
    "07": "07-admission-checks.md",
    "08": "08-topology.md",
    "09": "09-fair-sharing-admission.md",
    "10": "10-jobs.md",
    "13": "13-experiments.md",
}

_NO_ORIGINS: Mapping[str, str] = MappingProxyType({})
_NO_PLACE = "the pods have no place on the nodes of this flavor, even without other workloads"
# How Kueue's reasons about quota begin.
_ABOUT_QUOTA = "insufficient "
_OF_EXPERIMENT = "(experiment reclaimBackoffSeconds, not in Kueue)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A reason why a pod set cannot use a flavor.

    Args:
        pod_set: Index of the pod set; None if it concerns all of them.
        flavor: The flavor; empty if it concerns all of them.
        resource: The resource; empty if it concerns none in particular.
        rule: The section of docs/rules, such as `02 §2.2`.
        text: A sentence without a full stop.
    """

    pod_set: int | None
    flavor: str
    resource: str
    rule: str
    text: str


def rule_link(rule: str) -> str:
    """Return the path of a rule's file, from the root of the repository.

    Example:
        >>> rule_link("02 §2.2")
        'docs/rules/02-quota.md'
    """
    return f"docs/rules/{_FILES[rule.partition(' ')[0]]}"


def obstacles(explanation: Explanation, *, origins: Mapping[str, str] = _NO_ORIGINS) -> tuple[Obstacle, ...]:
    """List the obstacles by flavor and resource, from the ClusterQueue up.

    Args:
        explanation: The explanation of the decision.
        origins: Where requests come from that the job does not make, by resource, such as `LimitRange lab/sizes`.
    """
    workload, queue = explanation.workload, explanation.workload.cluster_queue or ""
    found = []
    if workload.stage is Stage.PENDING and not explanation.pod_sets:
        found.append(_before_flavors(explanation))
    for pod_set in explanation.pod_sets:
        for resource in pod_set.unavailable:
            hint = explanation.uncovered.get(resource, "")
            text = f"ClusterQueue {queue} has no quota for {_named(resource, origins)} in any flavor"
            text += f"; {hint}" if hint else ""
            found.append(Obstacle(pod_set=pod_set.index, flavor="", resource=resource, rule="03 §3", text=text))
        n_before = len(found)
        # Kueue has no words for it where the pods lack quota as well.
        says_place = any("topology" in reason for reason in pod_set.reasons)
        for trial in pod_set.trials:
            found += _of_trial(trial, pod_set.index, queue, origins)
            if pod_set.lacks_place and trial.is_chosen and not says_place:
                found.append(
                    Obstacle(pod_set=pod_set.index, flavor=trial.flavor, resource="", rule="08 §11.5", text=_NO_PLACE)
                )
        if len(found) == n_before and not pod_set.unavailable:
            # There is quota, but no room on nodes; or a selector matches nothing.
            found += [_reason(reason, pod_set.index) for reason in pod_set.reasons]
    return tuple(found)


def _before_flavors(explanation: Explanation) -> Obstacle:
    """Why the decision did not even get to flavors."""
    status = explanation.workload.message
    rule, text = "05 §6.1", status if explanation.repeats_status else explanation.now.message or status
    if explanation.queue is not None and not explanation.queue.is_active:
        rule, text = "02 §5", f"ClusterQueue {explanation.queue.name}: {explanation.queue.message}"
    return Obstacle(pod_set=None, flavor="", resource="", rule=rule, text=text)


def _reason(reason: str, pod_set: int, flavor: str = "") -> Obstacle:
    rule = "08 §10" if "topology" in reason else "03 §5"
    if _OF_EXPERIMENT in reason:
        rule = "13 §3"
    return Obstacle(pod_set=pod_set, flavor=flavor, resource="", rule=rule, text=reason)


def _of_trial(trial: FlavorTrial, pod_set: int, queue: str, origins: Mapping[str, str]) -> Iterator[Obstacle]:
    if trial.mode == "Fit":
        return
    lacks_quota = False
    for asked in trial.asked:
        for rule, text in _of_quota(asked, queue, _named(asked.resource, origins)):
            lacks_quota = True
            yield Obstacle(pod_set=pod_set, flavor=trial.flavor, resource=asked.resource, rule=rule, text=text)
    for reason in trial.reasons:
        # What does not fit a flavor whose quota does not suffice either needs both to change.
        if not lacks_quota or not reason.startswith(_ABOUT_QUOTA):
            yield _reason(reason, pod_set, trial.flavor)


def _of_quota(asked: Asked, queue: str, resource: str) -> Iterator[tuple[str, str]]:
    if asked.verdict == "ExceedsMaximum":
        text = f"{asked.amount} {resource} is more than ClusterQueue {queue} could get if nothing else ran: "
        yield "02 §2.3", f"{text}{asked.potential}"
    if asked.verdict != "Contested":
        return
    for level in asked.levels:
        if level.binds is not None:
            bound = _bound(level, asked.resource)
            yield "02 §2.2", bound if resource == asked.resource else f"{bound} for {resource}"
    for kept in asked.kept:
        yield (
            "02 §2",
            f"{kept.kind} {kept.name} has {kept.free} {asked.resource} free, which its lendingLimit withholds",
        )


def _named(resource: str, origins: Mapping[str, str]) -> str:
    """A resource, with where its request comes from if the job does not make it."""
    return f"{resource} (from {origins[resource]})" if origins.get(resource) else resource


def _bound(level: Level, resource: str) -> str:
    who = f"{level.kind} {level.name}"
    has = f"{who} has {level.subtree_quota or 'unlimited'} {resource}"
    if level.binds == "BorrowingLimit":
        return f"{has}, may borrow {level.borrowing_limit} and uses {level.usage}: {level.missing} short"
    if _is_overdrawn(level, resource):
        return f"{has}, and {level.usage} are in use: {level.missing} short"
    return f"{has}, of which {level.usage} are in use: {level.missing} short"


def _is_overdrawn(level: Level, resource: str) -> bool:
    """Whether more is in use than there is, as after a quota was lowered."""
    total = level.subtree_quota
    return total is not None and units_of(resource, level.usage) > units_of(resource, total)


def why_it_borrows(trial: FlavorTrial) -> str:
    """Say how much a request borrows, and from which cohort (rules/02 §2.4); empty if it does not borrow."""
    return "; ".join(_borrowed(asked) for asked in trial.asked if trial.borrowing_level and _is_over(asked))


def _is_over(asked: Asked) -> bool:
    own, name = asked.levels[0], asked.resource
    total = units_of(name, own.usage) + units_of(name, asked.amount)
    return own.subtree_quota is not None and total > units_of(name, own.subtree_quota) and len(asked.levels) > 1


def _borrowed(asked: Asked) -> str:
    (own, lender, *_), name = asked.levels, asked.resource
    total = units_of(name, own.usage) + units_of(name, asked.amount)
    over = quantity_of(name, total - units_of(name, own.subtree_quota))
    has = f"{own.kind} {own.name} has {own.subtree_quota} {name} and uses {own.usage}"
    return f"{has}: with {asked.amount} more it borrows {over} in all from {lender.kind} {lender.name} (02 §2.4)"


def why_by_fair_sharing(explanation: Explanation, victim: str) -> str:
    """Say which shares made a workload the victim of another one, and whether a tie did; empty if shares did not.

    Args:
        explanation: The explanation for the preemptor.
        victim: The key of the victim.
    """
    for search in reversed(explanation.searches):
        for holder in search.holders:
            if holder.key == victim and holder.fate is Fate.VICTIM:
                return why_by_share(holder.comparisons, holder.ties)
    return ""


def why_so(holder: Holder, explanation: Explanation, search: Search) -> tuple[str, str]:
    """Say why a search for victims took or spared a workload: the rule, and a sentence without a full stop.

    Args:
        holder: The workload.
        explanation: The explanation for the preemptor.
        search: The search.
    """
    ours = explanation.workload
    own = holder.cluster_queue == ours.cluster_queue
    policy = "withinClusterQueue" if own else "reclaimWithinCohort"
    only_quota = explanation.is_about_quota_alone(search)
    taken = "it would be preempted if only quota counted" if only_quota else "it is preempted"
    match holder.fate:
        case Fate.VICTIM if by_share := why_by_share(holder.comparisons, holder.ties):
            return "04 §5.4", f"{taken}: {by_share}"
        case Fate.VICTIM:
            return "04 §4", taken
        case Fate.NOT_NEEDED:
            return "04 §4.5", "it could be preempted, but others are enough"
        case Fate.NOT_ENOUGH:
            return "04 §4.4", "it could be preempted, but even with all other candidates that is not enough"
        case Fate.POLICY:
            return "04 §2", f"{policy} of ClusterQueue {ours.cluster_queue} is Never"
        case Fate.PRIORITY:
            return "04 §2", f"its priority, {holder.priority}, is not below {ours.priority} ({policy})"
        case Fate.OLDER:
            return "04 §2", f"its priority is the same, and it is older ({policy})"
        case Fate.INACTIVE:
            return "04 §4.2", f"ClusterQueue {holder.cluster_queue} is inactive"
        case Fate.WITHIN_NOMINAL:
            return "04 §4.2", f"ClusterQueue {holder.cluster_queue} uses no more than its own quota"
        case Fate.COHORT_WITHIN_NOMINAL:
            return "04 §4.2", f"a cohort above ClusterQueue {holder.cluster_queue} uses no more than its own quota"
        case Fate.WOULD_BORROW:
            text = f"ClusterQueue {ours.cluster_queue} would borrow, and has no borrowWithinCohort"
            return "03 §4.1", text
        case Fate.THRESHOLD:
            return "04 §4.1", f"borrowWithinCohort of ClusterQueue {ours.cluster_queue} protects its priority"
        case Fate.SHARE:
            return "04 §5.4", why_by_share(holder.comparisons) or "the shares of the two sides do not allow it"
        case Fate.BACK_WITHIN_NOMINAL:
            text = f"without the earlier victims, ClusterQueue {holder.cluster_queue} is back within its own quota"
            return "04 §4.4", text
        case Fate.JUST_STARTED:
            return "13 §1", "it has not run for as long as an experiment, which Kueue does not have, grants it"
