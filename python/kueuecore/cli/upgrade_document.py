"""What an upgrade of Kueue changes, as one document for programs. `docs/cli.md` describes it."""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore._json import JsonObject, JsonValue
from kueuecore.cli.documents import document_head, release_document
from kueuecore.cli.upgrade_report import pull_request
from kueuecore.cli.upgraded_settings import ChangedDefault, UpgradedSettings
from kueuecore.upgrades import Cause, Difference, Fate, Refusal, Switch, Upgrade

__all__ = ["difference_document", "switch_document", "upgrade_document"]


def upgrade_document(found: Upgrade, settings: UpgradedSettings, defaults: Sequence[ChangedDefault]) -> JsonObject:
    """Everything that changes.

    Args:
        found: What changes.
        settings: The Configuration as the new release reads it.
        defaults: The defaults that change and matter.
    """
    return {
        **document_head(found.new),
        "from": release_document(found.old),
        "differs": found.is_any or settings.is_refused or bool(defaults),
        "workloads": found.n_workloads,
        "runs": found.n_runs,
        "isStopped": found.is_stopped,
        "endings": {"before": str(found.before.ending), "after": str(found.after.ending)},
        "refusedGates": [
            {"name": row.name, "value": row.is_on, "place": row.place, "why": row.why, "remedy": row.remedy}
            for row in settings.refused
        ],
        "configurationProblems": [str(problem) for problem in settings.problems],
        "defaults": [
            {
                "name": default.name,
                "before": default.before,
                "after": default.after,
                "decisions": default.n_decisions,
                "what": default.what,
            }
            for default in defaults
        ],
        "refusals": [_refusal(refusal) for refusal in found.refusals],
        "causes": [_cause(cause) for cause in found.causes],
        "texts": [_cause(text) for text in found.texts],
    }


def _refusal(refusal: Refusal) -> JsonValue:
    problem = refusal.problem
    about = problem.object
    return {
        "kind": None if about is None else about.kind,
        "key": None if about is None else about.key,
        "place": problem.place,
        "isWarning": refusal.is_warning,
        "field": problem.field,
        "message": problem.message,
        "remedy": problem.remedy,
        "switches": [switch_document(switch) for switch in refusal.switches],
    }


def _cause(cause: Cause) -> JsonValue:
    kept: JsonValue = None
    if cause.kept is not None:
        kept = {"featureGates": dict(cause.kept.gates), "kept": cause.kept.n_kept}
    return {
        "switches": [switch_document(switch) for switch in cause.switches],
        "differences": [difference_document(difference) for difference in cause.differences],
        "keeps": kept,
    }


def switch_document(switch: Switch) -> JsonObject:
    """The fields that describe a switch."""
    return {
        "name": switch.name,
        "kind": str(switch.kind),
        "before": switch.before,
        "after": switch.after,
        "what": switch.what,
        "pulls": [pull_request(pull) for pull in switch.pulls],
    }


def difference_document(difference: Difference) -> JsonObject:
    """The fields that describe a difference."""
    return {
        "kind": difference.kind,
        "key": difference.key,
        "before": _fate(difference.before),
        "after": _fate(difference.after),
    }


def _fate(fate: Fate | None) -> JsonValue:
    if fate is None:
        return None
    return {
        "status": fate.stage,
        "clusterQueue": fate.cluster_queue,
        "flavors": {name: dict(flavors) for name, flavors in fate.flavors.items()},
        "counts": dict(fate.counts),
        "domains": {name: dict(domains) for name, domains in fate.places.items()},
        "preempts": [{"workload": key, "reason": reason} for key, reason in fate.victims],
        "evictions": [*fate.evictions],
        "isActive": fate.is_active,
        "reason": fate.reason,
        "message": fate.message,
    }
