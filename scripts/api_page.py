"""Write docs/api.md: every public name of every public module, with the first sentence of its docstring.

    python -m scripts.api_page

The public modules are those directly in `kueuecore` that the wheel contains and whose names do not start with an
underscore; the insides of packages are private. A name is public if it is in the module's `__all__`.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import get_origin

import kueuecore

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
# The proof does not ship, and the command is described in docs/cli.md.
_APART = (
    "kueuecore.cli",
    "kueuecore.conformance",
    "kueuecore.reference",
    "kueuecore.trials",
    "kueuecore.pytest_plugin",
)
_HEAD = """# Public names

<!-- written by `make api` from the docstrings -->

Every public name, by module. `import kueuecore` offers the names of the first table; import the others from
their modules. `help(NAME)` has the arguments, the errors and examples.
"""
_SENTENCE_END = re.compile(r"(?<=[.?!])\s")


def public_modules() -> Iterator[ModuleType]:
    """Yield `kueuecore` and its public modules, by name."""
    yield kueuecore
    for name in sorted(module.name for module in pkgutil.iter_modules(kueuecore.__path__, "kueuecore.")):
        if name not in _APART and not name.startswith("kueuecore._"):
            yield import_module(name)


def summary(value: object) -> str:
    """Return the first sentence of a docstring, or the type of a constant.

    Examples:
        >>> summary(summary)
        'Return the first sentence of a docstring, or the type of a constant.'
        >>> summary(3)
        'A constant of type `int`.'
    """
    if not isinstance(value, ModuleType) and not callable(value):
        return f"A constant of type `{type(value).__name__}`."
    # Python gives an alias of a generic type that type's docstring, or none.
    if get_origin(value) is not None:
        return "A type, by a shorter name."
    # Generated docstrings of dataclasses, enums and built-in types say nothing.
    text = inspect.cleandoc(value.__dict__.get("__doc__") or "" if isinstance(value, type) else value.__doc__ or "")
    if not text or text.startswith(f"{getattr(value, '__name__', '')}("):
        return ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return _SENTENCE_END.split(paragraph)[0]


def page() -> str:
    """Return the whole page."""
    lines = [_HEAD]
    for module in public_modules():
        rows = []
        for name in getattr(module, "__all__", ()):
            sentence = summary(getattr(module, name)).replace("|", "\\|")
            rows.append(f"| `{name}` | {sentence} |\n")
        if rows:
            lines.append(f"\n## {module.__name__}\n\n{summary(module)}\n\n| name | what it is |\n|---|---|\n")
            lines.extend(rows)
    return "".join(lines)


def undocumented() -> list[str]:
    """Return the public classes and functions without a docstring of their own, as `module.name`."""
    found = set()
    for module in public_modules():
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if callable(value) and not summary(value):
                found.add(f"{module.__name__}.{name}")
    return sorted(found)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
