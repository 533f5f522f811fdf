"""Recognises files and documents that hold no objects of a cluster, and says what to do with them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore.errors import Problem

__all__ = [
    "KUSTOMIZATION",
    "OF_ENGINE",
    "OF_OBJECTS",
    "PATCH",
    "TEMPLATE",
    "is_about_objects",
    "is_of_command",
    "may_hold_objects",
    "other_contents",
    "other_document",
    "python_use_of",
    "skipped_files",
    "use_of",
]

_OURS = "kueuecore/"
_USES = {
    "Scenario": "use `kueuecore simulate` for a Scenario",
    "PolicyTest": "use `kueuecore test` for a PolicyTest",
    "TraceRules": "name TraceRules in a scenario, at `traces[].rules`, and use `kueuecore simulate`",
    "Configuration": "pass a Configuration with --config, or name it in a scenario, at `cluster.configuration`",
}
_PYTHON_USES = {
    "Scenario": "`kueuecore.run` runs a Scenario from its file",
    "PolicyTest": "`kueuecore.policy_tests.run_policy_test` runs what `read_policy_tests` reads from its file",
    "TraceRules": "`kueuecore.traces.read_rules` reads TraceRules from their file",
}
OF_OBJECTS = "use `kueuecore run` for the objects of a cluster"
"""What to do about objects of a cluster where a document of a command is needed."""
OF_ENGINE = "give manifests or a dump; `kueuecore run -o yaml` makes one of it"
"""What to do about a saved engine where manifests are needed."""
_OF_TRACE = "name a trace in a scenario, at `traces[].file`, and use `kueuecore simulate`"
_RENDER_CHART = "render the chart with `helm template`"
PATCH = ("this is a patch and not a Kubernetes object", "render what it changes with `kubectl kustomize`")
KUSTOMIZATION = ("this is a kustomization and not a Kubernetes object", "render it with `kubectl kustomize`")
TEMPLATE = ("this is a template of a Helm chart and not a Kubernetes object", _RENDER_CHART)
# By the name of the file: these may have a kind or an apiVersion that is not Kubernetes'.
_OF_TOOLS = {
    "Chart": ("this describes a Helm chart and is not a Kubernetes object", _RENDER_CHART),
    "values": ("these are values of a Helm chart and not a Kubernetes object", _RENDER_CHART),
    "kustomization": KUSTOMIZATION,
}
_MAX_FILES = 8
_KEY = re.compile(r"""(^|[\s\-[{,])['"]?(apiVersion|kind)['"]?\s*:""")
_GIVE_OBJECTS = "give Kubernetes objects, which start with apiVersion and kind"
# By zstd, bzip2 and xz; gzip is unpacked.
_COMPRESSED = (b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")
_PARQUET = b"PAR1"
_ENDINGS = (".swf", ".csv", ".tsv", ".psv", ".parquet")
_DELIMITERS = re.compile("[,|\t]")
_LOOKED_AT = 4096
_SWF_COLUMNS = 18
_LEAST_COLUMNS = 3


def is_about_objects(plain: JsonObject) -> bool:
    """Whether a document of ours is only about the objects beside it, as an Incident is (docs/symptoms.md)."""
    return text_at(plain, "apiVersion").startswith(_OURS) and text_at(plain, "kind") == "Incident"


def is_of_command(plain: JsonObject) -> bool:
    """Whether a document is for a command of its own, such as a Scenario, rather than an object of a cluster."""
    return text_at(plain, "apiVersion").startswith(_OURS) and text_at(plain, "kind") in _USES


def use_of(documents: Iterable[JsonObject]) -> str:
    """Say which command takes some documents; empty if none does.

    Example:
        >>> use_of([{"apiVersion": "kueuecore/v1", "kind": "PolicyTest"}])
        'use `kueuecore test` for a PolicyTest'
        >>> use_of([{"apiVersion": "v1", "kind": "Node"}]), use_of([{"kind": "Scenariu"}])
        ('use `kueuecore run` for the objects of a cluster', '')
    """
    for document in documents:
        kind, version = text_at(document, "kind"), text_at(document, "apiVersion")
        if version.startswith((_OURS, "config.kueue.x-k8s.io/")):
            return _USES.get(kind, "")
        if version and kind:
            return OF_OBJECTS
    return ""


def python_use_of(document: JsonObject) -> str:
    """Say what takes a document in Python; empty if nothing does.

    Example:
        >>> python_use_of({"apiVersion": "kueuecore/v1", "kind": "Scenario"})
        '`kueuecore.run` runs a Scenario from its file'
    """
    return _PYTHON_USES.get(text_at(document, "kind"), "") if is_of_command(document) else ""


def other_contents(data: str | bytes, file: str) -> tuple[str, str] | None:
    """Say what a file is that holds no objects, and what to do with it; None if it cannot be recognised.

    Args:
        data: Its contents.
        file: Its name.

    Example:
        >>> other_contents("; Version: 2.2", "a.txt")[0]
        'this is a recorded trace, not YAML or JSON'
        >>> other_contents("a: b: c", "a.yaml") is None
        True
    """
    start = data[:_LOOKED_AT]
    head = (start.encode("utf-8", "replace") if isinstance(start, str) else start).lstrip()
    is_journal = head.startswith(b"{") and b'"kueuecore.journal/' in head
    if head.startswith(b"kueuecore.engine/") or is_journal:
        return "this is a saved engine", f"use `kueuecore run` or `explain`, or {OF_ENGINE}"
    if file.removesuffix(".gz").endswith(_ENDINGS) or head.startswith(_PARQUET) or _is_table(head):
        return "this is a recorded trace, not YAML or JSON", _OF_TRACE
    if head.startswith(_COMPRESSED):
        return "this is compressed", "unpack it first, or compress it with gzip"
    return None


def may_hold_objects(data: str | bytes, file: str) -> bool:
    """Whether a file has the key apiVersion or kind, or is YAML; other tools have JSON with comments."""
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    return PurePath(file).suffix != ".json" or _KEY.search(text) is not None


def other_document(document: JsonValue, file: str) -> tuple[str, str] | None:
    """Say what a document without apiVersion and kind is, and what to do with it; None if it may be meant as an object.

    Args:
        document: The document.
        file: The name of its file.

    Example:
        >>> other_document({"resources": ["queues.yaml"]}, "base/kustomization.yaml")
        ('this is a kustomization and not a Kubernetes object', 'render it with `kubectl kustomize`')
        >>> other_document({"kind": "Job"}, "job.yaml") is None
        True
    """
    n_given = sum(bool(text_at(document, name)) for name in ("apiVersion", "kind"))
    if n_given == 2:
        return None
    of_tool = _OF_TOOLS.get(PurePath(file).name.partition(".")[0].partition("-")[0])
    if isinstance(document, dict):
        if n_given and of_tool is None:
            return None
        return of_tool or ("it has neither apiVersion nor kind, so it is not a Kubernetes object", _GIVE_OBJECTS)
    if not isinstance(document, list):
        return of_tool or ("this is a single value and not a Kubernetes object", _GIVE_OBJECTS)
    if any(text_at(value, "apiVersion") and text_at(value, "kind") for value in document):
        return None
    if document and all(text_at(value, "op") and text_at(value, "path") for value in document):
        return PATCH
    return of_tool or ("this is a list and not a Kubernetes object", _GIVE_OBJECTS)


def skipped_files(others: Iterable[Problem]) -> tuple[str, ...]:
    """Name the files of a directory that are skipped, in a sentence; nothing if none are.

    Args:
        others: What `read_manifests` has left out.
    """
    names = list(dict.fromkeys(other.file for other in others))
    more = f" and {len(names) - _MAX_FILES} more" if len(names) > _MAX_FILES else ""
    return (f"skipped what is not a Kubernetes object: {', '.join(names[:_MAX_FILES])}{more}",) if names else ()


def _is_table(head: bytes) -> bool:
    """Whether a text begins as Standard Workload Format or a table."""
    first = next(iter(head.splitlines()), b"").decode("utf-8", "replace").strip()
    names = [part.strip() for part in _DELIMITERS.split(first)]
    is_csv = len(names) >= _LEAST_COLUMNS and all(name.replace("_", "").isalnum() for name in names)
    return first.startswith(";") or (len(first.split()) >= _SWF_COLUMNS and first[0].isdigit()) or is_csv
