"""Labels, tolerations and node affinity (rules/03 §5, 05 §6.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kueuecore.reference.settings import Json


def _is_beyond(operator: str, number: str, bound: str) -> bool:
    """Evaluate Gt or Lt of whole numbers; False for anything else."""
    try:
        return int(number) > int(bound) if operator == "Gt" else int(number) < int(bound)
    except ValueError:
        return False


def _matches(expression: Json, labels: Mapping[str, str]) -> bool:
    values: list[str] = expression.get("values") or []
    found = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists" | "DoesNotExist" as operator:
            return (found is None) is (operator == "DoesNotExist")
    return _is_beyond(expression["operator"], found or "", "".join(values[:1]))


def matches_labels(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector matches. None matches nothing, an empty one everything (rules/01 §1)."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(name) == value for name, value in wanted.items()) and all(
        _matches(expression, labels) for expression in selector.get("matchExpressions") or ()
    )


def _tolerates(toleration: Json, taint: Json) -> bool:
    """Return whether a toleration tolerates a taint, by Kubernetes' rule (rules/03 §5 3)."""
    if any(toleration.get(part) and toleration[part] != taint.get(part) for part in ("effect", "key")):
        return False
    mine, theirs = toleration.get("value", ""), taint.get("value", "")
    operator = toleration.get("operator") or "Equal"
    if operator in ("Lt", "Gt"):
        return _is_beyond(operator, theirs, mine)
    return operator == "Exists" or (operator == "Equal" and bool(mine == theirs))


def untolerated_taint(taints: list[Json], tolerations: list[Json]) -> Json | None:
    """Return the first taint that keeps pods away (rules/03 §5 3)."""
    hard = (taint for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute"))
    return next((t for t in hard if not any(_tolerates(toleration, t) for toleration in tolerations)), None)


def matches_node(pod: Json, labels: Mapping[str, str], keys: Collection[str]) -> bool:
    """Return whether pods may go to nodes with these labels, as far as these keys say (rules/03 §5 4)."""
    if any(labels.get(name) != value for name, value in (pod.get("nodeSelector") or {}).items() if name in keys):
        return False
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [
        [expression for expression in term.get("matchExpressions") or () if expression["key"] in keys]
        for term in required.get("nodeSelectorTerms") or ()
    ]
    # A term that says nothing about these keys allows every flavor.
    return not all(terms) or not terms or any(all(_matches(e, labels) for e in term) for term in terms)


def matches_term(term: Json, node: Json) -> bool:
    """Return whether a term of a node selector matches a node. An empty one matches nothing (rules/08 §4.7)."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    named = {"metadata.name": node["metadata"]["name"]}
    matches = all(_matches(e, node["metadata"]["labels"]) for e in expressions) and all(
        _matches(f, named) for f in fields
    )
    return bool(expressions or fields) and matches
