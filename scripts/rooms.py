"""Check which modules of the engine use which, and which of what stands around it.

    rooms.py [ROOT]

The folders of `rust/core/src` are rooms, in the order of the table in ARCHITECTURE.md: a module may use only its own
room and those further up the table. So are the files of `rust/wire/src`, each with the folder of its name. Files must
not use each other in a cycle, unless one is the parent of the other. Exits with 1 and names each use that breaks a
rule. Tests may use anything.

A method counts as used where it is called: an `impl State` may be in any room that uses `State`, and its methods may be
called there and further down the table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SOURCES = ("rust/core/src", "rust/wire/src")
# Any module may use these, and they may use any module.
_OUTSIDE = {"", "testing"}

_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^]]*\]\s*)*(?:pub )?mod \w+ \{.*", re.DOTALL)
_COMMENT = re.compile(r"//.*")
_USE = re.compile(r"^\s*(pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
_PATH = re.compile(r"\b(?:crate|self|super)(?:::\w+)+")
_ITEM = re.compile(
    r"^(?:pub(?:\([^)]*\))? )?(?:const fn|unsafe fn|fn|struct|enum|trait|type|const|static) (\w+)", re.MULTILINE
)
# Not the `impl` of a trait.
_IMPL = re.compile(r"^impl(?:<[^{]*?>)? (\w+)(?:<(?:(?! for )[^{])*?>)? \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_METHOD = re.compile(r"^    (?:pub(?:\([^)]*\))? )?(?:const )?fn (\w+)", re.MULTILINE)
_OWN_CALL = re.compile(r"\bself\s*\.(\w+)\(")
_CALL = re.compile(r"\b([a-z]+)\s*\.(\w+)\(")


@dataclass(slots=True)
class Module:
    """One file, without comments and tests."""

    name: str
    text: str
    items: set[str] = field(default_factory=set)
    # Its imports and re-exports: name -> path from the crate root.
    exports: dict[str, list[str]] = field(default_factory=dict)
    globs: list[list[str]] = field(default_factory=list)

    @property
    def parts(self) -> list[str]:
        return self.name.split("::") if self.name else []


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """`user` names or calls `what`, which is in `used`."""

    user: str
    used: str
    what: str

    def __str__(self) -> str:
        return f"{file_of(self.user)} uses {self.what} of {file_of(self.used)}"


def file_of(module: str) -> str:
    return module.replace("::", "/") or "lib"


def read_modules(root: Path) -> dict[str, Module]:
    modules = {}
    for file in sorted(root.rglob("*.rs")):
        parts = list(file.relative_to(root).with_suffix("").parts)
        if parts[-1] in ("mod", "lib"):
            parts.pop()
        if "tests" not in parts:
            text = _COMMENT.sub("", _TESTS.sub("", file.read_text(encoding="utf-8")))
            modules["::".join(parts)] = Module("::".join(parts), text, set(_ITEM.findall(text)))
    for module in modules.values():
        for public, tree in _USE.findall(module.text):
            for path in leaves(tree):
                if public and path[-1] == "*":
                    module.globs.append(absolute(path[:-1], module, modules))
                elif public:
                    module.exports[path[-1]] = absolute(path, module, modules)
    return modules


def leaves(tree: str) -> Iterator[list[str]]:
    """Yield the paths of a `use`: `a::{b, c::d}` has `a::b` and `a::c::d`."""
    tree = tree.strip()
    if match := re.fullmatch(r"([\w:]*?)(?:::)?\{(.*)\}", tree, re.DOTALL):
        prefix = [part for part in match[1].split("::") if part]
        depth, branch = 0, ""
        for character in match[2] + ",":
            depth += (character == "{") - (character == "}")
            if character == "," and depth == 0:
                yield from (prefix + path for path in leaves(branch))
                branch = ""
            else:
                branch += character
    elif tree:
        path = re.sub(r"\s+as\s+\w+$", "", tree).split("::")
        yield path[:-1] if path[-1] == "self" else path


def absolute(path: list[str], module: Module, modules: dict[str, Module]) -> list[str]:
    """Return the path from the crate root; empty for other crates."""
    if path[0] == "crate":
        return path[1:]
    if path[0] == "self":
        return module.parts + path[1:]
    if path[0] == "super":
        n_up = sum(part == "super" for part in path)
        return module.parts[: len(module.parts) - n_up] + path[n_up:]
    child = [*module.parts, path[0]]
    return module.parts + path if "::".join(child) in modules else []


def resolve(path: list[str], modules: dict[str, Module]) -> str | None:
    """Return the module that defines the thing at a path, through re-exports."""
    for n in range(len(path), -1, -1):
        module = modules.get("::".join(path[:n]))
        if module is None:
            continue
        if n == len(path) or path[n] in module.items:
            return module.name
        if path[n] in module.exports:
            return resolve(module.exports[path[n]], modules) or module.name
        for glob in module.globs:
            found = modules.get("::".join(glob))
            if found is not None and path[n] in found.items:
                return found.name
        return module.name
    return None


def find_uses(modules: dict[str, Module]) -> set[Use]:
    """Find all uses by name."""
    uses = set()
    for module in modules.values():
        paths = [path for _, tree in _USE.findall(module.text) for path in leaves(tree)]
        paths += [match.split("::") for match in _PATH.findall(module.text)]
        for path in paths:
            whole = absolute(path, module, modules)
            used = resolve(whole, modules) if whole else None
            if used is not None and used != module.name:
                uses.add(Use(module.name, used, path[-1]))
    return uses


def find_calls(modules: dict[str, Module]) -> set[Use]:
    """Find calls of methods of types with methods in several files: on `self`, or on a value named like the type."""
    homes: dict[tuple[str, str], str] = {}
    files: dict[str, set[str]] = {}
    for module in modules.values():
        for kind, body in _IMPL.findall(module.text):
            homes.update({(kind, method): module.name for method in _METHOD.findall(body)})
            files.setdefault(kind, set()).add(module.name)
    kinds = {kind.lower(): kind for kind, found in files.items() if len(found) > 1}
    calls = set()
    for module in modules.values():
        called = [(kind, method) for kind, body in _IMPL.findall(module.text) for method in _OWN_CALL.findall(body)]
        called += [(kinds[value], method) for value, method in _CALL.findall(module.text) if value in kinds]
        for kind, method in called:
            home = homes.get((kind, method), module.name)
            if home != module.name:
                calls.add(Use(module.name, home, f"{kind}::{method}"))
    return calls


def read_order(architecture: str, sources: str) -> list[str]:
    """Return the rooms in the order of the table of these sources: the first uses none of the others."""
    table = re.search(rf"^\| in `{sources}` \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", architecture, re.MULTILINE)
    if table is None:
        raise SystemExit(f"rooms: ARCHITECTURE.md has no table of the rooms in {sources}")
    rooms = re.findall(r"^\|((?: `\w+`,?)+) \|", table[1], re.MULTILINE)
    return [room for line in rooms for room in re.findall(r"\w+", line)]


def room_of(module: str) -> str:
    return module.split("::")[0]


def find_faults(modules: dict[str, Module], order: list[str], sources: str = SOURCES[0]) -> list[str]:
    """Return violations of the rules, as sentences."""
    rooms = {room_of(name) for name in modules} - _OUTSIDE
    faults = [f"{room}: is in {sources} and not in ARCHITECTURE.md" for room in sorted(rooms - set(order))]
    faults += [f"{room}: is in ARCHITECTURE.md and not in {sources}" for room in sorted(set(order) - rooms)]
    if faults:
        return faults
    place = {room: index for index, room in enumerate(order)}
    uses = {use for use in find_uses(modules) if not {room_of(use.user), room_of(use.used)} & _OUTSIDE}
    calls = {use for use in find_calls(modules) if not {room_of(use.user), room_of(use.used)} & _OUTSIDE}
    for use in sorted(uses | calls):
        user, used = room_of(use.user), room_of(use.used)
        if place[user] < place[used]:
            faults.append(f"{use}, but room {used} is above {user}")
    return faults + [f"a cycle: {circle}" for circle in find_circles(uses)]


def find_circles(uses: set[Use]) -> list[str]:
    """Return cycles of files, except between a parent and its children."""
    graph: dict[str, dict[str, Use]] = {}
    for use in sorted(uses):
        a, b = f"{use.user}::", f"{use.used}::"
        if not (a.startswith(b) or b.startswith(a)):
            graph.setdefault(use.user, {}).setdefault(use.used, use)
    found: dict[frozenset[str], str] = {}
    for start in graph:
        path = shortest_path(graph, start)
        if path:
            found.setdefault(frozenset(use.user for use in path), "; ".join(map(str, path)))
    return sorted(found.values())


def shortest_path(graph: dict[str, dict[str, Use]], start: str) -> list[Use]:
    """Return the shortest path from a file back to itself; empty if there is none."""
    reached: dict[str, list[Use]] = {start: []}
    waiting = [start]
    for module in waiting:
        for used, use in graph.get(module, {}).items():
            path = [*reached[module], use]
            if used == start:
                return path
            if used not in reached:
                reached[used] = path
                waiting.append(used)
    return []


def main(root: Path) -> int:
    architecture = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    faults = []
    for sources in SOURCES:
        faults += find_faults(read_modules(root / sources), read_order(architecture, sources), sources)
    for fault in faults:
        print(f"rooms: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path()))
