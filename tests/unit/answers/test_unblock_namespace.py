"""A ClusterQueue admits nothing from a Namespace without the labels that it asks for: `unblock` finds them."""

from __future__ import annotations

import pytest

from kueuecore import Engine
from kueuecore.answers import unblock
from tests.quota_manifests import flavor, local_queue, namespace, queue, workload

NOW = "2026-01-01T00:00:00Z"
TIER = "{key: tier, operator: In, values: [gold, silver]}"
SITE = "{key: site, operator: Exists}"
OLD = "{key: old, operator: DoesNotExist}"


def shown(selector: str, labels: str, *, flavors: str | None = None) -> list[tuple[str, str, str, str]]:
    """What admits a workload that the selector keeps out."""
    engine = Engine()
    flavors = flavor() if flavors is None else flavors
    engine.apply(
        f"{namespace('team', labels)}{flavors}{queue('a', selector=selector)}{local_queue('a')}{workload('w', 'a', 1)}",
        now=NOW,
    )
    changes = unblock(engine, "w", namespace="team", now=NOW).changes
    return [(str(change.kind), change.what, change.before, change.after) for change in changes]


@pytest.mark.parametrize(
    ("selector", "change"),
    [
        ("{matchLabels: {team: a}}", ("label team of Namespace team", "b", "a")),
        (f"{{matchExpressions: [{TIER}]}}", ("label tier of Namespace team", "-", "gold")),
        (f"{{matchExpressions: [{SITE}]}}", ("label site of Namespace team", "-", "true")),
        (f"{{matchExpressions: [{OLD}]}}", ("label old of Namespace team", "yes", "none")),
        (
            f"{{matchLabels: {{team: a}}, matchExpressions: [{TIER}, {OLD}]}}",
            (
                "label team of Namespace team and label tier of Namespace team and label old of Namespace team",
                "b, -, yes",
                "a, gold, none",
            ),
        ),
    ],
)
def test_the_missing_labels_are_proposed(selector: str, change: tuple[str, ...]) -> None:
    assert shown(selector, "{team: b, old: 'yes'}") == [("Namespace", *change)]


def test_a_name_is_no_label_to_change() -> None:
    assert shown("{matchLabels: {kubernetes.io/metadata.name: other}}", "{}") == []


def test_they_are_combined_with_what_the_cluster_queue_misses() -> None:
    what = "ResourceFlavor default and label team of Namespace team"
    assert shown("{matchLabels: {team: a}}", "{}", flavors="") == [("Missing", what, "missing, -", "created, a")]
