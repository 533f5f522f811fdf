"""Run `kueuecore prove` on configurations, and play every counterexample with a released Kueue.

    judge_proofs.py [PATH...] --release 0.19

A PATH is a folder, a file, or a page whose YAML blocks have ClusterQueues; without any, the examples and the pages of
docs/. Kueue is played by the program of tests/oracle, which `make oracle` builds. For each counterexample a line says
whether Kueue, the engine of its release and the reference admit and evict the same workloads in the same order, and of
loops in how many plays Kueue goes round. Exits with 1 if anybody does something else. Objects and settings that the
release does not know are not played.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections import Counter
from pathlib import Path

from kueuecore.errors import KueuecoreError
from kueuecore.proving import Proof, Property, prove, severity_of
from kueuecore.proving.counterexample import Counterexample
from kueuecore.releases import Release
from scripts.fuzz_kueue import PLAYED, ROOT
from tests.judge.configurations import Given, configurations
from tests.judge.oracle import Oracle
from tests.judge.proofs import Judgement, judged

# Rules are cited by parts of objects.
PAGES = (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md")
EXAMPLES = tuple(sorted(it for it in (ROOT / "examples").iterdir() if it.is_dir()))


def searched(given: Given, properties: list[Property], n_moves: int) -> Proof:
    """Return what is found in so many moves, the same each time."""
    return prove(
        given.manifests,
        configuration=given.configuration,
        properties=properties,
        spent=lambda n: n / n_moves,
        n_threads=os.cpu_count() or 1,
    )


def line(found: Counterexample, judgement: Judgement) -> str:
    """Return in a line what was found, and what Kueue does."""
    kind = "partial admission" if found.needs_partial_admission else severity_of(found)
    moves = f"{len(found.moves)} moves, {judgement.n_evictions} evictions"
    told = f"  {found.breaks} ({kind}; {moves}): {'the same' if judgement.is_confirmed else 'DIFFERENT'}"
    if judgement.is_loop:
        told += f", goes round in {judgement.n_loops} of {judgement.n_plays} plays"
    told += ", chance decides" if judgement.is_chance else ""
    return "\n    ".join([told, *([judgement.error] if judgement.error else []), *judgement.differences])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", metavar="PATH", type=Path, nargs="*", help="folders, files and pages")
    parser.add_argument("--release", choices=sorted(PLAYED), default="0.19", help="the line of Kueue")
    parser.add_argument("--moves", type=int, default=20_000, help="how many moves to search in a configuration")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin with no configuration after these")
    parser.add_argument("--property", choices=[*Property], action="append", help="only this one; repeatable")
    parser.add_argument("--oracle", help="command that plays cases, instead of what `make oracle` built")
    arguments = parser.parse_args()
    built = ROOT / f".cache/oracle/kueue-{arguments.release}"
    command = shlex.split(arguments.oracle) if arguments.oracle else [str(built)]
    if not arguments.oracle and not built.exists():
        print(f"{built} is missing: make oracle RELEASE={arguments.release}", file=sys.stderr)
        return 2
    release = Release.named(PLAYED[arguments.release])
    properties = [Property(name) for name in arguments.property or Property]
    counted: Counter[str] = Counter()
    begun = time.monotonic()
    print(release.title, flush=True)
    with Oracle(command, patience=60.0) as oracle:
        for given in (it for path in arguments.paths or (*EXAMPLES, *PAGES) for it in configurations(path)):
            if time.monotonic() - begun > arguments.seconds:
                counted["configurations left out"] += 1
                continue
            try:
                proof = searched(given, properties, arguments.moves)
            except KueuecoreError as error:
                counted["configurations refused"] += 1
                print(f"{given.name}: {str(error).splitlines()[0]}")
                continue
            counted["configurations"] += 1
            if proof.counterexamples:
                print(given.name)
            for found in proof.counterexamples:
                try:
                    judgement = judged(found, given.name, release, oracle)
                except KueuecoreError as error:
                    counted["counterexamples that the release cannot play"] += 1
                    print(f"  {found.breaks}: {str(error).splitlines()[0]}")
                    continue
                counted["counterexamples"] += 1
                counted["different"] += not judgement.is_confirmed
                print(line(found, judgement), flush=True)
    print(f"\n{time.monotonic() - begun:.0f} s")
    print(*(f"{what}: {n}" for what, n in counted.items()), sep="\n")
    return 1 if counted["different"] or not counted["configurations"] else 0


if __name__ == "__main__":
    sys.exit(main())
