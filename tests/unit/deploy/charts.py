"""Renders the chart: with the real helm where it is installed, and by the program in `render/` where Go is."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

Json = dict[str, Any]
CHART = Path("deploy/chart")
KUEUES = "kueue-system"
RENDERERS = ("helm", "go")
_BUILT = Path(".cache/render")


class ChartError(ValueError):
    """A renderer has refused the values."""


@cache
def _program() -> str:
    """The path of the program in `render/`; empty if it cannot be built here."""
    source = Path(__file__).with_name("render")
    if shutil.which("go") is None:
        return ""
    _BUILT.parent.mkdir(exist_ok=True)
    # Tests run in several processes: another may run the program while this one builds it.
    own = _BUILT.absolute().with_name(f"render-{os.getpid()}")
    command = ["go", "build", "-C", str(source), "-mod=readonly", "-o", str(own), "."]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return ""
    own.replace(_BUILT)
    return str(_BUILT.absolute())


def printed(renderer: str, values: Json, namespace: str = KUEUES) -> tuple[str, str]:
    """What a renderer prints and says besides, or skips the test if there is none.

    Raises:
        ChartError: It refuses the values.
    """
    code, output, errors = _ran(renderer, json.dumps(values), namespace)
    if code:
        raise ChartError(errors)
    return output, errors


@cache
def _ran(renderer: str, given: str, namespace: str) -> tuple[int, str, str]:
    if renderer == "helm":
        if shutil.which("helm") is None:
            pytest.skip("helm is not installed")
        command = ["helm", "template", "kueuecore", str(CHART), "--namespace", namespace, "--values", "-"]
    else:
        if not (program := _program()):
            pytest.skip("no go here, or its modules cannot be had")
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
        command = [program, str(CHART), namespace, str(chart["version"]), given]
    ran = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def rendered(renderer: str, values: Json | None = None, namespace: str = KUEUES) -> list[Json]:
    """The objects of a chart with values."""
    output, _ = printed(renderer, values or {}, namespace)
    return [entry for entry in yaml.safe_load_all(output) if entry]


def key(entry: Json) -> tuple[str, str, str]:
    """Kind, namespace and name of an object."""
    return entry["kind"], entry["metadata"].get("namespace", ""), entry["metadata"]["name"]


def by_key(entries: list[Json]) -> dict[tuple[str, str, str], Json]:
    """Objects by kind, namespace and name; each only once."""
    found = {key(entry): entry for entry in entries}
    assert len(found) == len(entries)
    return found


def in_namespace(entries: list[Json], namespace: str) -> list[Json]:
    """Objects of deploy/ as they are in another namespace than Kueue's."""
    return [_replaced(entry, namespace) for entry in copy.deepcopy(entries)]


def _replaced(part: Any, namespace: str) -> Any:
    if isinstance(part, dict):
        return {name: _replaced(value, namespace) for name, value in part.items()}
    if isinstance(part, list):
        return [_replaced(value, namespace) for value in part]
    return namespace if part == KUEUES else part


def used_values() -> set[str]:
    """The first names of the values that templates read."""
    texts = [path.read_text("utf-8") for path in (CHART / "templates").iterdir()]
    found = {name for text in texts for name in re.findall(r"\.Values\.(\w+)", text)}
    # Those that are looked up by name.
    lists = [names for text in texts for names in re.findall(r"range \$name := list((?: \"\w+\")+)", text)]
    return found | {name for names in lists for name in re.findall(r"\w+", names)}
