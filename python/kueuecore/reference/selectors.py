"""Labels, tolerations and node affinity (rules/03 §5, 05 §6.1)."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore.reference.settings import Json


def _integer(written: str) -> int | None:
    try:
        return int(written)
    except ValueError:
        return None


def _matches(expression: Json, labels: Mapping[str, str]) -> bool:
    found, values = labels.get(expression["key"]), list(expression.get("values") or ())
    match expression["operator"]:
        case "In":
            return found in values
        case "NotIn":
            return found is None or found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case operator:  # Gt and Lt
            number, bound = _integer(found or ""), _integer("".join(values[:1]))
            if number is None or bound is None:
                return False
            return number > bound if operator == "Gt" else number < bound


def matches_labels(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Does a label selector match? None matches nothing, an empty one all (rules/01 §1)."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(name) == value for name, value in wanted.items()) and all(
        _matches(expression, labels) for expression in selector.get("matchExpressions") or ()
    )


def _tolerates(toleration: Json, taint: Json) -> bool:
    """Kubernetes' rule (rules/03 §5 3)."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    mine, theirs = toleration.get("value", ""), taint.get("value", "")
    match toleration.get("operator") or "Equal":
        case "Equal":
            return bool(mine == theirs)
        case "Exists":
            return True
        case "Lt" | "Gt" as operator:
            bound, number = _integer(mine), _integer(theirs)
            if bound is None or number is None:
                return False
            return number < bound if operator == "Lt" else number > bound
    return False


def untolerated_taint(taints: list[Json], tolerations: list[Json]) -> Json | None:
    """The first taint that keeps pods away (rules/03 §5 3)."""
    hard = (taint for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute"))
    return next((t for t in hard if not any(_tolerates(toleration, t) for toleration in tolerations)), None)


def matches_node(pod: Json, labels: Mapping[str, str]) -> bool:
    """May pods go to nodes with these labels? Only keys of these labels matter (rules/03 §5 4)."""
    if any(labels[name] != value for name, value in (pod.get("nodeSelector") or {}).items() if name in labels):
        return False
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [
        [expression for expression in term.get("matchExpressions") or () if expression["key"] in labels]
        for term in required.get("nodeSelectorTerms") or ()
    ]
    # A term without a word on this flavor allows every flavor.
    return not all(terms) or not terms or any(all(_matches(e, labels) for e in term) for term in terms)
