"""`kueuecore explain`, `history`, `unblock`, `what-if` and `eta`: states and questions with hostile names in them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from kueuecore._json import object_at, text_at
from kueuecore.cli import ExitCode
from kueuecore.manifests import parse_manifests, plain_object
from tests.attack.case import Case
from tests.attack.documents import JOBS, KINDS, ROOT, Json, condition
from tests.attack.doors.command import folder_of_its_own, judge, say
from tests.attack.values import TEXTS, copied, damaged

__all__ = ["draw"]

_STATES = ("two-teams", "taking-back", "two-flavors", "topology", "zero-quota")
_COMMANDS = ("explain", "explain", "history", "history", "unblock", "what-if", "what-if", "eta")
_REASONS = (
    "Preempted",
    "EvictedDueToPreempted",
    "PreemptedWorkload",
    "QuotaReserved",
    "WaitingForQuota",
    "Started",
    "",
)
_SAID = (
    "Preempted to accommodate a workload (UID: u1, JobUID: UNKNOWN) due to reclamation within the cohort; "
    "preemptor path: /a/b; preemptee effective priority: 7",
    "Preempted workload a/b (UID: ) in ClusterQueue c; preemptor effective priority: 99999999999999999999",
    "Quota reserved in ClusterQueue a, wait time since queued was 9s",
)
_TIMES = ("2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "soon", None, 5)
_PATHS = (
    "spec.queueName", "spec.podSets[0].count", "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota",
    "spec.cohortName", "metadata.name", "metadata.labels", "spec", "spec.parallelism", "a[", "[0]", "a..b", "",
)  # fmt: skip
_VALUES = ("0", "8", "-1", "null", "{}", "[", "a: b", "!!x", "&a [*a]", "1e400")


def draw(rng: Random) -> Case:
    """A question about a state, often a dump: names that no API server takes reach the answer."""
    command, is_dump = rng.choice(_COMMANDS), rng.random() < 0.7
    state = copied(list(_settled(rng.choice(_STATES))))
    reported = []
    if command == "eta":
        state += _finished(state)
    if command == "history":
        state += [_event(rng, rng.choice(state)) for _ in range(rng.choice([0, 1, 5, 50]))]
    if rng.random() < 0.4:
        index = rng.randrange(len(state))
        damage = damaged(rng, state[index], parts=(*KINDS, *JOBS))
        reported.append(f"{text_at(state[index], 'kind')}{damage.what}")
        state[index] = damage.value
    others = {name: _hostile(rng) for name in _names(state) if rng.random() < 0.3}
    state = _renamed(state, others)
    reported += [f"{name} -> {other[:20]!r}" for name, other in others.items()]
    options = [*(["--trusted"] if is_dump else []), *(["-q"] if rng.random() < 0.2 else [])]
    before, after = _question(rng, command, state)
    form = rng.choice(["table", "json"])
    is_terminal, encoding = rng.random() < 0.3, rng.choice(["utf-8", "utf-8", "ascii"])
    files = {"in.json": _lines(state), "jobs.json": _lines(_renamed([rng.choice(JOBS)], others))}
    if command == "history" and rng.random() < 0.5:
        before, files["serve.log"] = ["--journal", "serve.log"], _log(rng, state)
    arguments = [command, *options, "-o", form, *before, "in.json", *after]

    def act() -> None:
        with folder_of_its_own():
            for name, data in files.items():
                Path(name).write_bytes(data)
            said = say(*arguments, encoding=encoding, is_terminal=is_terminal)
            judge(said, form, sum(map(len, files.values())), is_terminal=is_terminal)

    size = sum(map(len, files.values()))
    return Case(f"{arguments}: {' | '.join(reported)}", act, 4 * size, seconds=20)


@functools.cache
def _settled(folder: str) -> Sequence[Json]:
    """The objects of an example with the statuses that cycles give them."""
    files = [str(path) for path in sorted((ROOT / folder).glob("*.yaml"))]
    said = say("run", "-q", "-o", "yaml", *files)
    assert said.code in (ExitCode.OK, ExitCode.PENDING), said.err
    return [dict(plain_object(manifest)) for manifest in parse_manifests(said.out)]


def _finished(state: Sequence[Json]) -> list[Json]:
    """Workloads that have run, as eta learns from them."""
    found: list[Json] = []
    for entry in state:
        if text_at(entry, "kind") == "Workload" and object_at(entry, "status", "admission"):
            done = copied(dict(entry))
            done["metadata"] = {**done["metadata"], "name": f"{done['metadata']['name']}-done", "uid": f"u{len(found)}"}
            done["status"]["conditions"] = [*done["status"]["conditions"], condition("Finished")]
            found.append(done)
    return found


def _event(rng: Random, about: Json) -> Json:
    """An Event about an object, with anything in it."""
    metadata = object_at(about, "metadata")
    ref = {"kind": about.get("kind"), **{key: metadata.get(key) for key in ("namespace", "name", "uid")}}
    found = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": metadata.get("namespace"), "resourceVersion": rng.choice(["7", "x", 7])},
        rng.choice(["involvedObject", "regarding"]): ref,
        "reason": rng.choice([*_REASONS, _hostile(rng)]),
        rng.choice(["message", "note"]): rng.choice([*_SAID, _hostile(rng)]),
        "firstTimestamp": rng.choice(_TIMES),
        "lastTimestamp": rng.choice(_TIMES),
        "count": rng.choice([1, 3, -1, 2**70, "2"]),
    }
    if rng.random() < 0.2:
        found["series"] = {"count": rng.choice([2, None, 2**70]), "lastObservedTime": rng.choice(_TIMES)}
    return dict(damaged(rng, found).value) if rng.random() < 0.2 else found


def _log(rng: Random, state: Sequence[Json]) -> bytes:
    """A log with Events of these objects, and anything else."""
    lines = []
    for _ in range(rng.choice([1, 3, 30])):
        about = rng.choice(state)
        reason, note = rng.choice([*_REASONS, _hostile(rng)]), rng.choice([*_SAID, _hostile(rng)])
        told = {"object": f'{text_at(about, "kind")} "{_place(about)}"', "uid": "u", "reason": reason, "note": note}
        line = {"time": rng.choice(_TIMES), "message": rng.choice(["event", "job waits", _hostile(rng)]), **told}
        lines.append(json.dumps(line) if rng.random() < 0.9 else rng.choice(["[" * 9999, "{", _hostile(rng)]))
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _names(state: Sequence[Json]) -> list[str]:
    metadata = [object_at(entry, "metadata") for entry in state]
    found = {text_at(entry, key) for entry in metadata for key in ("name", "namespace")}
    return sorted(found - {""})


def _hostile(rng: Random) -> str:
    return rng.choice(TEXTS) + rng.choice(["", "", rng.choice(TEXTS), "x"])


def _renamed(value: Any, others: Mapping[str, str]) -> Any:
    """The data with other names wherever these names stand."""
    if isinstance(value, dict):
        return {key: _renamed(row, others) for key, row in value.items()}
    if isinstance(value, list):
        return [_renamed(row, others) for row in value]
    return others.get(value, value) if isinstance(value, str) else value


def _question(rng: Random, command: str, state: Sequence[Json]) -> tuple[list[str], list[str]]:
    """Options, and the workload that is asked about."""
    workloads = [_place(entry) for entry in state if text_at(entry, "kind") in ("Workload", "Job")]
    place = rng.choice(workloads or ["a/b"]) if rng.random() < 0.85 else _hostile(rng)
    if command in ("explain", "history", "unblock"):
        return [], _possible([place]) or ["a"]
    if command == "eta":
        options = ["--seeds", "2", "--workers", "1", "--horizon", "1h", "--budget", "1s"]
        options += ["--run-seconds", rng.choice(["1m", "{mean: 30m}", f"{place}=2h", _hostile(rng)])]
        return _possible(options), _possible([place]) if rng.random() < 0.7 else []
    options = ["--settle"] if rng.random() < 0.4 else []
    options += ["-f", "jobs.json"] if rng.random() < 0.6 else []
    for _ in range(rng.choice([0, 1, 1, 2])):
        it = rng.choice(state)
        name = f"{text_at(it, 'kind')}/{_place(it)}" if rng.random() < 0.8 else _hostile(rng)
        if rng.random() < 0.5:
            options.append(f"--delete={name}")
        else:
            options.append(f"--set={name}:{rng.choice(_PATHS)}={rng.choice([*_VALUES, _hostile(rng)])}")
    return _possible(options), []


def _place(it: Json) -> str:
    namespace, name = text_at(it, "metadata", "namespace"), text_at(it, "metadata", "name")
    return f"{namespace}/{name}" if namespace else name


def _possible(arguments: Sequence[str]) -> list[str]:
    """Those that an operating system passes on."""
    return [argument for argument in arguments if "\0" not in argument and argument]


def _lines(objects: Sequence[Any]) -> bytes:
    return b"\n".join(json.dumps(object_).encode() for object_ in objects)
