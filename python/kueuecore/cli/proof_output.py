"""What `kueuecore prove` has found, as text, JSON, and GitHub Actions commands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import counted
from kueuecore.cli.documents import document_head, experiments_document
from kueuecore.cli.github import github_command
from kueuecore.cli.markdown import MAX_ROWS, more_rows, plain
from kueuecore.cli.table import Style
from kueuecore.configuration import Configuration
from kueuecore.experiments import Experiments
from kueuecore.findings import Severity
from kueuecore.findings.remedies import Change
from kueuecore.manifests import Source, object_ref
from kueuecore.proving import MEANINGS, Counterexample, Proof, Property, TreeProof, remedies_of, severity_of, story_of

__all__ = ["coverage_sentences", "github_lines", "json_proof", "markdown_proof", "text_proof"]

_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def text_proof(proof: Proof, properties: Sequence[str], seconds: float, style: Style, experiments: Experiments) -> str:
    """Each counterexample as a story, and what was tried, tree by tree."""
    lines = [experiments.notice, ""] if experiments else []
    for tree in proof.trees:
        lines += [*_tree_lines(tree, properties, style), ""]
    interrupted = "interrupted: " if proof.is_interrupted else ""
    lines.append(f"{interrupted}{_counts(proof)} in {seconds:.0f} s. Beyond what was tried, this proves nothing.")
    return "\n".join(lines) + "\n"


def _counts(proof: Proof) -> str:
    """How many counterexamples there are, by severity."""
    counts = {it: sum(severity_of(found) is it for found in proof.counterexamples) for it in Severity}
    return ", ".join(counted(n, str(severity)) for severity, n in counts.items() if n) or "no counterexample"


def _tree_lines(tree: TreeProof, properties: Sequence[str], style: Style) -> Iterator[str]:
    scope = tree.scope
    queues, shapes = counted(len(scope.queues), "ClusterQueue"), counted(len(scope.shapes), "shape")
    yield style.paint(f"{scope.name}: {queues}, {shapes} of workloads", "bold")
    for assumed in scope.assumed:
        yield f"assumed: {assumed}"
    for found in tree.counterexamples:
        severity = severity_of(found)
        yield ""
        yield f"{style.paint(str(severity), _COLORS[severity])} {headline(found)}"
        yield from (f"  {line}" for line in story_of(found).lines)
        yield f"  These objects suffice: {objects_of(found)}"
        yield from (f"  {line}" for line in remedy_lines(found))
    yield ""
    broken = {found.breaks for found in tree.counterexamples}
    intact = [name for name in properties if name not in broken and name not in tree.elsewhere]
    if tree.is_late:
        intact = [name for name in intact if name == Property.PLACEMENT]
    if intact and tree.scope.shapes:
        yield f"no counterexample: {', '.join(intact)}"
    for name in tree.elsewhere:
        yield f"not evaluated, as it asks for objects of other trees: {name}"
    yield from coverage_sentences(tree)


def headline(found: Counterexample) -> str:
    """The property and what it means that it is broken, in a line."""
    text = f"{found.breaks}: {MEANINGS[Property(found.breaks)]}" if found.breaks in MEANINGS else str(found.breaks)
    if found.needs_partial_admission:
        text += ", where one may start with fewer pods (minCount)"
    if found.is_by_chance:
        text += ", until Kueue decides a tie by chance otherwise"
    return text


def objects_of(found: Counterexample) -> str:
    """The names of its objects."""
    refs = [object_ref(manifest.object) for manifest in found.manifests]
    return ", ".join(f"{ref.kind} {ref.key}" for ref in refs) or "none"


def remedy_lines(found: Counterexample) -> Iterator[str]:
    """What would stop it, a line each after one that says how that is known; nothing if no change is known."""
    remedies = remedies_of(found)
    if remedies:
        yield "Any of these would stop it, tried on the same moves in other orders, too; search again after a change:"
        yield from (f"- {change}" for change in remedies)


def coverage_sentences(tree: TreeProof) -> Iterator[str]:
    """What was tried, in a sentence each."""
    coverage = tree.coverage
    if coverage.n_alone:
        yield f"tried: {counted(coverage.n_alone, 'shape')} alone"
    if not tree.scope.shapes:
        yield "tried: nothing, as it has no quota but of 0, without end, or of pods alone"
    elif tree.is_late:
        yield f"tried: nothing{' else' if coverage.n_alone else ''}, as the time was over before"
    for n_shapes, depth in sorted(coverage.depths.items()):
        yield f"tried: all lists of up to {depth} moves with {counted(n_shapes, 'shape')}"
    if coverage.n_moves:
        yield f"tried: {coverage.n_moves:,} moves in all of them"
    if coverage.n_orders:
        yield f"tried: {coverage.n_orders:,} orders of up to three arrivals"
    if coverage.n_lists:
        yield (
            f"tried: {coverage.n_lists:,} drawn lists of up to {coverage.longest} moves, "
            f"which arrive in bursts, too ({coverage.n_drawn:,} moves)"
        )
    if coverage.n_unsettled:
        yield f"unsettled: after {counted(coverage.n_unsettled, 'move')} cycles did not come to an end, without a loop"
    if tree.n_own_states:
        yield f"tried: {tree.n_own_states:,} states for properties of your own"


def json_proof(proof: Proof, properties: Sequence[str], configuration: Configuration, seconds: float) -> str:
    """Everything as one JSON document."""
    document: JsonObject = {
        **document_head(configuration.release),
        **experiments_document(configuration.experiments),
        "properties": list[JsonValue](map(str, properties)),
        "ending": "Interrupted" if proof.is_interrupted else "Complete",
        "seconds": round(seconds, 1),
        "trees": [_json_tree(tree) for tree in proof.trees],
    }
    return json.dumps(document, indent=2) + "\n"


def _json_tree(tree: TreeProof) -> JsonObject:
    coverage = tree.coverage
    return {
        "name": tree.scope.name,
        "clusterQueues": list(tree.scope.queues),
        "assumed": list(tree.scope.assumed),
        "counterexamples": [_json_found(found) for found in tree.counterexamples],
        "coverage": {
            "depths": [{"shapes": n, "moves": depth} for n, depth in sorted(coverage.depths.items())],
            "alone": coverage.n_alone,
            "orders": coverage.n_orders,
            "moves": coverage.n_moves,
            "drawnLists": coverage.n_lists,
            "longestList": coverage.longest,
            "drawnMoves": coverage.n_drawn,
            "unsettled": coverage.n_unsettled,
            "ownStates": tree.n_own_states,
        },
    }


def _json_found(found: Counterexample) -> JsonObject:
    objects: list[JsonValue] = []
    for manifest in found.manifests:
        ref = object_ref(manifest.object)
        objects.append({"kind": ref.kind, "namespace": ref.namespace, "name": ref.name})
    return {
        "property": str(found.breaks),
        "severity": str(severity_of(found)),
        "needsPartialAdmission": found.needs_partial_admission,
        "isByChance": found.is_by_chance,
        "workloads": [shape.workload for shape in found.shapes],
        "objects": objects,
        "story": story_of(found).data(),
        "remedies": [_json_change(change) for change in remedies_of(found)],
    }


def _json_change(change: Change) -> JsonObject:
    queue = change.queue
    return {"kind": queue.kind, "name": queue.name, "field": f"spec.{change.field}", "value": change.value}


def github_lines(proof: Proof, experiments: Experiments) -> str:
    """An annotation for each counterexample, on the first ClusterQueue that takes part."""
    return "".join(f"{_github(found, experiments)}\n" for found in proof.counterexamples)


def _github(found: Counterexample, experiments: Experiments) -> str:
    queue = found.facts.cluster_queues[found.shapes[0].cluster_queue].source if found.shapes else Source()
    text = "\n".join(filter(None, [headline(found), experiments.notice, *story_of(found).lines, *remedy_lines(found)]))
    title = f"kueuecore prove: {found.breaks}"
    return github_command(_LEVELS[severity_of(found)], text, title=title, file=queue.file, line=queue.line)


def markdown_proof(proof: Proof, experiments: Experiments) -> str:
    """The counterexamples for the summary of a job."""
    lines = [f"### kueuecore prove: {_counts(proof)}", "", *([experiments.notice, ""] if experiments else [])]
    # Those with counterexamples first, as not all of many are shown.
    for tree in sorted(proof.trees, key=lambda it: not it.counterexamples)[:MAX_ROWS]:
        for found in tree.counterexamples:
            lines += [f"**{severity_of(found)}** {tree.scope.name}: {plain(headline(found))}", ""]
            lines += [*(f"> {plain(line)}  " for line in (*story_of(found).lines, *remedy_lines(found))), ""]
        lines += [f"{tree.scope.name}: {sentence}  " for sentence in coverage_sentences(tree)]
        lines.append("")
    if more := more_rows(len(proof.trees)):
        lines.append(f"{more} trees")
    if proof.is_interrupted:
        lines.append("The search was interrupted.")
    return "\n".join(lines) + "\n"
