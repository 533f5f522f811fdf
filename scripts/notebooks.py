"""Runs the notebooks in docs/notebooks, and stores what their cells return and print.

It needs no Jupyter: a cell is Python, and objects say themselves how a notebook shows them.
"""

from __future__ import annotations

import ast
import io
import json
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

__all__ = ["NOTEBOOKS", "cells_of", "outputs_of", "written"]

NOTEBOOKS = Path(__file__).parents[1] / "docs/notebooks"


def cells_of(path: Path) -> list[dict[str, Any]]:
    """Return the cells of code of a notebook."""
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def outputs_of(path: Path) -> list[list[dict[str, Any]]]:
    """Run the cells of a notebook in its folder, in one namespace, and return the outputs of each."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with chdir(path.parent):
        cells = enumerate(cells_of(path), 1)
        return [_outputs("".join(cell["source"]), namespace, number, path) for number, cell in cells]


def written(path: Path) -> str:
    """Return a notebook with the outputs of its cells."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, outputs) in enumerate(zip(cells, outputs_of(path), strict=True), 1):
        cell["outputs"], cell["execution_count"] = outputs, number
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _outputs(source: str, namespace: dict[str, Any], number: int, path: Path) -> list[dict[str, Any]]:
    """Run a cell, and return what it prints, and the value of its last line if that is an expression."""
    *first, last = ast.parse(source).body
    printed, found = io.StringIO(), None
    name = f"{path.name}, cell {number}"
    with redirect_stdout(printed):
        if not isinstance(last, ast.Expr):
            first.append(last)
        exec(compile(ast.Module(first, []), name, "exec"), namespace)
        if isinstance(last, ast.Expr):
            found = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if found is not None:
        data = {kind: _lines(text) for kind, text in _shown(found).items()}
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def _shown(value: Any) -> dict[str, str]:
    """Return how an object shows itself, by media type, as IPython asks for it."""
    if hasattr(value, "_repr_mimebundle_"):
        bundle = value._repr_mimebundle_()
        shown: dict[str, str] = bundle[0] if isinstance(bundle, tuple) else bundle
        return shown
    shown = {"text/html": value._repr_html_()} if hasattr(value, "_repr_html_") else {}
    return {**shown, "text/plain": repr(value)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Write the notebooks again."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text = written(path)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(NOTEBOOKS.parents[1])}")


if __name__ == "__main__":
    main()
