"""Rules about limits that never bind, and quota that nobody else can use (rules/02 §2)."""

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
    """Each quota as written in a manifest, and as totalled by the engine."""
    for owner in (*facts.cluster_queues.values(), *facts.cohorts.values()):
        node = Node(text_at(owner.object, "kind"), text_at(owner.object, "metadata", "name"))
        for field in quota_fields(owner):
            if (field.flavor, field.resource) in facts.tree.quotas.get(node, {}):
                yield owner, node, field, facts.tree.quotas_of(node, field.flavor, field.resource)


@rule("KC201", "loose-borrowing-limit", Severity.NOTE, "a borrowingLimit no lower than all there is to borrow")
def loose_borrowing(facts: Facts) -> Iterator[Hit]:
    """It never binds if own quota plus limit reach what is available when nothing else runs (rules/02 §2.3)."""
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
                f"it never binds: there is only {plain(most, field.resource)} {field.resource} to borrow",
                field=f"{field.path}.borrowingLimit",
                remedy="lower it, or remove it",
            )


@rule("KC202", "loose-lending-limit", Severity.NOTE, "a lendingLimit no lower than all there is to lend")
def loose_lending(facts: Facts) -> Iterator[Hit]:
    """It withholds nothing, as if there were no limit (rules/02 §2)."""
    for owner, node, field, quotas in _quotas(facts):
        limit = quotas.lending_limit
        if limit and node in facts.tree.parents and limit >= quotas.total:
            yield hit(
                owner,
                f"it never binds: there is only {plain(quotas.total, field.resource)} {field.resource} to lend",
                field=f"{field.path}.lendingLimit",
                remedy="lower it, or remove it",
            )


@rule("KC203", "lent-to-nobody", Severity.WARNING, "a lendingLimit where nobody in the cohort can borrow")
def lent_to_nobody(facts: Facts) -> Iterator[Hit]:
    """The others do not list the resource, or have a borrowingLimit of 0."""
    for owner, node, field, quotas in _quotas(facts):
        if not quotas.lending_limit or not quotas.total or node not in facts.tree.parents or not facts.tree.path(node):
            continue
        if any(facts.tree.borrowers(node, field.flavor, field.resource)):
            continue
        yield hit(
            owner,
            f"nobody can borrow it: no other ClusterQueue in the cohort lists {field.resource} in flavor "
            f"{field.flavor} and may borrow",
            field=f"{field.path}.lendingLimit",
            remedy="raise the borrowingLimit of others, add the flavor to them, or remove this limit",
        )


@rule("KC204", "unshared-flavor", Severity.NOTE, "quota in a flavor that no other ClusterQueue in the cohort lists")
def unshared_flavors(facts: Facts) -> Iterator[Hit]:
    """With a lendingLimit, which shows the intention to lend, `lent-to-nobody` reports it instead."""
    tree = facts.tree
    reported = set()
    for owner, node, field, quotas in _quotas(facts):
        path = tree.path(node)
        if node.kind != "ClusterQueue" or len(path) < 2 or not quotas.nominal or quotas.lending_limit is not None:
            continue
        others = [member for member in tree.members[path[-1]] if member != node]
        is_shared = any(field.flavor == flavor for other in others for flavor, _ in tree.quotas.get(other, {}))
        if others and not is_shared and (node, field.flavor) not in reported:
            reported.add((node, field.flavor))
            yield hit(
                owner,
                f"no other ClusterQueue in the cohort lists flavor {field.flavor}, so nobody can borrow this quota",
                field=f"{field.flavor_path}.name",
                remedy="add the flavor to the ClusterQueues that should borrow it, with a nominalQuota of 0 if need be",
            )


@rule("KC205", "idle-cohort-quota", Severity.WARNING, "quota of a Cohort that no ClusterQueue can use")
def idle_cohort_quota(facts: Facts) -> Iterator[Hit]:
    """Only ClusterQueues that list the flavor can borrow quota of a Cohort."""
    for owner, node, field, quotas in _quotas(facts):
        if node.kind != "Cohort" or not quotas.nominal or not (path := facts.tree.path(node)):
            continue
        members = facts.tree.members.get(path[-1], ())
        if not any((field.flavor, field.resource) in facts.tree.quotas.get(member, {}) for member in members):
            yield hit(
                owner,
                f"no ClusterQueue in the cohort lists {field.resource} in flavor {field.flavor}, so nobody can use it",
                field=f"{field.path}.nominalQuota",
                remedy="add the flavor to the ClusterQueues, with a nominalQuota of 0 if need be, or remove it here",
            )


@rule("KC206", "no-capacity", Severity.NOTE, "a ClusterQueue that has no quota for a resource, and can borrow none")
def no_capacity(facts: Facts) -> Iterator[Hit]:
    """A quota of 0 may be meant to close the flavor for now."""
    for owner, node, field, quotas in _quotas(facts):
        if node.kind == "ClusterQueue" and quotas.potential == 0 and number(field.amounts.get("nominalQuota")) == 0:
            yield hit(
                owner,
                f"there is no {field.resource} in flavor {field.flavor} here, and none to borrow",
                field=f"{field.path}.nominalQuota",
                remedy="give it quota here or in its cohort, or remove the flavor",
            )
