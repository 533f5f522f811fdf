"""Who may import what, where import-linter cannot see it: it takes an import of the extension for one of the root."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "python"
PACKAGES = ("kueuecore", "kueuecore_apiserver")
MODULES = {
    ".".join(file.relative_to(SOURCES).with_suffix("").parts): file
    for package in PACKAGES
    for file in sorted((SOURCES / package).rglob("*.py"))
}

EXTENSIONS = ("kueuecore._core", "kueuecore._proof")
# Plain data and pure functions: they work without the extension, and the reference must not share code with it.
WITHOUT_EXTENSION = ("objects", "errors", "manifests", "jobs", "reference", "releases", "cli")
# The reference is the definition: it knows the objects and what each release has, and nothing else of the package.
KNOWN_TO_REFERENCE = ("kueuecore.reference", "kueuecore.objects", "kueuecore.errors", "kueuecore.releases")


def imported(file: Path) -> Iterator[str]:
    """Yield every name that a file imports, as `module` and `module.name`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(module: str) -> list[str]:
    """Return what a module imports of the packages."""
    return [name for name in imported(MODULES[module]) if within(name, PACKAGES)]


def within(name: str, modules: tuple[str, ...]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def test_plain_data_and_pure_functions_work_without_the_extension() -> None:
    plain = [module for module in MODULES if within(module, tuple(f"kueuecore.{name}" for name in WITHOUT_EXTENSION))]
    assert {module: name for module in plain for name in ours(module) if within(name, EXTENSIONS)} == {}


def test_only_recorded_cases_need_the_extension_of_the_proof() -> None:
    product = [module for module in MODULES if not within(module, ("kueuecore.conformance",))]
    assert {module: name for module in product for name in ours(module) if within(name, EXTENSIONS[1:])} == {}


def test_no_module_imports_from_the_root() -> None:
    parts = (*EXTENSIONS, *(name.removesuffix(".__init__") for name in MODULES if name != "kueuecore.__init__"))
    inner = [module for module in MODULES if module != "kueuecore.__init__"]
    assert {module: name for module in inner for name in ours(module) if not within(name, parts)} == {}


def test_the_reference_knows_only_the_objects() -> None:
    reference = [module for module in MODULES if within(module, ("kueuecore.reference",))]
    assert {module: name for module in reference for name in ours(module) if not within(name, KNOWN_TO_REFERENCE)} == {}


def test_the_packages_are_found() -> None:
    assert {"kueuecore.__init__", "kueuecore_apiserver.__init__"} <= set(MODULES)


def test_only_the_part_for_clusters_does_io_over_networks() -> None:
    networks = (
        "aiohttp",
        "asyncio",
        "http",
        "kubernetes",
        "prometheus_client",
        "socket",
        "ssl",
        "starlette",
        "urllib.request",
        "urllib3",
        "uvicorn",
    )
    apart = (
        "kueuecore.agents",
        "kueuecore.kubernetes",
        "kueuecore.trials",
        "kueuecore.ui",
        "kueuecore.cli.commands.mcp",
        "kueuecore.cli.commands.serve",
        "kueuecore_apiserver",
    )
    product = [module for module in MODULES if not within(module, apart)]
    assert {module: name for module in product for name in imported(MODULES[module]) if within(name, networks)} == {}
