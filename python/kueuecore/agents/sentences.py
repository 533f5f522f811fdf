"""Sums an answer up in three sentences, for people; all of it is in the document, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore._text import counted, shown
from kueuecore.agents.setbacks import say_others, say_setback

__all__ = [
    "Sentences",
    "say_check",
    "say_comparison",
    "say_eta",
    "say_explanation",
    "say_history",
    "say_pending",
    "say_queues",
    "say_unblocking",
    "say_what_if",
]

Sentences = tuple[str, str, str]

_MAX_NAMED = 3
_MAX_SENTENCE = 600
_SEVERITIES = ("error", "warning", "note")


def say_explanation(document: JsonObject) -> Sentences:
    """What it waits for, the first obstacle with its rule, and who holds what it needs."""
    found = [*map(object_at, list_at(document, "obstacles"))]
    obstacle = "nothing stands in its way"
    if found:
        place = [text_at(found[0], name) for name in ("flavor", "resource")]
        where = " and ".join(f"{what} {name}" for what, name in zip(("flavor", "resource"), place, strict=True) if name)
        about = f" for {where}" if where else ""
        more = f" (the first of {len(found)})" if len(found) > 1 else ""
        obstacle = f"the obstacle{more}{about} by rule {text_at(found[0], 'rule')}: {text_at(found[0], 'text')}"
    would = text_at(document, "would")
    if not found and would != "Waits":
        obstacle = f"{obstacle}: as the head of a cycle it {_WOULD[would]}"
    workload = object_at(document, "workload")
    # Kueue has no message yet about one that was never the head of its queue.
    message = text_at(workload, "message") or (text_at(document, "message") if would == "Waits" else "")
    others = say_others(document, _named) or _holders(document)
    return _three(_standing({**workload, "message": message}), say_setback(document, _named) or obstacle, others)


_WOULD = {
    "Fits": "would get quota",
    "Preempts": "would get quota after preempting others",
    "Waits": "would wait",
    "Undecided": "cannot be decided about",
}


def _standing(workload: JsonObject) -> str:
    key = f"{text_at(workload, 'namespace')}/{text_at(workload, 'name')}"
    status, queue = text_at(workload, "status"), text_at(workload, "clusterQueue")
    where = f" in ClusterQueue {queue}" if queue else ""
    if status != "Pending":
        return f"{key} is {status}{where}"
    message, note = text_at(workload, "message"), text_at(workload, "note")
    said = f"{message} ({note})" if message and note else message or note
    return f"{key} waits{where}: {said}" if said else f"{key} waits{where}"


def _holders(document: JsonObject) -> str:
    holders = [
        holder for search in list_at(document, "searches") for holder in map(object_at, list_at(search, "holders"))
    ]
    if holders:
        named = _named(f"{text_at(holder, 'namespace')}/{text_at(holder, 'name')}" for holder in holders)
        first = holders[0]
        why = f"{text_at(first, 'why')} (rule {text_at(first, 'rule')})"
        return f"what it needs is held by {named}; of the first, {text_at(first, 'verdict')}: {why}"
    ahead = _texts(document, "workload", "ahead")
    if ahead:
        return f"ahead of it in the queue: {_named(ahead)}"
    return "nobody is ahead of it, and nobody holds what it needs"


def say_unblocking(document: JsonObject) -> Sentences:
    """Where it stands, the change that disturbs others least, and what else there is."""
    workload = object_at(document, "workload")
    changes = [*map(object_at, list_at(document, "changes"))]
    tried = int_at(document, "tried")
    stopped = "; the search stopped at its limit of tries" if document.get("isStopped") else ""
    if not changes:
        if text_at(workload, "status") != "Pending":
            return _three(_standing(workload), "it needs no change", "nothing was tried")
        why = _texts_of(list_at(document, "notEnough"), "why")
        binds = f"what binds then: {why[0]}" if why else "no change was near enough to say what binds"
        return _three(_standing(workload), f"none of the {tried} changes tried admits it{stopped}", binds)
    best = changes[0]
    evicted = _texts(best, "evicted")
    preempted = _texts_of(list_at(best, "preemptions"), "workload")
    then = f"it preempts {_named(preempted)}" if preempted else "it gets quota"
    costs = f"; then {then}, and in the end {_named(evicted) if evicted else 'nobody'} has lost quota"
    what = f"{text_at(best, 'what')}, {text_at(best, 'before')} -> {text_at(best, 'after')}"
    kinds = list(dict.fromkeys(text_at(change, "kind") for change in changes))
    others = f"{counted(len(changes), 'change')} of {tried} tried would admit it, of these kinds: {', '.join(kinds)}"
    return _three(_standing(workload), f"the change that disturbs others least: {what}{costs}", f"{others}{stopped}")


def say_what_if(document: JsonObject) -> Sentences:
    """What would happen to the first job, its victims, and who else moves."""
    asked = [*map(object_at, list_at(document, "workloads"))]
    settled = document.get("settled")
    moved = _moved(settled) if isinstance(settled, dict) else "ask with settle: true to see who else would move"
    if not asked:
        cycles = counted(int_at(settled, "cycles"), "cycle")
        return _three(
            "the state was changed on a copy, and no job was added", moved, f"{cycles} ran until nothing changed"
        )
    one = asked[0]
    message = text_at(one, "message") if text_at(one, "would") == "Waits" else ""
    more = f" (the first of {len(asked)})" if len(asked) > 1 else ""
    first = f"{text_at(one, 'workload')}{more} {_WOULD[text_at(one, 'would')]}" + (f": {message}" if message else "")
    victims = _texts_of([row for entry in asked for row in list_at(entry, "preemptions")], "workload")
    return _three(first, f"preempted: {_named(victims)}" if victims else "nobody is preempted for it", moved)


def _moved(settled: JsonObject) -> str:
    moves = [*map(object_at, list_at(settled, "moves"))]
    ending = "" if text_at(settled, "ending") == "Settled" else "; it never settles"
    if not moves:
        return f"no workload would move{ending}"
    named = _named(f"{text_at(move, 'workload')} ({text_at(move, 'move')})" for move in moves)
    return f"{counted(len(moves), 'workload')} would move: {named}{ending}"


def say_eta(document: JsonObject) -> Sentences:
    """When the first workload is admitted, how such forecasts turned out, and what is assumed."""
    rows = [*map(object_at, list_at(document, "workloads"))]
    n_futures = int_at(document, "futures")
    if not rows:
        return _three("no workload waits", "nothing was forecast", _assumed(document))
    row = rows[0]
    key = f"{text_at(row, 'namespace')}/{text_at(row, 'name')}"
    more = f" (the first of {len(rows)})" if len(rows) > 1 else ""
    quantiles = [*map(object_at, list_at(row, "quantiles"))]
    if text_at(row, "never"):
        first, second = f"{key}{more} is never admitted as things are: {text_at(row, 'never')}", "no future was played"
    elif isinstance(row.get("bounds"), dict) and not quantiles:
        first = f"{key}{more} waits, and there is no forecast: {text_at(document, 'unknown')}"
        second = _bounded(object_at(row, "bounds"))
    elif not quantiles:
        first, second = f"{key}{more} is {text_at(row, 'status')}", "nothing was forecast for it"
    else:
        is_calibrated = row.get("isCalibrated")
        # A probability, or a share of the futures.
        times = ", ".join(f"{_by(entry)} {'with' if is_calibrated else 'in'} {_percent(entry)}" for entry in quantiles)
        of_all = "" if is_calibrated else f"of {counted(n_futures, 'future')}, "
        first = f"{of_all}{key}{more} is admitted {times}"
        share = row.get("shareNotAdmitted")
        second = f"{share:.0%} of the futures do not admit it within {_span(document.get('horizonSeconds'))}"
        record = document.get("record")
        if isinstance(record, dict):
            second = f"of {int_at(record, 'n')} such intervals of the past, {int_at(record, 'nHeld')} held; {second}"
    return _three(first, second, _assumed(document))


def _bounded(bounds: JsonObject) -> str:
    before, latest = bounds.get("notBefore"), bounds.get("latest")
    parts = []
    if isinstance(before, dict):
        least = "" if before.get("isExact") else "at least "
        parts.append(
            f"it is not admitted before {least}{int_at(before, 'ends')} of the {int_at(before, 'holding')} workloads "
            "that hold quota or get it first end"
        )
    if isinstance(latest, dict):
        how = "at the latest" if latest.get("isBound") else "at about"
        parts.append(f"it is admitted {how} {text_at(latest, 'time')} if nobody arrives")
    return "; ".join(parts) or "no bound is known"


def _percent(quantile: JsonObject) -> str:
    percent = quantile.get("percent")
    return f"{percent:g} %" if isinstance(percent, int | float) else "some"


def _by(quantile: JsonObject) -> str:
    time = text_at(quantile, "time")
    return f"by {time}" if time else "after the horizon"


def _span(seconds: JsonValue) -> str:
    return f"{seconds / 3600:g} hours" if isinstance(seconds, int | float) else "the horizon"


def _assumed(document: JsonObject) -> str:
    given = object_at(document, "assumptions")
    sources = dict.fromkeys(_texts_of(list_at(given, "runTimes"), "source"))
    arrivals = "new work keeps arriving as before" if list_at(given, "arrivals") else "no new work arrives"
    origins = dict.fromkeys("as given" if source == "Given" else "fitted to finished jobs" for source in sources)
    times = f"run times are {' or '.join(origins)}" if origins else "no run times are needed"
    return f"assumed: {times}, and {arrivals}"


_LOSSES = ("Preempted", "Evicted", "Deactivated")


def say_history(document: JsonObject) -> Sentences:
    """Where it stands, how it lost its quota, and the last step."""
    workload = object_at(document, "workload")
    status = text_at(workload, "status")
    steps = [*map(object_at, list_at(document, "steps"))]
    first = f"{text_at(workload, 'namespace')}/{text_at(workload, 'name')}{f' is {status}' if status else ''}"
    if not steps:
        missing = _texts(document, "notRecorded")
        return _three(
            first, "nothing is recorded about it", missing[0] if missing else "so nothing can be said of before"
        )
    losses = [step for step in steps if text_at(step, "what") in _LOSSES]
    lost = "no loss of its quota is recorded"
    if losses:
        often = f"{counted(len(losses), 'time')}, the last" if len(losses) > 1 else "once,"
        lost = f"it lost its quota {often}{_when(losses[-1])}: {text_at(losses[-1], 'sentence')}"
        lost += f" (rule {text_at(losses[-1], 'rule')})" if text_at(losses[-1], "rule") else ""
    last = f"the last of {counted(len(steps), 'step')}{_when(steps[-1])}: {text_at(steps[-1], 'sentence')}"
    return _three(first, lost, last)


def _when(step: JsonObject) -> str:
    if text_at(step, "at"):
        return f" at {text_at(step, 'at')}"
    return f" before {text_at(step, 'before')}" if text_at(step, "before") else ""


def say_check(document: JsonObject) -> Sentences:
    """How many findings there are, the worst of them, and what helps."""
    counts = object_at(document, "counts")
    numbers = ", ".join(counted(n, name) for name, n in counts.items() if isinstance(n, int) and n)
    unfinished = len(list_at(document, "unfinished"))
    rest = f"; {counted(unfinished, 'rule')} gave up" if unfinished else ""
    findings = [*map(object_at, list_at(document, "findings"))]
    if not findings:
        return _three(
            f"no mistake was found{rest}", "so nothing is wrong that the rules look for", "nothing is to be done"
        )
    # Findings come in the order of the objects: the first may be a note beside an error.
    worst = min(findings, key=lambda finding: _SEVERITIES.index(text_at(finding, "severity")))
    about = object_at(worst, "object")
    name = "/".join(filter(None, (text_at(about, part) for part in ("kind", "namespace", "name"))))
    what = f"{text_at(worst, 'severity')} {text_at(worst, 'code')} {text_at(worst, 'name')}"
    return _three(
        f"found: {numbers}{rest}",
        f"the worst is {what}{f' about {name}' if name else ''}: {text_at(worst, 'message')}",
        f"what helps: {text_at(worst, 'remedy')}" if text_at(worst, "remedy") else "docs/check.md says more about it",
    )


def say_comparison(document: JsonObject) -> Sentences:
    """How much the releases differ, the cause of most, and what the newer one refuses."""
    old, new = text_at(document, "from", "version"), text_at(document, "kueue", "version")
    causes = [*map(object_at, list_at(document, "causes"))]
    keys = {text_at(row, "key") for cause in causes for row in list_at(cause, "differences")}
    n_all = int_at(document, "workloads")
    stopped = "; causes were not all found within the limit of runs" if document.get("isStopped") else ""
    first = f"from Kueue {old} to {new}, {len(keys)} of {counted(n_all, 'decision')} change{stopped}"
    second = "no change of Kueue changes a decision"
    if causes:
        switches = [*map(object_at, list_at(causes[0], "switches"))]
        what = "; ".join(f"{text_at(switch, 'name')}: {text_at(switch, 'what')}" for switch in switches)
        second = f"the first of {counted(len(causes), 'cause')}, for {len(list_at(causes[0], 'differences'))}: {what}"
    refused = len(list_at(document, "refusals")) + len(list_at(document, "refusedGates"))
    defaults = len(list_at(document, "defaults"))
    return _three(
        first,
        second,
        f"objects and gates refused or warned about: {refused}; changed defaults that matter: {defaults}"
        if refused or defaults
        else "nothing is refused, and no default that matters changes",
    )


def say_queues(document: JsonObject) -> Sentences:
    """How many ClusterQueues there are, how many wait where, and which are inactive."""
    rows = [*map(object_at, list_at(document, "clusterQueues"))]
    total = int_at(document, "total")
    part = f", of which this page has {len(rows)}" if len(rows) != total else ""
    inactive = [row for row in rows if not row.get("active")]
    waiting = sorted(rows, key=lambda row: -int_at(row, "pendingWorkloads"))
    n_waiting = sum(int_at(row, "pendingWorkloads") for row in rows)
    second = "no workload waits in them"
    if n_waiting:
        most = waiting[0]
        second = f"{counted(n_waiting, 'workload')} waiting in them, most in {text_at(most, 'name')}"
        second += f" ({int_at(most, 'pendingWorkloads')})"
    third = "all of them are active"
    if inactive:
        names = _named(text_at(row, "name") for row in inactive)
        third = f"inactive: {names}; of the first: {text_at(inactive[0], 'message')}"
    return _three(f"{counted(total, 'ClusterQueue')}{part}", second, third if rows else "none matches")


def say_pending(document: JsonObject) -> Sentences:
    """How many wait, the first of the page, and whether there are more."""
    rows = [*map(object_at, list_at(document, "workloads"))]
    total = int_at(document, "total")
    reasons = ", ".join(
        f"{n} {reason or 'without a reason yet'}" for reason, n in object_at(document, "reasons").items()
    )
    first = f"{counted(total, 'workload')} waiting" + (f": {reasons}" if reasons else "")
    if not rows:
        return _three(first, "none is on this page", "there are no more")
    row = rows[0]
    more = text_at(document, "nextCursor")
    return _three(
        first,
        _standing(row),
        f"this page has {len(rows)}; pass nextCursor as cursor for the next" if more else "this page is the last one",
    )


def _texts(value: JsonValue, *path: str) -> list[str]:
    return [text for text in list_at(value, *path) if isinstance(text, str)]


def _texts_of(rows: Sequence[JsonValue], field: str) -> list[str]:
    return [text for row in rows if (text := text_at(row, field))]


def _named(names: Iterable[str]) -> str:
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    return ", ".join(found[:_MAX_NAMED]) + more


def _three(first: str, second: str, third: str) -> Sentences:
    return _sentence(first), _sentence(second), _sentence(third)


def _sentence(text: str) -> str:
    text = shown(text.strip())
    text = text if len(text) <= _MAX_SENTENCE else f"{text[:_MAX_SENTENCE]}..."
    end = "" if text.endswith((".", "?", "!")) else "."
    # Names stay as they are.
    is_word = text.partition(" ")[0].rstrip(":,;").isalpha()
    return f"{text[:1].upper() if is_word else text[:1]}{text[1:]}{end}"
