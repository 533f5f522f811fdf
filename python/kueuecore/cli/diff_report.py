"""What a change of manifests changes, as tables, as one document, and as a summary in Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore._json import JsonObject
from kueuecore._text import counted, escaped
from kueuecore.cli.documents import document_head
from kueuecore.cli.github import github_command
from kueuecore.cli.markdown import MAX_ROWS, code, markdown_table, more_rows, plain
from kueuecore.cli.table import Cell, Painted, Style, table
from kueuecore.cli.upgrade_document import difference_document
from kueuecore.cli.upgrade_report import fate_color, fate_text
from kueuecore.errors import Problem
from kueuecore.releases import Release
from kueuecore.upgrades import Difference, Fate, Revision

__all__ = ["Base", "diff_as_github_command", "diff_document", "diff_report", "diff_summary"]

_MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Base:
    """What is compared with.

    Args:
        name: Its name for people.
        left_out: What is wrong with files and objects of it, which are left out.
    """

    name: str
    left_out: tuple[Problem, ...] = ()


_NO_WORK = "no workload is given, so only ClusterQueues are compared; name jobs with --work"


def diff_report(found: Revision, base: Base, style: Style, *, wide: bool = False) -> str:
    """The report as text, without a final newline.

    Args:
        found: What changes.
        base: What it is compared with.
        style: Colour and width.
        wide: Show everything, messages that change too, and wrap nothing?
    """
    parts = [f"{_verdict(found)} against {escaped(base.name)}"]
    shown_rows = [*found.differences, *(found.texts if wide else ())]
    rows = shown_rows if wide else shown_rows[:_MAX_SHOWN]
    cells: list[list[Cell]] = [
        [_name(row), Painted(before, fate_color(row.before)), Painted(after, fate_color(row.after))]
        for row in rows
        for before, after in [_fates(row)]
    ]
    if cells:
        parts.append(table(["WORKLOAD", "BEFORE", "AFTER"], cells, style.wide() if wide else style))
    if len(shown_rows) > len(rows):
        parts.append(f"and {len(shown_rows) - len(rows)} more; -o wide shows all")
    return "\n\n".join([*parts, *_remarks(found, base, wide=wide)])


def diff_document(found: Revision, base: Base, release: Release) -> JsonObject:
    """Everything that changes, as one document for programs; `docs/in-ci.md` describes it.

    Args:
        found: What changes.
        base: What it is compared with.
        release: The release of Kueue that decides after the change.
    """
    return {
        **document_head(release),
        "against": base.name,
        "differs": bool(found.differences),
        "workloads": found.n_workloads,
        "changed": found.n_changed,
        "endings": {"before": str(found.before.ending), "after": str(found.after.ending)},
        "differences": [difference_document(difference) for difference in found.differences],
        "texts": [difference_document(difference) for difference in found.texts],
        "leftOut": [str(problem) for problem in base.left_out],
    }


def diff_summary(found: Revision, base: Base) -> str:
    """Summarise what changes in Markdown.

    Args:
        found: What changes.
        base: What it is compared with.
    """
    parts = [f"### kueuecore diff: {_verdict(found)}", f"Compared with {code(base.name)}."]
    rows = [[code(_name(row)), *map(plain, _fates(row))] for row in found.differences[:MAX_ROWS]]
    if rows:
        parts += [markdown_table(["Workload", "Before", "After"], rows), more_rows(len(found.differences))]
    return "\n\n".join(filter(None, [*parts, *map(plain, _remarks(found, base))]))


def diff_as_github_command(found: Revision, base: Base) -> str:
    """Return a GitHub Actions command that says how many decisions change, with the first of them.

    Args:
        found: What changes.
        base: What it is compared with.
    """
    lines = [f"{_verdict(found)} against {escaped(base.name)}"]
    for row in found.differences[:_MAX_SHOWN]:
        before, after = map(escaped, _fates(row))
        lines.append(f"{escaped(_name(row))}: {before} -> {after}")
    return github_command("notice", "\n".join(lines), title="kueuecore diff") + "\n"


def _verdict(found: Revision) -> str:
    return f"decisions about {found.n_changed} of {counted(found.n_workloads, 'workload')} change"


def _name(difference: Difference) -> str:
    if difference.kind == "Workload":
        return difference.key
    return f"{difference.kind}/{difference.key}" if difference.key else "(all)"


def _fates(difference: Difference) -> tuple[str, str]:
    old, new = difference.before, difference.after
    if old is not None and new is not None and difference.is_of_text:
        return ": ".join(filter(None, (old.stage, *old.said))), ": ".join(filter(None, (new.stage, *new.said)))
    return _fate(old, new), _fate(new, old, with_message=True)


def _fate(fate: Fate | None, other: Fate | None, *, with_message: bool = False) -> str:
    return "not there" if fate is None else fate_text(fate, other, with_message=with_message)


def _remarks(found: Revision, base: Base, *, wide: bool = False) -> list[str]:
    remarks = []
    if found.texts and not wide:
        n_texts = len(found.texts)
        remarks.append(f"{n_texts} more {'has' if n_texts == 1 else 'have'} only another reason or message")
    if base.left_out:
        problems = counted(len(base.left_out), "problem")
        remarks.append(
            f"{escaped(base.name)} has {problems}: it is compared without the objects and files that have them"
        )
    if not found.n_workloads:
        remarks.append(_NO_WORK)
    return remarks
