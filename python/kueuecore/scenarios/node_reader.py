"""Reads the nodes of a scenario."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import prod
from string import Formatter

from kueuecore._fields import Fields, shown
from kueuecore._names import label_key_problems, label_problems, subdomain_problems
from kueuecore._quantities import number
from kueuecore.scenarios.distributions import Span
from kueuecore.scenarios.node_groups import HOSTNAME, NodeFailure, NodeGroup, NodeLevel, NodeState, PlacedNode
from kueuecore.scenarios.spans import read_spans

__all__ = ["read_nodes"]

_MAX_NODES = 100_000
_MAX_FAILURES = 10_000
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LABEL_VALUE = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def read_nodes(section: Fields) -> tuple[NodeGroup, ...]:
    """Read the node groups of a cluster, and record what is wrong with them.

    Args:
        section: The cluster.
    """
    groups, taken = list[NodeGroup](), dict[str, str]()
    for fields in section.parts("nodes"):
        n_problems = len(fields.problems)
        group = _group(fields)
        if len(fields.problems) > n_problems:
            continue
        _check_names(fields, group, taken)
        groups.append(group)
    n_nodes = sum(group.n_nodes for group in groups)
    if n_nodes > _MAX_NODES:
        section.complain(
            "nodes", f"{n_nodes} nodes are too many", f"write counts that make at most {_MAX_NODES} of them"
        )
    return tuple(groups)


def _group(fields: Fields) -> NodeGroup:
    n_problems = len(fields.problems)
    name = _required_text(fields, "name", "write a name for the nodes")
    for problem in label_problems(name) if name else ():
        fields.complain("name", problem, "write a name such as gpu")
    fields.has("levels", "write at least `- {name: node, count: 8}`")
    if fields.plain.get("levels") == []:
        fields.complain("levels", "Required value", "write at least `- {name: node, count: 8}`")
    levels = tuple(_levels(fields, tuple(fields.parts("levels"))))
    line = fields.document.source.line_of(fields.path)
    group = NodeGroup(
        name=name,
        levels=levels,
        capacity=_capacity(fields),
        labels=_labels(fields),
        taints=tuple(_taint(part) for part in fields.parts("taints")),
        source=replace(fields.document.source.without_fields(), _start=line),
    )
    # If something is wrong, nodes have no names yet.
    is_named = len(fields.problems) == n_problems
    placed = tuple(group.nodes()) if is_named else ()
    failures = tuple(_failure(part, placed) for part in fields.parts("failures"))
    fields.end()
    return replace(group, failures=failures)


def _levels(group: Fields, parts: Sequence[Fields]) -> Iterator[NodeLevel]:
    known, labels = ["group"], set[str]()
    for index, fields in enumerate(parts):
        is_last = index == len(parts) - 1
        name = _required_text(fields, "name", "write a name for the level, such as rack")
        if name and not re.fullmatch("[a-z][a-z0-9]*", name):
            fields.complain(
                "name", f"Invalid value: {shown(name)}", "write lower case letters and digits, such as rack"
            )
        if name in known:
            fields.complain("name", f"Duplicate value: {shown(name)}", "give each level its own name")
        known.append(name)
        fields.has("count", "write how many there are in each of the level above")
        count = fields.whole("count", 1, least=1, most=_MAX_NODES)
        if not is_last:
            fields.has("label", "write the node label that names them")
        label = fields.text("label", HOSTNAME if is_last else "")
        for problem in label_key_problems(label) if label else ():
            fields.complain("label", problem, "write a label key, such as example.com/rack")
        if label and label in labels:
            fields.complain("label", f"Duplicate value: {shown(label)}", "give each level its own label")
        labels.add(label)
        value = fields.text("value")
        _check_pattern(fields, value, known)
        fields.end()
        yield NodeLevel(name=name, count=count, label=label, value=value)
    n_nodes = prod(part.plain["count"] for part in parts if isinstance(part.plain.get("count"), int))  # type: ignore[misc]
    if n_nodes > _MAX_NODES:
        remedy = f"write counts that make at most {_MAX_NODES} of them"
        group.complain("levels", f"{n_nodes} nodes are too many", remedy)


def _check_pattern(fields: Fields, pattern: str, known: Sequence[str]) -> None:
    """Check that only names of levels are in a pattern's braces."""
    remedy = f"write one of {', '.join('{' + text + '}' for text in known if text)}"
    try:
        parts = [(name, rest) for _, name, *rest in Formatter().parse(pattern) if name is not None]
    except ValueError as error:
        fields.complain("value", f"not a pattern: {error}", remedy)
        return
    for name, rest in parts:
        if name not in known or any(rest):
            fields.complain("value", f"there is no level {shown(name)}", remedy)
            return


def _check_names(fields: Fields, group: NodeGroup, taken: dict[str, str]) -> None:
    """Check that node names are unique, and that values are valid in labels."""
    wrong: set[int] = set()
    for node in islice(group.nodes(), _MAX_NODES):
        where = f"levels[{len(group.levels) - 1}].value"
        if node.name in taken:
            reported = f"two nodes would be named {shown(node.name)}"
            remedy = "name every level in it" if taken[node.name] == group.name else "give the groups different names"
            fields.complain(where, reported, remedy)
            return
        taken[node.name] = group.name
        for problem in subdomain_problems(node.name):
            fields.complain(where, f"a node would be named {shown(node.name)}: {problem}", "write another pattern")
            return
        for index, value in enumerate(node.domains):
            if index not in wrong and not re.fullmatch(_LABEL_VALUE, value):
                wrong.add(index)
                reported = f"not a label value: {shown(value)}"
                fields.complain(f"levels[{index}].value", reported, "use up to 63 letters, digits, '-', '_' and '.'")


def _capacity(fields: Fields) -> dict[str, str | int]:
    """Read `allocatable` of each node."""
    fields.has("capacity", "write what each node has, such as {cpu: 8, memory: 32Gi}")
    section, found = fields.part("capacity"), dict[str, str | int]()
    for resource, amount in section.plain.items() if section is not None else ():
        text = str(amount) if isinstance(amount, float) else amount
        is_quantity = isinstance(text, str | int) and not isinstance(text, bool) and number(text) is not None
        if is_quantity and isinstance(text, str | int):
            found[resource] = text
        elif section is not None:
            section.complain(resource, "not a quantity", "write a quantity, such as 8 or 36Gi")
    return found


def _labels(fields: Fields) -> dict[str, str]:
    section = fields.part("labels")
    if section is None:
        return {}
    labels = {key: section.text(key) for key in section.plain}
    for key, value in labels.items():
        for problem in label_key_problems(key):
            section.complain(key, problem, "write a label key, such as example.com/pool")
        if not re.fullmatch(_LABEL_VALUE, value):
            section.complain(key, f"not a label value: {shown(value)}", "use up to 63 letters, digits, '-', '_', '.'")
    return labels


def _taint(fields: Fields) -> dict[str, str]:
    key = _required_text(fields, "key", "write the key of the taint")
    fields.has("effect", f"write one of {', '.join(_EFFECTS)}")
    taint = {"key": key, "value": fields.text("value"), "effect": fields.text("effect", one_of=_EFFECTS)}
    fields.end()
    return {name: text for name, text in taint.items() if text}


def _failure(fields: Fields, placed: Sequence[PlacedNode]) -> NodeFailure:
    node, domain = fields.text("node"), fields.text("domain")
    n_nodes = fields.whole("nodes", 1, least=1, most=_MAX_NODES) if fields.value("nodes") is not None else None
    given = [name for name, entry in (("node", node), ("domain", domain), ("nodes", n_nodes)) if entry]
    if not given:
        fields.complain("node", "Required value", "write which: node, or domain, nodes or both")
    elif node and len(given) > 1:
        fields.complain("node", f"both node and {given[1]} are given", "remove one of them")
    if placed and node and all(placed_node.name != node for placed_node in placed):
        fields.complain("node", f"Not found: {shown(node)}", _such_as(placed_node.name for placed_node in placed))
    if placed and domain and all(domain not in placed_node.domains for placed_node in placed):
        fields.complain(
            "domain", f"Not found: {shown(domain)}", _such_as(placed_node.domains[0] for placed_node in placed)
        )
    state = NodeState(fields.text("becomes", NodeState.NOT_READY, one_of=[*NodeState]))
    taint = fields.part("taint")
    if taint is not None and state is not NodeState.TAINTED:
        fields.complain("taint", f"only applies with `becomes: {NodeState.TAINTED}`", "add that, or remove it")
    failure = NodeFailure(
        at=fields.seconds("at", 0.0) or 0.0,
        every=read_spans(fields, "every") or Span(),
        times=fields.whole("times", 1, least=1, most=_MAX_FAILURES),
        node=node,
        domain=domain,
        n_nodes=n_nodes,
        lasts=read_spans(fields, "lasts"),
        state=state,
        taint=_OUT_OF_SERVICE if taint is None else _taint(taint),
    )
    fields.end()
    return failure


def _such_as(names: Iterable[str]) -> str:
    return f"write one such as {next(iter(names))}"


def _required_text(fields: Fields, name: str, remedy: str) -> str:
    """Read a required string."""
    return fields.text(name) if fields.has(name, remedy) or fields.value(name) is not None else ""
