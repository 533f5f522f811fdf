"""Write docs/fidelity.md: how the engine and the reference model compare with recorded decisions of the real Kueue.

Runs both on every recorded case, and caches the answers in .cache/fidelity by the contents of the code and of the
recording, so that an interrupted run, or one limited by --seconds, resumes. Cases not reached are "not run".
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from kueuecore.releases import DEFAULT_RELEASE, Release, changes, releases

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/fidelity.md"
CACHE = ROOT / ".cache/fidelity"
PLAYED = ROOT / "tests/conformance/played.json"
SIDES = ("engine", "reference")
VERDICTS = ("passed", "failed", "not built", "not run")
FOLDERS = ("whole", "traces", "traces-topology", "found", "found-november", "scale")

# A suite belongs to the first subject with a matching pattern.
SUBJECTS = {
    "Topology": [
        *("*/tas_*", "*_tas", "*_tas_*", "*topology*", "*/flavor_scan_*", "*/schedule_preserve_*", "*second_pass"),
    ],
    "Quantities and requests": [
        *("whole/adjust_resources", "whole/amount_*", "whole/resource_*", "whole/limit_range_*", "whole/validate_*"),
        *("whole/new_info", "whole/scheduling_hash"),
    ],
    "Quota": [
        *("whole/available", "whole/cache_*", "whole/cluster_queue_u*", "whole/cohort_*", "whole/delete*"),
        *("whole/is_borrowing_on", "whole/local_queue_usage", "whole/snapshot*", "whole/update_with_rebuild"),
    ],
    "Assignment of flavors": ["whole/assign_*"],
    "Preemption": ["whole/preemption", "whole/hierarchical_*", "whole/reclaim_*", "whole/*recompute_preemption"],
    "Fair sharing": ["whole/dominant_*", "whole/fair_*", "whole/schedule_fair_sharing"],
    "Admission fair sharing": ["whole/schedule_afs"],
    "Queues": ["whole/queue_*"],
    "Readiness and admission checks": ["whole/checks_*", "whole/cluster_queue_*", "whole/sync_*"],
    "Cycles": ["whole/schedule*"],
    "Whole runs of many cycles": ["traces/*"],
    "Runs that once differed": ["found/*", "found-november/*"],
    "Large runs": ["scale/*"],
    "Others": ["*"],
}

NOT_ASKED = {("reference", "scale"): "too many workloads for a model that scans all of them in every cycle"}
HEAD = " | ".join(["| suite", "cases", *(f"{side}: {v}" for side in SIDES for v in VERDICTS), "what it is about |"])


INTRODUCTION = """# Fidelity

How the engine and the reference model compare with recorded decisions of the real Kueue. The reference states the same
rules and shares no code with the engine. A case passes if everything recorded is the same: decisions, statuses,
messages.

Written by `make fidelity` at {revision}; Kueue at commit {kueue}. Do not edit it: run the command again.

- **failed**: the answer differs from Kueue's; **not built**: it says that it cannot answer; **not run**: not tried.
- `whole/` are Kueue's own test tables, where a public API can answer them; `traces/` whole runs of many cycles,
  `traces-topology/` the same with nodes; `scale/` its performance scenarios.
- Below are whole runs of real releases, each played as the release that it was recorded from. What is left to chance
  there, or to sums that wrap around beyond 2^63, is not met; the last column says so.
- Random worlds that compare engine and reference move by move: {worlds}.
"""

READ_ALONE = """## What release {line} rests on

Kueue {release} was not run: neither its whole source nor a module of it can be had here. What it has in common with
commit {commit} of its development rests on the recorded answers above. What it changed since was taken from single
newer files and tests, from proposals and pull requests, and from its changelog. **None of that was compared with a
running {release}.** The engine and the reference agree on it, in a world made for each change and in random ones.

| how a change without a gate is known | changes |
|---|--:|
| its code or a test of it was read | {read} |
| a proposal, a pull request or an issue describes it | {proposal} |
| a sentence of the changelog is all that was found | {changelog} |

[Gates](feature-gates.md): {new_gates} are new, {other_gates} have another stage or default. They are from Kueue's table
of four days before the release; the four that came after it are from the changelog. [Upgrade](upgrade.md#019-to-020)
says of each row how it is known, and what is not played.

Once there is a module of {line}, `tests/oracle` takes its version, and the worlds below are played against it, too.
"""

AGAINST_KUEUE = """## Played against the real Kueue

`make fuzz-kueue RELEASE=0.19` draws random worlds, and lets both a released Kueue and the engine play each: Kueue's own
scheduler, caches, queues and controllers, taken as a Go module from where it is published, in virtual time with an
API server in memory (`tests/oracle`). One world in ten is played by the reference, too. All three have to agree on
every admission with its flavors and nodes, every preemption, every status and every message. Where they do not, Kueue
plays the world up to 202 times more, and 2,002 times if the plays differ: what they disagree about is left to chance,
by the iteration order of Go's maps. Any other difference is shrunk to a case that `tests/regressions/kueue` keeps with
Kueue's answer.

The player reproduces all recorded runs of 0.19.2. Not drawn, as they are known to differ
([known.py](../tests/judge/known.py)):

- workloads that end or are deleted while a cycle waits for the pods of another (`blockAdmission`): Kueue admits what
  has ended;
- slices of elastic workloads with usage-based sharing: for a moment Kueue prices a slice and the one that it replaces;
- a LocalQueue that moves to another ClusterQueue, which an API server refuses;
- nodes that change in the very second in which an admission check becomes Ready.

Open: where a node fails, returns and fails again within seconds, and the second pass of a workload fails while another
is due, the engine reports the workload as admitted once more than Kueue.

Worlds that are played but not compared are in [unplayed.py](../tests/judge/unplayed.py): what old patches do, each with
the pull request that ended it, and usage beyond 2^63-1.
"""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one case: one of VERDICTS, and the reason unless it passed."""

    verdict: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A recorded case and its origin."""

    suite: str
    content: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{self.release} {self.content['id']}".strip()

    @property
    def release(self) -> str:
        """The release of Kueue that it was recorded from; empty for the commit of the other recordings."""
        return str(self.content.get("kueue", ""))


class Recording:
    """The recorded cases in a folder, with the tool that judges answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tool = _loaded(folder / "check.py")
        self.needs: dict[str, list[str]] = json.loads((folder / "needs.json").read_text(encoding="utf-8"))

    def cases(self) -> Iterator[Case]:
        for folder in FOLDERS:
            for suite, content in self.tool.cases([self.folder / folder]):
                yield Case(f"{folder}/{content['family'] if folder.startswith('traces') else suite}", content)
        for suite, content in self.tool.cases(sorted((self.folder / "releases").glob("v*.jsonl.gz"))):
            yield Case(f"releases/{content.get('family', suite)}", content)

    def digest(self) -> str:
        return _digest(path for path in self.folder.rglob("*") if path.suffix in (".jsonl", ".gz", ".py", ".json"))


@cache
def _loaded(script: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("check", script)
    assert spec is not None, "a Python file has a spec"
    assert spec.loader is not None, "and a loader"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _digest(paths: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def code_digest(side: str) -> str:
    """Return a digest of one side's code."""
    package = ROOT / "python/kueuecore"
    code = set(package.rglob("*.py")) | set(package.glob("_*.so"))
    model = {path for path in code if "reference" in path.name or "reference" in path.parent.name}
    # Both are given the same worlds, and what they say has the same shape.
    asking = set((package / "conformance").glob("*.py"))
    return _digest(model | asking if side == "reference" else code - model)


def judged(recording: Path, case: Case, side: str, seconds: int) -> Result:
    """Run one side on one case, in a pool process."""
    _, _, verdict, lines = _loaded(recording / "check.py").judge((case.suite, case.content), side, seconds)
    about = lines[0] if lines else ""
    if verdict == "skipped":
        return Result("not built", about.removeprefix("not built yet: "))
    if about == f"no answer in {seconds} s":
        return Result("not run", about)
    return Result(str(verdict), about)


def known_reasons(folder: Path) -> list[tuple[str, str]]:
    """Return patterns of cases that may fail, with the reasons from the lists of known differences."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("known*.txt"))]
    entries = [line.partition("#") for text in texts for line in text.splitlines()]
    return [(pattern.strip(), reason.strip().removeprefix("needs ")) for pattern, _, reason in entries if pattern]


def reason_of(case: Case, result: Result, needs: Mapping[str, Sequence[str]], known: Sequence[tuple[str, str]]) -> str:
    """Return why a case did not pass."""
    if result.verdict == "not run":
        return result.about
    if "topology" in needs.get(str(case.content["id"]), ()) or subject_of(case.suite) == "Topology":
        return "topology"
    found = next((reason for pattern, reason in known if fnmatch.fnmatch(str(case.content["id"]), pattern)), None)
    return found or result.about.replace("|", "\\|")[:200] or "unknown"


def ask(recording: Recording, side: str, cases: Sequence[Case], options: argparse.Namespace) -> dict[str, Result]:
    """Return results by case. Cached answers of the same code are reused."""
    CACHE.mkdir(parents=True, exist_ok=True)
    kept = CACHE / f"{side}-{code_digest(side)}-{recording.digest()}.jsonl"
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    results = {name: Result(verdict, about) for name, verdict, about in map(json.loads, lines)}
    for case in cases:
        if (side, case.suite.partition("/")[0]) in NOT_ASKED:
            results[case.id] = Result("not run", NOT_ASKED[side, case.suite.partition("/")[0]])
    left = [case for case in cases if case.id not in results]
    until = time.monotonic() + options.seconds if options.seconds else float("inf")
    print(f"{side}: {len(cases) - len(left)} cached, {len(left)} to run", flush=True)
    with kept.open("a", encoding="utf-8") as log, ProcessPoolExecutor(options.jobs) as pool:
        size = 8 * options.jobs
        for start in range(0, len(left), size):
            if time.monotonic() > until:
                break
            some = left[start : start + size]
            futures = [pool.submit(judged, recording.folder, case, side, options.case_seconds) for case in some]
            for case, future in zip(some, futures, strict=True):
                result = results[case.id] = future.result()
                if result.verdict != "not run":
                    log.write(json.dumps([case.id, result.verdict, result.about]) + "\n")
            log.flush()
    return {case.id: results.get(case.id, Result("not run", "no time was left for it")) for case in cases}


@dataclass(slots=True)
class Row:
    """The verdicts of a suite or subject by side, and the reasons of cases that did not pass."""

    cases: int
    counts: dict[str, Counter[str]]
    about: list[str]

    @staticmethod
    def total(rows: Iterable[Row]) -> Row:
        rows = list(rows)
        counts = {side: sum((row.counts[side] for row in rows), Counter[str]()) for side in SIDES}
        return Row(sum(row.cases for row in rows), counts, [])

    def cells(self, name: str, mark: str = "") -> str:
        numbers = [self.counts[side][verdict] for side in SIDES for verdict in VERDICTS]
        assert sum(numbers) == len(SIDES) * self.cases, "each side has one verdict per case"
        reported = [f"{mark}{text}{mark}" for text in (name, self.cases, *numbers)]
        blank = {f"{mark}0{mark}": ""}
        return "| " + " | ".join([*(blank.get(cell, cell) for cell in reported), "; ".join(self.about)]) + " |"


def subject_of(suite: str) -> str:
    """Return the subject of a suite."""
    return next(name for name, patterns in SUBJECTS.items() if any(fnmatch.fnmatch(suite, p) for p in patterns))


def rows_of(
    cases: Sequence[Case],
    results: Mapping[str, Mapping[str, Result]],
    needs: Mapping[str, Sequence[str]],
    known: Sequence[tuple[str, str]],
) -> dict[str, Row]:
    """Return a row for each suite."""
    rows: dict[str, Row] = {}
    reasons: dict[str, dict[str, set[str]]] = {}
    for case in cases:
        row = rows.setdefault(case.suite, Row(0, {side: Counter() for side in SIDES}, []))
        row.cases += 1
        for side in SIDES:
            result = results[side][case.id]
            row.counts[side][result.verdict] += 1
            if result.verdict != "passed":
                reason = reason_of(case, result, needs, known)
                reasons.setdefault(case.suite, {}).setdefault(reason, set()).add(side)
    for suite, found in reasons.items():
        both = len(SIDES)
        rows[suite].about = [r if len(s) == both else f"{', '.join(sorted(s))}: {r}" for r, s in sorted(found.items())]
    return rows


def page(
    rows: Mapping[str, Row], releases: Mapping[str, Mapping[str, Row]], *, revision: str, kueue: str, worlds: str
) -> str:
    """Return the page."""
    lines = [*INTRODUCTION.format(revision=revision, kueue=kueue, worlds=worlds).splitlines(), "", HEAD]
    lines.append("|---|" + "--:|" * (1 + len(SIDES) * len(VERDICTS)) + "---|")
    for subject in SUBJECTS:
        suites = {suite: row for suite, row in rows.items() if subject_of(suite) == subject}
        if suites:
            lines.append(Row.total(suites.values()).cells(subject, "**"))
            lines += [row.cells(f"`{suite}`") for suite, row in sorted(suites.items())]
    lines.append(Row.total(rows.values()).cells("all", "**"))
    for release, of_release in releases.items():
        lines += ["", f"## Kueue {release}", "", HEAD, "|---|" + "--:|" * (1 + len(SIDES) * len(VERDICTS)) + "---|"]
        lines += [row.cells(f"`{suite.removeprefix('releases/')}`") for suite, row in sorted(of_release.items())]
        lines.append(Row.total(of_release.values()).cells("all", "**"))
    return "\n".join([*lines, "", *without_recordings()]) + "\n"


def without_recordings() -> list[str]:
    """Return the lines of the page that need no recorded answers."""
    return [*what_the_newest_rests_on(), "", *AGAINST_KUEUE.splitlines(), "", *played_against(PLAYED)]


def what_the_newest_rests_on() -> list[str]:
    """Return how each change and gate of the default release is known."""
    newest = Release.named(DEFAULT_RELEASE)
    [before] = [release for release in releases() if release.commit]
    known = Counter(change.proof for change in changes() if change.is_in(newest) and not change.is_in(before))
    old_gates = {gate.name: gate for gate in before.feature_gates()}
    gates = [gate for gate in newest.feature_gates() if gate != old_gates.get(gate.name)]
    text = READ_ALONE.format(
        **known,
        line=newest.line,
        release=newest.name,
        commit=before.commit[:12],
        new_gates=sum(gate.name not in old_gates for gate in gates),
        other_gates=sum(gate.name in old_gates for gate in gates),
    )
    return text.splitlines()


def played_against(record: Path) -> list[str]:
    """Return a line for each release of which `fuzz_kueue.py --record` counted worlds."""
    totals = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    lines = [
        f"- Kueue {release}: {n['worlds']:,} worlds, {n['with topology']:,} of them with topology and "
        f"{n['with fair sharing']:,} with fair sharing; {n['cycles']:,} cycles, {n['admissions']:,} admissions, "
        f"{n['preemptions']:,} preemptions. {differences(n['differences'])}, {n['left to chance']:,} worlds with "
        f"something left to chance, {n['crashes of Kueue']:,} in which Kueue itself failed. "
        f"{n['seconds'] / 3600:.1f} hours."
        for release, n in sorted(totals.items(), reverse=True)
    ]
    return lines or ["None are counted yet."]


def differences(number: int) -> str:
    """Return how many worlds were played otherwise, and where they are now."""
    return f"{number:,} differences were found and are mended or listed above" if number else "No differences"


def played_worlds(seconds: float) -> str:
    """Play differential worlds for some seconds; say how many, and how many rounds failed."""
    command = [sys.executable, str(ROOT / "scripts/fuzz.py"), "--seconds", str(seconds), "--seed", "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    n_worlds = re.search(r"^(\d+) histories$", run.stdout, re.MULTILINE)
    n_failures = run.stdout.count("again: make fuzz")
    return (
        f"{n_worlds[1] if n_worlds else 0} played for this page, {n_failures or 'no'} rounds of 300 with a difference"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recorded", type=Path, default=ROOT.parent / "shared/conformance", help="the recorded cases")
    parser.add_argument(
        "--seconds", type=float, default=0, help="stop after this long per side (default: when all cases are done)"
    )
    parser.add_argument("--case-seconds", type=int, default=900, help="limit per case")
    parser.add_argument("--worlds", type=float, default=0, metavar="SECONDS", help="also play differential worlds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--without-recordings", action="store_true", help="write only what needs no recorded answers")
    options = parser.parse_args()
    if options.without_recordings:
        text = re.split(
            "^## (?:What release|Played against)", PAGE.read_text(encoding="utf-8"), maxsplit=1, flags=re.M
        )[0]
        PAGE.write_text(text + "\n".join(without_recordings()) + "\n", encoding="utf-8")
        return 0
    if not (options.recorded / "check.py").is_file():
        print(f"fidelity: no recorded cases in {options.recorded}, so {PAGE.relative_to(ROOT)} stays as it is")
        return 0
    recording = Recording(options.recorded)
    cases = list(recording.cases())
    results = {side: ask(recording, side, cases, options) for side in SIDES}
    known = known_reasons(ROOT / "tests/conformance")
    by_release = {
        release: rows_of([case for case in cases if case.release == release], results, recording.needs, known)
        for release in sorted({case.release for case in cases}, reverse=True)
    }
    rows = by_release.pop("")
    worlds = played_worlds(options.worlds) if options.worlds else "none played for this page (`make fuzz` plays them)"
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=commit %h of %cs"]
    revision = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    kueue = re.search(r"[0-9a-f]{40}", (options.recorded / "README.md").read_text(encoding="utf-8"))
    commit = kueue[0][:12] if kueue else "unknown"
    text = page(rows, by_release, revision=revision, kueue=commit, worlds=worlds)
    PAGE.write_text(text, encoding="utf-8")
    print(Row.total(rows.values()).cells("all"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
