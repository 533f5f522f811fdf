"""The image of `kueuecore serve`: what reaches its build, and what deploy/Containerfile promises."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
WHEEL = "dist/kueuecore-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl"
LOCK = "requirements/serve.lock"


def rules() -> list[str]:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def is_let_in(path: str) -> bool:
    """Whether a file reaches the build: the last rule that matches it, or a folder above it, decides."""
    place = PurePosixPath(path)
    above = [str(place), *(str(parent) for parent in place.parents if parent.name)]
    let_in = True
    for rule in rules():
        pattern = rule.removeprefix("!")
        # A `*` stays within a folder: patterns have as many parts as what they match.
        n_parts = pattern.count("/")
        if any(part.count("/") == n_parts and fnmatch.fnmatchcase(part, pattern) for part in above):
            let_in = rule.startswith("!")
    return let_in


@pytest.mark.parametrize("path", [WHEEL, LOCK])
def test_what_the_image_is_made_of_reaches_its_build(path: str) -> None:
    assert is_let_in(path)


@pytest.mark.parametrize(
    "path",
    [
        ".venv/lib/python3.11/site-packages/numpy/__init__.py",
        ".venv/bin/python",
        "target/release/deps/libkueuecore.rlib",
        "target/wheels/kueuecore-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl",
        ".cache/oracle/kueue-0.19",
        ".git/config",
        "dist/notes.txt",
        "dist/old/kueuecore-0.0.1-cp311-abi3-manylinux_2_34_x86_64.whl",
        "dist/kueuecore_apiserver-0.1.0-py3-none-any.whl",
        "python/kueuecore/_core.abi3.so",
        "requirements/dev.lock",
        "kubeconfig",
    ],
)
def test_what_a_used_checkout_collects_does_not(path: str) -> None:
    assert not is_let_in(path)


def test_no_source_reaches_it() -> None:
    sources = [path for part in ("python", "rust", "tests", "scripts", "deploy") for path in (ROOT / part).rglob("*.*")]
    assert len(sources) > 500
    assert not [path for path in sources if is_let_in(path.relative_to(ROOT).as_posix())]


def copied() -> list[str]:
    """The sources of the COPY lines that come from the checkout."""
    defaults = dict(re.findall(r"^ARG (\w+)=(.*)$", CONTAINERFILE, re.M))
    lines = re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINERFILE, re.M)
    return [re.sub(r"\$\{(\w+)\}", lambda found: defaults[found[1]], part) for line in lines for part in line.split()]


def test_all_that_is_copied_exists_and_is_let_in() -> None:
    wheel, lock = sorted(copied())
    assert lock == LOCK
    assert (ROOT / lock).is_file()
    assert fnmatch.fnmatchcase(WHEEL, wheel)


def test_its_bases_are_pinned_by_digest() -> None:
    (base,) = set(re.findall(r"^FROM (\S+)", CONTAINERFILE, re.M))
    assert base == "${PYTHON}"
    (python,) = re.findall(r"^ARG PYTHON=(.*)$", CONTAINERFILE, re.M)
    assert re.fullmatch(r"docker\.io/library/python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", python)


def test_it_installs_what_is_locked_and_runs_as_nobody() -> None:
    installs = re.findall(r"^RUN .* install .*$", CONTAINERFILE, re.M)
    assert [("--require-hashes" in line, "--no-deps" in line) for line in installs] == [(True, False), (False, True)]
    *_, last = CONTAINERFILE.split("\nFROM ")
    assert re.findall(r"^USER (.*)$", last, re.M) == ["65532:65532"]
    assert not re.search(r"apt-get|gcc|make|cargo", CONTAINERFILE.partition("\nFROM ")[2])


def test_the_lock_has_all_that_serve_needs_in_the_versions_that_are_tested() -> None:
    def versions(name: str) -> dict[str, set[str]]:
        text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
        found: dict[str, set[str]] = {}
        for package, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.M):
            found.setdefault(package, set()).add(version)
        return found

    serve, tested = versions("serve.lock"), versions("dev.lock")
    assert {"kubernetes", "numpy", "prometheus-client", "pyyaml"} <= serve.keys()
    assert {name: tested.get(name) for name in serve} == serve
