"""Rules about cohorts that share nothing, and policies that need a cohort (rules/02 §4, rules/04)."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import object_at, text_at
from kueuecore._quantities import number
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.manifest_fields import parent_field, quota_fields
from kueuecore.findings.quota_tree import Node
from kueuecore.manifests import Manifest

__all__ = ["circles", "lonely_members", "policies_without_cohort", "unused_cohorts", "weight_zero"]


@rule(
    "KC301",
    "policy-without-cohort",
    Severity.WARNING,
    "a borrowing or preemption policy without the cohort that it needs",
)
def policies_without_cohort(facts: Facts) -> Iterator[Hit]:
    """Limits and policies that have no effect without a cohort; an API server rejects such limits in new objects."""
    for owner in (*facts.cluster_queues.values(), *facts.cohorts.values()):
        is_queue = text_at(owner.object, "kind") == "ClusterQueue"
        node = Node(text_at(owner.object, "kind"), text_at(owner.object, "metadata", "name"))
        if node in facts.tree.parents:
            continue
        name = parent_field(owner).removeprefix("spec.")
        for field in _policies(owner):
            yield hit(
                owner,
                f"it has no effect without {name}",
                field=field,
                remedy=f"set {name} to {'a cohort' if is_queue else 'a parent Cohort'}, or remove it",
            )


def _policies(owner: Manifest) -> Iterator[str]:
    """The fields that only have an effect in a cohort."""
    preemption = object_at(owner.object, "spec", "preemption")
    if text_at(preemption, "reclaimWithinCohort") not in ("", "Never"):
        yield "spec.preemption.reclaimWithinCohort"
    if text_at(preemption, "borrowWithinCohort", "policy") not in ("", "Never"):
        yield "spec.preemption.borrowWithinCohort.policy"
    if "weight" in object_at(owner.object, "spec", "fairSharing"):
        yield "spec.fairSharing.weight"
    for quota in quota_fields(owner):
        for name in ("borrowingLimit", "lendingLimit"):
            if quota.amounts.get(name) is not None:
                yield f"{quota.path}.{name}"


@rule("KC302", "lonely-member", Severity.NOTE, "a cohort with one ClusterQueue and no quota of its own")
def lonely_members(facts: Facts) -> Iterator[Hit]:
    """There is nobody to borrow from or lend to; the name may be misspelt."""
    tree = facts.tree
    for root, members in tree.members.items():
        if len(members) > 1 or root in tree.with_quota:
            continue
        owner = facts.cluster_queues[members[0].name]
        cohort = tree.parents[members[0]].name
        yield hit(
            owner,
            f"it is the only ClusterQueue of cohort {cohort}, so it has nobody to borrow from or lend to",
            field=parent_field(owner),
            remedy="correct the name, or add others to the cohort",
        )


@rule("KC303", "cohort-circle", Severity.ERROR, "Cohorts that form a cycle")
def circles(facts: Facts) -> Iterator[Hit]:
    """Every ClusterQueue below such a cycle is inactive (rules/02 §4)."""
    for circle in facts.tree.cycles:
        owner = facts.cohorts[circle[0].name]
        chain = " -> ".join(entry.name for entry in (*circle, circle[0]))
        yield hit(
            owner,
            f"cohorts form a cycle, {chain}, so no ClusterQueue below them admits anything",
            field=parent_field(owner),
            remedy="remove the parent of one of them",
        )


@rule("KC304", "unused-cohort", Severity.WARNING, "a Cohort that no ClusterQueue and no other Cohort belongs to")
def unused_cohorts(facts: Facts) -> Iterator[Hit]:
    """One with quota in a larger tree is fine: others borrow from it. Without ClusterQueues, they may be elsewhere."""
    tree = facts.tree
    named = set(tree.parents.values())
    for name, owner in facts.cohorts.items():
        node = Node("Cohort", name)
        path = tree.path(node)
        lends = (
            any(quota.nominal for quota in tree.quotas.get(node, {}).values()) and path and tree.members.get(path[-1])
        )
        if facts.cluster_queues and node not in named and not lends:
            yield hit(
                owner,
                "no ClusterQueue and no Cohort belongs to it, so it does nothing",
                field="metadata.name",
                remedy="set cohortName of some ClusterQueues to it, or delete it",
            )


@rule("KC305", "weight-zero", Severity.WARNING, "a fairSharing weight of 0 that puts all others first")
def weight_zero(facts: Facts) -> Iterator[Hit]:
    """With weight 0 anything borrowed makes the share infinite, so it comes last (rules/02 §6)."""
    for owner in (*facts.cluster_queues.values(), *facts.cohorts.values()):
        node = Node(text_at(owner.object, "kind"), text_at(owner.object, "metadata", "name"))
        weight = number(object_at(owner.object, "spec", "fairSharing").get("weight"))
        quotas = facts.tree.quotas.get(node, {}).values()
        if weight == 0 and node in facts.tree.parents and not any(quota.total for quota in quotas):
            yield hit(
                owner,
                "it has no quota of its own, and with weight 0 it borrows only what nobody else in the cohort wants",
                field="spec.fairSharing.weight",
                remedy="give it a weight above 0, or quota",
            )
