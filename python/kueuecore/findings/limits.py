"""Limits that never bind, and quota that nobody else can use (rules/02 §2)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from kueuecore._json import text_at
from kueuecore._quantities import number
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.manifest_fields import QuotaField, quota_fields
from kueuecore.findings.quota_tree import Node, Quotas, plain
from kueuecore.manifests import Manifest

__all__ = ["idle_cohort_quota", "lent_to_nobody", "loose_borrowing", "loose_lending", "no_capacity", "unshared_flavors"]


def _quotas(facts: Facts) -> Iterator[tuple[Manifest, Node, QuotaField, Quotas]]:
    """Each quota as it stands in a manifest, and as the engine has added it up."""
    for owner in (*facts.cluster_queues.values(), *facts.cohorts.values()):
        node = Node(text_at(owner.object, "kind"), text_at(owner.object, "metadata", "name"))
        for field in quota_fields(owner):
            if (field.flavor, field.resource) in facts.tree.quotas.get(node, {}):
                yield owner, node, field, facts.tree.quotas_of(node, field.flavor, field.resource)


@rule("KC201", "loose-borrowing-limit", Severity.NOTE, "a borrowingLimit as high as all that could be borrowed")
def loose_borrowing(facts: Facts) -> Iterator[Hit]:
    """It never binds if own quota and limit come to what is there if nothing else runs (rules/02 §2.3)."""
    for owner, node, field, quotas in _quotas(facts):
        limit, parent = quotas.borrowing_limit, facts.tree.parents.get(node)
        if not limit or parent is None or quotas.total == float("inf"):
            continue
        kept = Fraction(0) if quotas.lending_limit is None else max(Fraction(0), quotas.total - quotas.lending_limit)
        above = facts.tree.quotas_of(parent, field.flavor, field.resource).potential
        if quotas.total + limit >= kept + above:
            most = max(Fraction(0), kept + above - quotas.total)
            yield hit(
                owner,
                f"it never binds: all that could be borrowed is {plain(most, field.resource)} {field.resource}",
                field=f"{field.path}.borrowingLimit",
                remedy="lower it, or remove it",
            )


@rule("KC202", "loose-lending-limit", Severity.NOTE, "a lendingLimit as high as all that could be lent")
def loose_lending(facts: Facts) -> Iterator[Hit]:
    """As if there were none: nothing is kept back (rules/02 §2)."""
    for owner, node, field, quotas in _quotas(facts):
        limit = quotas.lending_limit
        if limit and node in facts.tree.parents and limit >= quotas.total:
            yield hit(
                owner,
                f"it never binds: all that could be lent is {plain(quotas.total, field.resource)} {field.resource}",
                field=f"{field.path}.lendingLimit",
                remedy="lower it, or remove it",
            )


@rule("KC203", "lent-to-nobody", Severity.WARNING, "a lendingLimit where nobody in the cohort can borrow")
def lent_to_nobody(facts: Facts) -> Iterator[Hit]:
    """Others do not list the resource, or have a borrowingLimit of 0."""
    for owner, node, field, quotas in _quotas(facts):
        if not quotas.lending_limit or not quotas.total or node not in facts.tree.parents or not facts.tree.path(node):
            continue
        if any(facts.tree.borrowers(node, field.flavor, field.resource)):
            continue
        yield hit(
            owner,
            f"nobody can borrow it: no other ClusterQueue of the cohort has {field.resource} of flavor {field.flavor} "
            "and may borrow it",
            field=f"{field.path}.lendingLimit",
            remedy="raise the borrowingLimit of others, add the flavor to them, or remove this limit",
        )


@rule("KC204", "unshared-flavor", Severity.NOTE, "quota in a flavor that no other ClusterQueue of the cohort has")
def unshared_flavors(facts: Facts) -> Iterator[Hit]:
    """Where a lendingLimit says that it is to be lent, `lent-to-nobody` speaks."""
    tree = facts.tree
    reported = set()
    for owner, node, field, quotas in _quotas(facts):
        path = tree.path(node)
        if node.kind != "ClusterQueue" or len(path) < 2 or not quotas.nominal or quotas.lending_limit is not None:
            continue
        others = [it for it in tree.members[path[-1]] if it != node]
        is_shared = any(field.flavor == flavor for it in others for flavor, _ in tree.quotas.get(it, {}))
        if others and not is_shared and (node, field.flavor) not in reported:
            reported.add((node, field.flavor))
            yield hit(
                owner,
                f"no other ClusterQueue of the cohort has flavor {field.flavor}, so nobody can borrow this quota",
                field=f"{field.flavor_path}.name",
                remedy="add the flavor to those that shall borrow it, if need be with a nominalQuota of 0",
            )


@rule("KC205", "idle-cohort-quota", Severity.WARNING, "quota of a Cohort that no ClusterQueue can use")
def idle_cohort_quota(facts: Facts) -> Iterator[Hit]:
    """Quota of a Cohort is there to be borrowed: somebody has to list its flavor."""
    for owner, node, field, quotas in _quotas(facts):
        if node.kind != "Cohort" or not quotas.nominal or not (path := facts.tree.path(node)):
            continue
        members = facts.tree.members.get(path[-1], ())
        if not any((field.flavor, field.resource) in facts.tree.quotas.get(it, {}) for it in members):
            yield hit(
                owner,
                f"no ClusterQueue of the cohort has {field.resource} of flavor {field.flavor}, so nobody can use it",
                field=f"{field.path}.nominalQuota",
                remedy="add the flavor to the ClusterQueues, if need be with a nominalQuota of 0, or remove it here",
            )


@rule("KC206", "no-capacity", Severity.NOTE, "a ClusterQueue that has nothing of a resource, and can borrow nothing")
def no_capacity(facts: Facts) -> Iterator[Hit]:
    """A quota of 0 may mean that nobody shall use the flavor now."""
    for owner, node, field, quotas in _quotas(facts):
        if node.kind == "ClusterQueue" and quotas.potential == 0 and number(field.amounts.get("nominalQuota")) == 0:
            yield hit(
                owner,
                f"there is no {field.resource} of flavor {field.flavor} here, and none to borrow",
                field=f"{field.path}.nominalQuota",
                remedy="give it quota here or in its cohort, or remove the flavor",
            )
