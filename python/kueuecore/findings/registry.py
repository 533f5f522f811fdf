"""All rules, and how to select among them. A new rule is a function with `@rule` in one of the modules below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kueuecore._near_names import near_names
from kueuecore._text import quoted
from kueuecore.errors import ManifestError
from kueuecore.findings import (
    admission_checks,
    cohorts,
    counted,
    flavors,
    jobs,
    limits,
    loops,
    marks,
    misplaced,
    objects,
    placement,
    queues,
    settings,
    starvation,
    topology,
    units,
    workloads,
)
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Rule, Severity, hit, rule
from kueuecore.findings.silencing import ANNOTATION, has_id, silenced_ids

__all__ = ["RULES", "chosen", "table"]


@rule("KC003", "unknown-silencing", Severity.WARNING, f"an unknown id in the annotation `{ANNOTATION}`")
def unknown_silencing(facts: Facts) -> Iterator[Hit]:
    """It silences nothing, though it looks as if it did."""
    for manifest in facts.given:
        for wanted in silenced_ids(manifest.object):
            if not any(has_id(other, wanted) for other in RULES):
                yield hit(
                    manifest,
                    f"Not found: {quoted(wanted)}: no finding has this id",
                    field=f"metadata.annotations[{ANNOTATION}]",
                    remedy=_remedy(wanted),
                )


_MODULES = (
    objects,
    marks,
    flavors,
    limits,
    units,
    cohorts,
    queues,
    admission_checks,
    jobs,
    topology,
    placement,
    misplaced,
    workloads,
    counted,
    loops,
    starvation,
    settings,
)
_FOUND = (variable for module in _MODULES for variable in vars(module).values() if isinstance(variable, Rule))
RULES: tuple[Rule, ...] = tuple(sorted((*_FOUND, unknown_silencing), key=lambda entry: entry.code))
"""All rules, by code."""


def chosen(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Rule, ...]:
    """Select rules.

    Args:
        select: Codes, prefixes of codes such as `KC1`, or names; all rules if empty.
        ignore: The same for rules to leave out.

    Raises:
        ManifestError: An id is unknown.
    """
    wanted, unwanted = tuple(select), tuple(ignore)
    for option, ids in (("select", wanted), ("ignore", unwanted)):
        for name in ids:
            if not any(has_id(other, name) for other in RULES):
                raise ManifestError.of(f"no finding has the id {quoted(name)}", field=option, remedy=_remedy(name))
    return tuple(
        other
        for other in RULES
        if (not wanted or any(has_id(other, name) for name in wanted))
        and not any(has_id(other, name) for name in unwanted)
    )


def table() -> Iterator[Mapping[str, str]]:
    """Each rule as a row: code, name, severity, and what it looks for."""
    for other in RULES:
        yield {"code": other.code, "name": other.name, "severity": str(other.severity), "summary": other.summary}


def _remedy(name: str) -> str:
    near = near_names(name, [known for other in RULES for known in (other.name, other.code)])
    return f"did you mean {near[0]}?" if near else "`kueuecore check --list` lists them"
