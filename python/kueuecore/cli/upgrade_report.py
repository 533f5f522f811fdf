"""What an upgrade of Kueue changes, as tables."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from kueuecore._text import counted, shown
from kueuecore.cli.flavors import flavors_of_pod_sets
from kueuecore.cli.table import Cell, Painted, Style, table
from kueuecore.cli.upgraded_settings import ChangedDefault, UpgradedSettings
from kueuecore.upgrades import KINDS_FIELD, Cause, Difference, Fate, Switch, SwitchKind, Upgrade

__all__ = ["fate_color", "fate_text", "pull_request", "switch_lines", "upgrade_report"]

_MAX_SHOWN = 5
_MAX_NAMED = 3
_PREEMPTED = "preempted by "
_COLORS = {
    "Admitted": "green",
    "Active": "green",
    "QuotaReserved": "cyan",
    "Pending": "yellow",
    "Inactive": "yellow",
    "Undecided": "red",
}


def pull_request(number: int) -> str:
    """The address of one of Kueue's pull requests."""
    return f"https://github.com/kubernetes-sigs/kueue/pull/{number}"


def upgrade_report(
    found: Upgrade, settings: UpgradedSettings, defaults: Sequence[ChangedDefault], style: Style, *, wide: bool = False
) -> str:
    """The report as text, without a final newline.

    Args:
        found: What changes.
        settings: The Configuration as the new release reads it.
        defaults: The defaults that change and matter.
        style: Colour and width.
        wide: Show every workload, and wrap nothing?
    """
    report = _Report(found, settings, defaults, style.wide() if wide else style, None if wide else _MAX_SHOWN)
    return "\n\n".join(filter(None, report.parts()))


@dataclass(frozen=True, slots=True)
class _Report:
    found: Upgrade
    settings: UpgradedSettings
    defaults: Sequence[ChangedDefault]
    style: Style
    most: int | None

    def parts(self) -> Iterator[str]:
        found = self.found
        if not (found.is_any or self.settings.is_refused or self.defaults):
            yield self._nothing()
            return
        yield self._first()
        yield self._gates()
        yield self._defaults()
        yield self._refusals()
        said: set[Switch] = set()
        for cause in found.causes:
            yield self._cause(cause, said)
            said |= {*cause.switches}
        yield self._kept()
        yield from map(self._texts, found.texts)
        if found.is_stopped:
            yield f"stopped after {counted(found.n_runs, 'run')} of mixtures; --runs raises the limit"

    def _nothing(self) -> str:
        found = self.found
        workloads = counted(found.n_workloads, "workload")
        return f"Nothing changes: {found.old.title} and {found.new.title} decide the same about {workloads}"

    def _first(self) -> str:
        found = self.found
        between = f"{found.old.title} -> {found.new.title.removeprefix('Kueue ')}"
        keys = {difference.key for difference in found.differences if difference.kind == "Workload"}
        n_texts = len(
            {
                difference.key
                for cause in found.texts
                for difference in cause.differences
                if difference.kind == "Workload"
            }
            - keys
        )
        if not found.causes:
            said = f"the same decisions about {counted(found.n_workloads, 'workload')}"
        else:
            said = f"decisions about {len(keys)} of {counted(found.n_workloads, 'workload')} change"
            said += f", for {counted(sum(bool(cause.switches) for cause in found.causes), 'cause')}"
        texts = f"; {n_texts} only {_has(n_texts)} another reason or message" if n_texts else ""
        return f"{between}: {said}{texts}"

    def _gates(self) -> str:
        rows: list[list[Cell]] = [
            [Painted(row.name, "red"), str(row.is_on).lower(), row.place or "-", f"{row.why}; {row.remedy}"]
            for row in self.settings.refused
        ]
        parts = [table(["REFUSED GATE", "SET TO", "SET IN", "WHY"], rows, self.style)] if rows else []
        problems = self.settings.problems
        if problems:
            parts.append(f"{self.found.new.title} refuses the Configuration; below, its settings count as they are:")
            parts += [shown(str(problem)) for problem in problems]
        return "\n".join(parts)

    def _defaults(self) -> str:
        old, new = self.found.old.name, self.found.new.name
        rows: list[list[Cell]] = [
            [
                default.name,
                default.before,
                default.after,
                str(default.n_decisions) if default.n_decisions else "-",
                default.what,
            ]
            for default in self.defaults
        ]
        shown_table = table(["DEFAULT", old, new, "DECISIONS", "WHAT IT DOES"], rows, self.style, right=["DECISIONS"])
        others = self._n_other_defaults()
        last = ""
        if others:
            named = counted(others, "other gate" if rows else "gate")
            on_them = "it" if others == 1 else "them"
            last = f"{named} {_has(others)} another default; no decision here depends on {on_them}"
        return "\n".join(filter(None, [shown_table if rows else "", last]))

    def _n_other_defaults(self) -> int:
        named = {default.name for default in self.defaults}
        gates = {switch.name for switch in self.found.switches if switch.kind is SwitchKind.GATE}
        return len(gates - named)

    def _refusals(self) -> str:
        rows: list[list[Cell]] = []
        for refusal in self.found.refusals:
            problem = refusal.problem
            about = "" if problem.object is None else f"{problem.object.kind}/{problem.object.key}"
            what = Painted("field lost", "yellow") if refusal.is_warning else Painted("refused", "red")
            message = ": ".join(filter(None, (problem.field, problem.message)))
            causes = ", ".join(switch.name for switch in refusal.switches)
            rows.append([about, problem.place or "-", what, causes or "-", message])
        if not rows:
            return ""
        remedies = [*dict.fromkeys(refusal.problem.remedy for refusal in self.found.refusals if refusal.problem.remedy)]
        n_more = len(remedies[self.most :]) if self.most else 0
        lines = [table(["OBJECT", "PLACE", "IS", "CAUSE", "MESSAGE"], rows, self.style)]
        lines += map(shown, remedies[: self.most])
        return "\n".join([*lines, *([f"and {counted(n_more, 'other remedy')}"] if n_more else [])])

    def _cause(self, cause: Cause, said: Container[Switch]) -> str:
        """What Kueue changed, unless it was said before, and the decisions about some workloads."""
        new = [switch for switch in cause.switches if switch not in said]
        lines = [line for switch in new for line in switch_lines(switch, self.style)]
        if len(cause.switches) != 1 or not new:
            names = " and ".join(cause.names) or "cause not found"
            lines.append(f"{self.style.paint(names, 'bold')}:" if cause.switches else names)
        rows: list[list[Cell]] = []
        refused = {row.key for row in self.found.after.refused}
        for difference in cause.differences[: self.most]:
            before, after = (
                fate_text(difference.before, difference.after),
                fate_text(difference.after, difference.before, with_message=True),
            )
            after = "refused" if difference.after is None and difference.key in refused else after
            rows.append([self._key(difference), _painted(before, difference.before), _painted(after, difference.after)])
        lines.append(table(["WORKLOAD", "BEFORE", "AFTER"], rows, self.style))
        n_more = len(cause.differences) - len(rows)
        return "\n".join([*lines, *([f"and {n_more} more"] if n_more else [])])

    def _key(self, difference: Difference) -> str:
        if difference.kind == "Workload":
            return difference.key
        return f"{difference.kind}/{difference.key}" if difference.key else "(all)"

    def _kept(self) -> str:
        """What keeps the old decisions."""
        rows: list[list[Cell]] = []
        for cause in self.found.causes:
            if not cause.switches:
                continue
            is_shipped = all(switch.kind is SwitchKind.SETTING for switch in cause.switches)
            keeps = f"a Configuration with them in {KINDS_FIELD}" if is_shipped else "nothing in the Configuration"
            if cause.kept is not None:
                gates = ", ".join(f"{name}: {str(is_on).lower()}" for name, is_on in cause.kept.gates.items())
                n_kept, n_all = cause.kept.n_kept, len(cause.differences)
                keeps = f"featureGates: {{{gates}}}" + (f" ({n_kept} of {n_all})" if n_kept < n_all else "")
            rows.append([" and ".join(cause.names), keeps])
        return table(["CAUSE", "WHAT KEEPS THE OLD DECISION"], rows, self.style) if rows else ""

    def _texts(self, cause: Cause) -> str:
        """One example of the messages that change."""
        first = cause.differences[0]
        names = " and ".join(cause.names) or "cause not found"
        n = len(cause.differences)
        before, after = (entry.said if entry else ("", "") for entry in (first.before, first.after))
        what = "reason" if before[1] == after[1] else "message"
        head = f"{self.style.paint(names, 'bold')}: {n} {_has(n)} another {what}, such as {self._key(first)}"
        said = [entry[0] if what == "reason" else entry[1] for entry in (before, after)]
        return "\n".join([head, f"  before: {shown(said[0]) or '-'}", f"  after:  {shown(said[1]) or '-'}"])


def switch_lines(switch: Switch, style: Style) -> Iterator[str]:
    """What Kueue changed, and its pull requests."""
    is_gate = switch.kind is SwitchKind.GATE
    state = f"gate {switch.name} is {'on' if switch.after else 'off'}" if is_gate else switch.name
    yield f"{style.paint(state, 'bold')}: {switch.what}"
    yield from (f"  {pull_request(pull)}" for pull in switch.pulls)


def _has(n: int) -> str:
    return "has" if n == 1 else "have"


def _painted(text: str, fate: Fate | None) -> Cell:
    return Painted(text, fate_color(fate))


def fate_color(fate: Fate | None) -> str:
    """The colour of what becomes of a workload; empty: none."""
    return _COLORS.get(fate.stage, "") if fate else ""


def fate_text(fate: Fate | None, other: Fate | None, *, with_message: bool = False) -> str:
    """What becomes of a workload, with everything in which it differs from another fate.

    Args:
        fate: What becomes of it.
        other: What becomes of it in the other release.
        with_message: Add Kueue's message if it waits?
    """
    if fate is None:
        return "no Workload"
    parts = [fate.stage]
    if fate.cluster_queue and (fate.has_quota or (other and other.cluster_queue != fate.cluster_queue)):
        flavors = flavors_of_pod_sets(fate.flavors)
        parts[0] += f" in {fate.cluster_queue}" + (f" ({flavors})" if flavors != "-" else "")
    if other is not None:
        parts += _details(fate, other)
    waits = with_message and not fate.has_quota and fate.message
    return ", ".join(parts) + (f": {fate.message}" if waits else "")


def _few(names: Sequence[str]) -> str:
    """The first of some names, each once, and how many more there are."""
    distinct = [*dict.fromkeys(names)]
    more = f" and {len(distinct) - _MAX_NAMED} more" if len(distinct) > _MAX_NAMED else ""
    return ", ".join(distinct[:_MAX_NAMED]) + more


def _details(fate: Fate, other: Fate) -> Iterator[str]:
    if fate.counts != other.counts and fate.has_quota and other.has_quota:
        yield counted(sum(fate.counts.values()), "pod")
    if fate.places != other.places and fate.places:
        yield "on " + "; ".join(
            ", ".join(f"{domain}: {n}" for domain, n in domains.items()) for domains in fate.places.values()
        )
    if fate.evictions != other.evictions:
        by = [eviction.removeprefix(_PREEMPTED) for eviction in fate.evictions]
        is_preempted = all(eviction.startswith(_PREEMPTED) for eviction in fate.evictions)
        evicted = f"{_PREEMPTED}{_few(by)}" if is_preempted else _few(fate.evictions)
        yield evicted if fate.evictions else "not evicted"
    if fate.victims != other.victims:
        yield f"preempts {_few([key for key, _ in fate.victims]) or 'nobody'}"
    if fate.is_active != other.is_active:
        yield "active" if fate.is_active else "deactivated"
