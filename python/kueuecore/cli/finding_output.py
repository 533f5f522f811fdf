"""Findings as text, JSON, SARIF, and GitHub Actions commands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import quote

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import counted
from kueuecore.cli.documents import document_head
from kueuecore.cli.github import github_command
from kueuecore.cli.table import Style, table
from kueuecore.errors import ObjectRef
from kueuecore.findings import RULES, Finding, Severity
from kueuecore.manifests import object_ref
from kueuecore.releases import Release
from kueuecore.version import version

__all__ = ["github_commands", "json_findings", "rules_table", "sarif_log", "text_lines"]

_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def text_lines(found: Sequence[Finding], style: Style, unfinished: Sequence[str] = ()) -> str:
    """One line per finding, a line per rule that gave up, and a line that counts the findings."""
    lines = []
    for finding in found:
        place, severity = finding.problem.place, str(finding.severity)
        text = style.paint(severity, _COLORS[finding.severity]) + finding.without_place.removeprefix(severity)
        lines.append(f"{place}: {text}" if place else text)
    return "\n".join([*lines, *unfinished, _summary(found)]) + "\n"


def _summary(found: Sequence[Finding]) -> str:
    counts = Counter(finding.severity for finding in found)
    parts = [counted(n, severity) for severity in Severity if (n := counts[severity])]
    return ", ".join(parts) or "nothing found"


def rules_table(style: Style) -> str:
    """All findings as a table."""
    rows = [[rule.code, rule.name, str(rule.severity), rule.summary] for rule in RULES]
    return table(["CODE", "NAME", "SEVERITY", "WHAT IT FINDS"], rows, style)


def json_findings(found: Sequence[Finding], release: Release, unfinished: Sequence[str] = ()) -> str:
    """The findings as one JSON document, with the release of Kueue that they are about."""
    counts = Counter(str(finding.severity) for finding in found)
    document: JsonObject = {
        **document_head(release),
        "counts": {str(severity): counts[severity] for severity in Severity},
        "findings": [_json(finding) for finding in found],
        "unfinished": list(unfinished),
    }
    return json.dumps(document, indent=2) + "\n"


def _json(finding: Finding) -> JsonObject:
    problem = finding.problem
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": str(finding.severity),
        "object": None if finding.object is None else _named(finding.object),
        "file": problem.file or None,
        "line": problem.line,
        "field": problem.field or None,
        "message": problem.message,
        "remedy": problem.remedy or None,
        "world": [_named(object_ref(manifest)) for manifest in finding.world],
    }


def _named(ref: ObjectRef) -> JsonObject:
    return {"kind": ref.kind, "namespace": ref.namespace or None, "name": ref.name}


def sarif_log(found: Sequence[Finding]) -> str:
    """The findings as a SARIF 2.1.0 log, the format for code scanning."""
    rules: list[JsonValue] = [
        {
            "id": rule.code,
            "name": rule.name,
            "shortDescription": {"text": rule.summary},
            "defaultConfiguration": {"level": str(rule.severity)},
        }
        for rule in RULES
    ]
    places = {rule.code: place for place, rule in enumerate(RULES)}
    driver: JsonObject = {"name": "kueuecore", "version": version(), "rules": rules}
    run: JsonObject = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, places[finding.code]) for finding in found],
    }
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(finding: Finding, rule_index: int) -> JsonObject:
    problem, about = finding.problem, finding.object
    location: JsonObject = {}
    if problem.file and not problem.file.startswith("<"):
        physical: JsonObject = {"artifactLocation": {"uri": _uri(problem.file)}}
        if problem.line:
            physical["region"] = {"startLine": problem.line}
        location["physicalLocation"] = physical
    if about is not None:
        location["logicalLocations"] = [
            {"fullyQualifiedName": f"{about.kind}/{about.key}", "name": about.name, "kind": "object"}
        ]
    text = f"{problem.field}: {problem.message}" if problem.field else problem.message
    return {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": str(finding.severity),
        "message": {"text": f"{text}; {problem.remedy}" if problem.remedy else text},
        "locations": [location] if location else [],
    }


def _uri(file: str) -> str:
    """A file as a URI; relative paths stay relative to the working directory."""
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def github_commands(found: Sequence[Finding]) -> str:
    """A GitHub Actions command per finding, which annotates its line."""
    return "".join(f"{_github(finding)}\n" for finding in found)


def _github(finding: Finding) -> str:
    problem = finding.problem
    prefix = f"{finding.severity} {finding.code} {finding.name}: "
    return github_command(
        _GITHUB[finding.severity],
        finding.without_place.removeprefix(prefix),
        title=f"{finding.code} {finding.name}",
        file=problem.file,
        line=problem.line,
    )
