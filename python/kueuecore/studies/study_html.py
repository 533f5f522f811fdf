"""Shows comparisons and sweeps as tables of HTML, for notebooks."""

from __future__ import annotations

from kueuecore._html_tables import MAX_ROWS, html_table, html_text
from kueuecore.studies import comparison_rows, sweep_rows
from kueuecore.studies.comparison import Comparison
from kueuecore.studies.sweeping import Sweep

__all__ = ["comparison_html", "sweep_html"]


def comparison_html(comparison: Comparison) -> str:
    """Show a comparison in HTML: all jobs, then the groups of each side."""
    head = "".join(map(html_text, comparison_rows.headlines(comparison)))
    measures = html_table(*comparison_rows.measure_rows(comparison), caption=comparison_rows.how_to_read(comparison))
    groups = [
        html_table(*comparison_rows.group_rows(comparison, side), caption=f"{side} by work and ClusterQueue")
        for side in comparison.others
    ]
    return head + measures + "".join(groups)


def sweep_html(found: Sweep) -> str:
    """Show a sweep in HTML, its points in their own order."""
    if not found.points:
        return html_text(sweep_rows.headline(found))
    rows = sweep_rows.point_rows(found, range(len(found.points)))
    legend = "".join(map(html_text, rows.legend[:MAX_ROWS]))
    return (
        html_text(sweep_rows.headline(found))
        + html_table(rows.header, rows.rows, caption="medians over seeds")
        + legend
    )
