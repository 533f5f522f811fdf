"""Play random worlds with a released Kueue and with the engine, one in ten with the reference too, and compare.

Kueue is played by the program of tests/oracle, which `make oracle` builds. Each world follows from a seed. Where the
answers part, the world is played again to see whether chance decides it; if not, it is shrunk, shown, and written to a
file whose lines tests/regressions/kueue/ takes. Exits with 1 if anything differs that chance does not explain.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import sys
import time
from collections import Counter
from pathlib import Path

from kueuecore.releases import Release
from tests.judge.playing import ENGINE_NS, KUEUE_NS, Found
from tests.judge.running import Plan, Report, line_of, reports

ROOT = Path(__file__).resolve().parents[1]
# What the module of tests/oracle for a line is built from.
PLAYED = {"0.19": "0.19.2", "0.17": "0.17.0"}
FAMILIES_WANTED = {"with topology": 0.2, "with fair sharing": 0.2}
COUNTED = (
    *(
        "with topology",
        "with fair sharing",
        "cycles",
        "admissions",
        "preemptions",
        "left to chance",
        "what we do not play",
    ),
    "crashes of Kueue",
)
BETWEEN_LINES = 10.0


def shown(found: Found, release: str) -> str:
    """Return a difference in a few lines."""
    case = found.case
    size = "" if found.is_shrunk else "not shrunk: "
    size += f"{len(case['objects'])} objects, {len(case['input']['events'])} events"
    again = f"make fuzz-kueue RELEASE={release} WORLDS=1 SEED={found.seed}"
    return f"\n{found.by} differs: {found.told}\n  {size}; again: {again}\n"


def summary(total: Report, took: float) -> str:
    """Return what was played and found, in lines."""
    lines = [f"\n{total.worlds} worlds in {took:.0f} s, {total.worlds / max(took, 0.001):.0f} a second"]
    for name, n in sorted(total.families.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"  {name:<26} {n:>8} {n / max(total.worlds, 1):>5.0%}")
    lines += [f"{name:<28} {n:>8}" for name, n in sorted(total.counts.items()) if name not in (ENGINE_NS, KUEUE_NS)]
    kinds = Counter(f"{error.by}, {error.kind}" for error in total.found)
    lines.append(f"{'differences':<28} {len(total.found):>8}")
    lines += [f"  {kind}: {n}" for kind, n in kinds.most_common()]
    lines += [f"Kueue failed: {how} (first: seed {seed})" for how, seed in sorted(total.crashes.items())]
    lines += [f"not played: {why} (first: seed {seed})" for why, seed in sorted(total.errors.items())]
    n_cycles, n_worlds = max(total.counts["cycles"], 1), max(total.worlds, 1)
    engine, scheduler = (total.counts[name] / n_cycles / 1000 for name in (ENGINE_NS, KUEUE_NS))
    lines.append(f"a cycle: {scheduler:.0f} us in Kueue's scheduler, {engine:.0f} us in the engine with all around it")
    lines.append(
        f"CPU time of Kueue: {total.oracle_seconds:.1f} s, {1000 * total.oracle_seconds / n_worlds:.1f} ms a world"
    )
    lines.append(f"CPU time of this side: {total.seconds:.1f} s, {1000 * total.seconds / n_worlds:.1f} ms a world")
    return "\n".join(lines)


def record(total: Report, release: str, took: float, file: Path) -> None:
    """Add what was played to the totals that docs/fidelity.md shows."""
    totals = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    counted = {name: total.counts[name] + total.families[name] for name in COUNTED}
    counted |= {"worlds": total.worlds, "differences": len(total.found), "seconds": round(took)}
    before = totals.get(release, {})
    totals[release] = {name: n + before.get(name, 0) for name, n in counted.items()}
    file.write_text(json.dumps(totals, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", choices=sorted(PLAYED), default="0.19", help="the line of Kueue")
    parser.add_argument("--seconds", type=float, default=60.0, help="the longest time to run")
    parser.add_argument("--worlds", type=int, default=10**9, help="the most worlds to play")
    parser.add_argument("--seed", type=int, help="seed of the first world; random by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="workers")
    parser.add_argument("--reference-every", type=int, default=10, help="the reference plays one of so many; 0: none")
    parser.add_argument("--most", type=int, default=20, help="end after so many differences")
    parser.add_argument("--oracle", help="command that plays cases, instead of what `make oracle` built")
    parser.add_argument("--record", type=Path, help="add what was played to the totals in this file")
    arguments = parser.parse_args()
    built = ROOT / f".cache/oracle/kueue-{arguments.release}"
    command = tuple(shlex.split(arguments.oracle)) if arguments.oracle else (str(built), "--timed")
    if not arguments.oracle and not built.exists():
        print(f"{built} is missing: make oracle RELEASE={arguments.release}", file=sys.stderr)
        return 2

    # A worker for each core: a program that uses more than one takes it from another worker.
    os.environ.setdefault("GOMAXPROCS", "1")
    first = random.SystemRandom().randrange(10**9) if arguments.seed is None else arguments.seed
    release = Release.named(PLAYED[arguments.release])
    print(f"{release.title}, seed {first}", flush=True)
    begun = time.time()
    jobs = min(arguments.jobs, arguments.worlds)
    plan = Plan(
        release.name,
        command,
        first,
        arguments.worlds,
        begun + arguments.seconds,
        jobs,
        arguments.reference_every,
        arguments.most,
    )
    file = ROOT / f".cache/fuzz-kueue/{release.name}-{first}.jsonl"
    total, spoken = Report(), begun
    for report in reports(plan):
        total += report
        for found in report.found:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(line_of(found) + "\n")
            print(shown(found, arguments.release), flush=True)
        if time.time() > spoken + BETWEEN_LINES:
            spoken = time.time()
            rate = total.worlds / (spoken - begun)
            print(f"{total.worlds} worlds, {rate:.0f} a second, {len(total.found)} differences", flush=True)
    took = time.time() - begun
    print(summary(total, took))
    if arguments.record and not total.failure:
        record(total, release.name, took, arguments.record)
    if total.found:
        print(f"For tests/regressions/kueue/: {file}")
    if total.failure:
        print(total.failure, file=sys.stderr)
        return 2
    rare = [
        f"{what} in only {total.families[what] / total.worlds:.0%}"
        for what, share in FAMILIES_WANTED.items()
        if total.families[what] < share * total.worlds
    ]
    # A few worlds say little about shares.
    if rare and total.worlds >= 1000:
        print(f"too little happens: {', '.join(rare)}", file=sys.stderr)
        return 1
    return 1 if total.found else 0


if __name__ == "__main__":
    sys.exit(main())
