"""The page: figures, the tree of cohorts, and numbers."""

from __future__ import annotations

import base64
import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import accumulate

from kueuecore.releases import Release
from kueuecore.report.cohort_tree import TreeNode, cohort_tree
from kueuecore.report.facts import Facts, clock
from kueuecore.report.figure import Figure
from kueuecore.results import Results
from kueuecore.simulation.left_out import LeftOut
from kueuecore.simulation.run import Run
from kueuecore.times import format_time
from kueuecore.version import version

__all__ = ["render", "report_html"]

# More rows of a table, or nodes of the tree, than anyone reads.
_MAX_ROWS = 200
_OPEN_NODES = 40
# Thousands of queues with dozens of flavors would make a page that no browser opens.
_MAX_QUOTAS = 10_000


def report_html(run: Run, *, title: str = "Simulation", left_out: Sequence[LeftOut] = ()) -> str:
    """Render a run as one HTML page that needs neither a network nor scripts. The same run gives the same bytes.

    Args:
        run: The run.
        title: Its heading.
        left_out: The jobs of traces that it leaves out.

    Raises:
        ImportError: The extra `report` is not installed.
    """
    from kueuecore.report.gantt import gantt_figure
    from kueuecore.report.topology import topology_figure
    from kueuecore.report.usage import pending_figure, usage_figures
    from kueuecore.report.waits import waits_figure

    facts = Facts(run, Results.of(run, left_out=left_out))
    figures: list[Figure] = []
    if facts.seconds > 0 and len(facts.results.jobs):
        # ClusterQueues without quota have no rows.
        figures = [*usage_figures(facts), pending_figure(facts)] if len(facts.table) else []
        figures += [waits_figure(facts), gantt_figure(facts)]
        topology = topology_figure(facts)
        figures += [topology] if topology is not None else []
    return render(
        title=title,
        subtitle=f"{clock(facts.seconds)} from {format_time(run.start)}; {run.ending.value}.",
        figures=figures,
        numbers=[*_numbers(facts)],
        releases=[run.engine.configuration.release],
        notices=[*filter(None, [run.engine.configuration.experiments.notice])],
        tree=cohort_tree(facts),
    )


def render(
    *,
    title: str,
    subtitle: str,
    figures: Sequence[Figure],
    numbers: Sequence[tuple[str, str]],
    releases: Sequence[Release],
    notices: Sequence[str] = (),
    tree: Sequence[TreeNode] = (),
) -> str:
    """Render a page of figures.

    Args:
        title: Its heading.
        subtitle: The line below the heading.
        figures: The figures, in order.
        numbers: Names and values.
        releases: The releases of Kueue that decide in what it shows.
        notices: Which rules decide that Kueue does not have.
        tree: The roots of a tree of cohorts; empty: no such section.
    """
    import jinja2

    walked = [*_walk(tree)]
    n_quotas = [0, *accumulate(len(node.says) for node, _ in walked)]
    n_told = bisect_right(n_quotas, _MAX_QUOTAS) - 1

    folder = files("kueuecore.report")
    style = (folder / "page.css").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    return template.render(
        title=title,
        subtitle=subtitle,
        style=style,
        # Only this style may be used: nothing in a manifest's names can be more than text.
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        figures=figures,
        most_rows=_MAX_ROWS,
        numbers=numbers,
        tree=walked,
        n_told=n_told,
        is_open=len(walked) <= _OPEN_NODES,
        made_by="; ".join([_made_by(releases), *dict.fromkeys(notices)]),
    )


def _made_by(releases: Sequence[Release]) -> str:
    as_which = " and ".join(dict.fromkeys(release.title for release in releases))
    return f"kueuecore {version()}" + (f", which decided as {as_which}" if as_which else "")


def _numbers(facts: Facts) -> Iterator[tuple[str, str]]:
    summary = facts.results.summary()
    yield "jobs", f"{summary.jobs:,}"
    yield "finished", f"{summary.finished:,}"
    if summary.failed:
        yield "failed", f"{summary.failed:,}"
    for out in summary.left_out:
        yield f"left out of trace {out.trace}", f"{out.n_jobs:,} of {out.n_in_file:,}: {out.why}"
    yield "evictions", f"{summary.evictions:,}"
    for name, value in (
        ("makespan", summary.makespan_seconds),
        ("mean wait", summary.mean_wait_seconds),
    ):
        yield name, "-" if value is None else clock(value)
    for name, value in (("mean slowdown", summary.mean_slowdown), ("fairness", summary.fairness)):
        yield name, "-" if value is None else f"{value:.3g}"
    for (flavor, resource), part in summary.utilisation.items():
        yield f"utilisation of {flavor}/{resource}", f"{part:.1%}"
    for resource, part in summary.goodput.items():
        yield f"goodput of {resource}", f"{part:.1%}"


def _walk(roots: Sequence[TreeNode]) -> Iterator[tuple[TreeNode, int]]:
    """Yield the nodes from the top down, each with the number of lists that end after it. Trees may be deep."""
    waiting = [(root, 0 if index else 1) for index, root in enumerate(reversed(roots))]
    while waiting:
        node, n_ends = waiting.pop()
        yield node, 0 if node.below else n_ends
        # The last child ends its own list and those that its parent would end.
        waiting += [(tree_node, 0 if index else n_ends + 1) for index, tree_node in enumerate(reversed(node.below))]
