"""Compare kueuecore's verdicts on altered objects with the API server's validation of Kueue's CRDs.

    server_verdicts.py [--show N] FILE...

Each line of a file: {"object": manifest, "refused": [messages]}; no message: the server accepted it. Exits with 1
unless

1. every object that the server refused is refused;
2. no object that the server accepted is refused by a rule that the server also applies, but only by rules of ObjectMeta
   or of Kueue's webhooks;
3. at least 95 % of the objects that the server refused are refused with all of its lines.

docs/differences-from-kueue.md lists which lines differ.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kueuecore import Configuration, Engine, ManifestError
from kueuecore.conformance import RECORDED_FROM

LEAST_IN_WORDS = 0.95
TAKEN, REFUSED = "TAKEN AGAINST THE SERVER", "REFUSED AGAINST THE SERVER"
SAME_WORDS, OTHER_WORDS = "refused in the server's words", "refused in other words"
# A note that CEL was skipped, and messages of the Go metadata decoder.
_NOT_COMPARED = re.compile("some validation rules were not checked|^META ")


def cases(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
        yield from map(json.loads, lines)


def lines_of(manifest: object) -> list[str]:
    """Return kueuecore's errors for an object created in an empty cluster."""
    try:
        Engine(Configuration(release=RECORDED_FROM)).apply(json.dumps(manifest).encode())
    except ManifestError as error:
        return [": ".join(filter(None, (problem.field, problem.message))) for problem in error.problems]
    return []


def rule_of(line: str) -> str:
    """Return a line without the parts specific to its object: positions, values and numbers."""
    return re.sub(r"[0-9]+", "N", re.sub(r'"(?:[^"\\\\]|\\\\.)*"', '"..."', line))[:200]


def compare(ours: list[str], theirs: list[str], rules: set[str]) -> tuple[str, list[str]]:
    """Return how two verdicts relate, and the lines that show it; `rules` are those that the server applies."""
    compared = [line for line in theirs if not _NOT_COMPARED.search(line)]
    missing = [line for line in compared if line not in ours]
    if theirs and not ours:
        return TAKEN, theirs[:1]
    if theirs:
        return (OTHER_WORDS, missing[:1]) if missing else (SAME_WORDS, [])
    wrongly = [line for line in ours if rule_of(line) in rules]
    return (
        (REFUSED, wrongly[:1]) if wrongly else ("refused by a webhook or ObjectMeta" if ours else "taken by both", [])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", type=int, default=3, metavar="N", help="show N examples of each difference")
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    verdicts = [(lines_of(case["object"]), case["refused"]) for file in options.files for case in cases(file)]
    spoken = {line for _, theirs in verdicts for line in theirs if not _NOT_COMPARED.search(line)}
    rules = {rule_of(line) for line in spoken if not line.startswith("metadata.")}
    counts: collections.Counter[str] = collections.Counter()
    examples: dict[str, list[str]] = collections.defaultdict(list)
    for ours, theirs in verdicts:
        kind, lines = compare(ours, theirs, rules)
        counts[kind] += 1
        examples[kind] += lines
    for kind, found in examples.items():
        for line in found[: options.show]:
            print(f"{kind}: {line[:300]}")
    for kind, number in sorted(counts.items()):
        print(f"{number:6} {kind}")
    share = counts[SAME_WORDS] / max(counts[SAME_WORDS] + counts[OTHER_WORDS], 1)
    print(f"{share:.1%} of the refusals have all lines of the server; at least {LEAST_IN_WORDS:.0%} have to")
    sys.exit(1 if counts[TAKEN] or counts[REFUSED] or share < LEAST_IN_WORDS else 0)


if __name__ == "__main__":
    main()
