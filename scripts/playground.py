"""Builds the playground, one page that decides in the browser: `python -m scripts.playground` after cargo.

`make playground` compiles the engine and calls this. The page has everything inside: the engine (compressed), the
library that reads YAML, style, scripts and examples.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import html
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

from kueuecore._json import JsonObject, text_at
from kueuecore._kinds import KINDS
from kueuecore.cli.documents import yaml_document
from kueuecore.cli.state_file import manifests_of
from kueuecore.version import DEFAULT_RELEASE, version
from kueuecore.world import World, is_workload

__all__ = ["EXAMPLES", "ROOT", "example", "page"]

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs" / "playground"
SCRIPTS = ("yaml.js", "engine.js", "page.js")
STYLE = ROOT / "python" / "kueuecore" / "ui" / "assets" / "page.css"
DOCS = "https://github.com/kueuecore/kueuecore/blob/main/docs/playground.md"
EXAMPLES = (
    "two-teams",
    "two-flavors",
    "taking-back",
    "what-if",
    "topology",
    "kinds-of-jobs",
    "zero-quota",
    "eta",
    "mistakes",
)
"""The examples that are decided at one moment; the others are scenarios, tests, fleets and the like."""
JS_YAML = "js-yaml@5.5.0"
# As the registry lists it.
_JS_YAML_SHA512 = "paNr4LFIFPjeeSmwNYdrb8FafLLG/Cr2Af3GjbsHJ5CxIjH4r0c2emlmRdAtpPAieP1gRVzk6buBbVP5gBMGAg=="
_JS_YAML_FILE = "package/dist/browser/js-yaml.umd.min.js"
_KINDS = frozenset((kind.api_version.rpartition("/")[0], kind.name) for kind in KINDS)


def example(name: str) -> str:
    """Return the objects of an example as one YAML text: instead of its jobs their Workloads, as the page makes none.

    Args:
        name: The name of its folder.
    """
    manifests = manifests_of([str(ROOT / "examples" / name)], recursive=False, quiet=True)
    objects = [manifest.object for manifest in World.of(manifests).manifests]
    return "---\n".join(yaml_document(plain, is_ascii=False) for plain in objects if _is_read(plain))


def _is_read(plain: JsonObject) -> bool:
    if text_at(plain, "kind") == "Workload":
        return is_workload(plain)
    return (text_at(plain, "apiVersion").rpartition("/")[0], text_at(plain, "kind")) in _KINDS


def yaml_library(cache: Path) -> str:
    """Return the library that reads YAML, from npm's registry or a folder in which it was kept.

    Args:
        cache: The folder.

    Raises:
        SystemExit: It cannot be had, with the exit code 75; or it is not the one that is expected.
    """
    archive = cache / f"{JS_YAML.replace('@', '-')}.tgz"
    if not archive.exists():
        cache.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["npm", "pack", "--silent", JS_YAML], cwd=cache, check=True, stdout=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"playground: skipped, no {JS_YAML} here: `npm pack {JS_YAML}` has to work: {error}")
            raise SystemExit(os.EX_TEMPFAIL) from None
    data = archive.read_bytes()
    if base64.b64encode(hashlib.sha512(data).digest()).decode() != _JS_YAML_SHA512:
        raise SystemExit(f"{archive} is not {JS_YAML}: remove it, and try again")
    with tarfile.open(archive) as files:
        member = files.extractfile(_JS_YAML_FILE)
        if member is None:
            raise SystemExit(f"{archive} has no {_JS_YAML_FILE}")
        return member.read().decode()


def page(engine: bytes, library: str) -> str:
    """Return the page.

    Args:
        engine: The engine as a WASI program.
        library: The script that reads YAML.
    """
    script = "\n".join([library, *((SOURCES / name).read_text("utf-8") for name in SCRIPTS)])
    style = STYLE.read_text("utf-8")
    examples = {name: example(name) for name in EXAMPLES}
    parts = {
        "policy": _policy(script, style),
        "style": style,
        "version": html.escape(f"kueuecore {version()}, deciding as Kueue {DEFAULT_RELEASE},"),
        "docs": html.escape(DOCS),
        "engine": base64.b64encode(gzip.compress(engine, 9, mtime=0)).decode(),
        # Inside a script element only `<` could end it.
        "examples": json.dumps(examples).replace("<", "\\u003c"),
        "script": script,
    }
    return "".join(_filled((SOURCES / "page.html").read_text("utf-8"), parts))


def _policy(script: str, style: str) -> str:
    """Return the page's security policy: only its own script runs, and it loads nothing."""
    script_hash, style_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)
    )
    return (
        f"default-src 'none'; script-src 'sha256-{script_hash}' 'wasm-unsafe-eval'; style-src 'sha256-{style_hash}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _filled(template: str, parts: dict[str, str]) -> Iterator[str]:
    """Yield the template with its parts filled in, once: a part may have braces of its own."""
    for index, piece in enumerate(template.split("{{")):
        if index == 0:
            yield piece
            continue
        name, _, rest = piece.partition("}}")
        yield parts[name]
        yield rest


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True, help="the compiled program")
    parser.add_argument("--to", type=Path, required=True, help="the page to write")
    options = parser.parse_args()
    text = page(options.engine.read_bytes(), yaml_library(ROOT / ".cache" / "playground"))
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.write_text(text, "utf-8")
    print(f"ready: {options.to}, {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main()
