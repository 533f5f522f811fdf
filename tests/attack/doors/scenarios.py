"""`kueuecore simulate`: scenarios."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

from kueuecore.cli import ExitCode
from kueuecore.times import nanoseconds
from tests.attack.case import Case, Wrong
from tests.attack.documents import ROOT, examples
from tests.attack.doors.command import Said, folder_of_its_own, judge, say
from tests.attack.values import damaged

__all__ = ["CHANGING", "draw", "smaller"]

_JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "train",
        "namespace": "team",
        "labels": {"kueue.x-k8s.io/queue-name": "user-queue"},
        "annotations": {"multikueue.kueuecore/clusters": "east,west", "multikueue.kueuecore/data": "a,b"},
    },
    "spec": {
        "parallelism": 3,
        "completions": 3,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": 1}}}],
            }
        },
    },
}
_HERE = copy.deepcopy(_JOB)
_HERE["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "here"}  # type: ignore[index]
_HEAD = {"apiVersion": "kueuecore/v1", "kind": "Scenario", "metadata": {"name": "full"}, "seed": 1}
_FLEET = {
    **_HEAD,
    "start": "2026-01-01T00:00:00Z",
    "until": "2h",
    "fleet": {
        "manager": {
            "objects": ["manager.yaml", "here.yaml"],
            "configuration": {"multiKueue": {"gcInterval": "1m", "workerLostTimeout": "5m"}},
        },
        "workers": {
            "east": {
                "objects": ["east.yaml"],
                "startsPods": True,
                "link": {
                    "leastMs": 10,
                    "mostMs": 20,
                    "lostRequests": 10,
                    "lostAnswers": 10,
                    "repeatedEvents": 10,
                    "timeoutMs": 1000,
                },
            },
            "west": {"objects": ["west.yaml"], "link": {"leastMs": 0, "mostMs": 0}, "startsPods": False},
        },
        "disconnections": [{"worker": "east", "at": "1m", "lasts": "30s"}, {"worker": "west", "at": 60}],
        "policy": {
            "choose": "weight",
            "values": {"east": 1, "west": 0.5},
            "stepSize": 1,
            "round": "1m",
            "prefersRoom": True,
            "resource": "cpu",
            "constraints": True,
            "admitWithin": "2m",
            "startWithin": "2m",
            "excludeFor": "10m",
            "mostAttempts": 3,
            "overrides": {
                "east": [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "east/train"}]
            },
        },
        "overflow": {"queues": {"here": "user-queue"}, "patience": "30s"},
    },
    "work": [
        {
            "name": "train",
            "job": _JOB,
            "count": 3,
            "at": 5,
            "every": {"mean": "20s"},
            "runs": {"from": "10s", "to": "1m"},
        },
        {"name": "here", "job": _HERE, "count": 3},
    ],
}
_CLUSTER = {
    **_HEAD,
    "start": "2026-01-01T00:00:00Z",
    "until": "6h",
    "cluster": {
        "objects": ["region.yaml"],
        "configuration": {
            "waitForPodsReady": {"timeout": "5m"},
            "admissionFairSharing": {"usageHalfLifeTime": "10m", "usageSamplingInterval": "5m"},
        },
        "capacity": {
            "tokyo": {
                "amounts": {"nvidia.com/gpu": 8},
                "delay": {"from": "1m", "to": "5m"},
                "refused": 0.5,
                "patience": "1h",
                "booking": "10m",
            }
        },
    },
    "work": [{"job": "job.yaml", "count": 3, "every": "5m", "runs": {"mean": "10m"}}],
}
CHANGING = {
    **_HEAD,
    "until": "6h",
    "cluster": {
        "objects": ["region.yaml"],
        "nodes": [{"name": "n", "levels": [{"name": "node", "count": 2}], "capacity": {"cpu": 8}}],
    },
    "present": {"runs": "10m", "waitingRuns": {"mean": "5m"}},
    "timetable": [
        {"at": "1h", "patch": {"kind": "ClusterQueue", "name": "gpus", "patch": {"spec": {"stopPolicy": "Hold"}}}},
        {
            "at": "2h",
            "every": "1h",
            "times": 3,
            "scale": {"clusterQueue": "gpus", "flavor": "queued", "resource": "nvidia.com/gpu", "nominalQuota": 9},
        },
        {"at": "3h", "delete": {"kind": "Job", "name": "train-1", "namespace": "research"}},
        {"apply": [{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "other"}}]},
        {"at": "10m", "patch": {"kind": "Node", "name": "n-node1", "patch": {"spec": {"unschedulable": True}}}},
    ],
    "work": [
        {
            "name": "train",
            "job": "job.yaml",
            "arrivals": {"perHour": 3, "byHour": [1] * 24, "byWeekday": [1] * 7, "until": "4h"},
            "runs": {"lognormal": {"median": "5m", "sigma": 1}},
            "fails": {"share": 0.2, "after": {"weibull": {"shape": 0.5, "scale": "5m"}}},
        },
        {
            "name": "other",
            "job": "job.yaml",
            "count": 3,
            "every": {"gamma": {"shape": 2, "scale": 60}},
            "runs": {"values": ["1m", 5], "weights": [1, 2]},
        },
        {"name": "last", "job": "job.yaml", "count": 2, "runs": {"file": "runs.csv", "column": "s", "inOrder": True}},
    ],
}
_OWN = """
from kueuecore.multikueue import AllAtOnce

def make(most=1):
    return AllAtOnce()
"""
_OWN_FLEET = copy.deepcopy(_FLEET)
_OWN_FLEET["fleet"]["policy"] = {"use": "own:make", "arguments": {"most": 1}}  # type: ignore[index]
_MAX_JOBS = 40
"""What a scenario takes follows from its jobs rather than from its text."""
_COUNTS = ("jobs", "admitted", "finished", "evictions", "copies", "wastedCopies", "copyWaitSeconds")


def draw(rng: Random) -> Case:
    """A scenario with a few things wrong."""
    found = [
        (Path(name).parent.name, doc)
        for name, docs in examples().items()
        for doc in docs
        if doc.get("kind") == "Scenario"
    ]
    folder, scenario = rng.choice(
        [
            *found,
            ("multikueue", _FLEET),
            ("multikueue", _FLEET),
            ("multikueue", _OWN_FLEET),
            ("multikueue-regions", _CLUSTER),
            ("multikueue-regions", CHANGING),
            ("multikueue-regions", CHANGING),
        ]
    )
    parts = tuple(item for _, item in found)
    damage = damaged(rng, smaller(scenario), parts=parts)
    value = smaller(damage.value)
    text = json.dumps(value)
    options = ["--allow-code"] if rng.random() < 0.3 else []
    if rng.random() < 0.2:
        options += ["--seed", rng.choice(["0", "-1", "9" * 40, "7", "x"])]
    form = rng.choice(["table", "wide"])

    def act() -> None:
        with folder_of_its_own() as place:
            for file in (*(ROOT / folder).glob("*.yaml"), *(ROOT / folder).glob("*.csv")):
                shutil.copy(file, place)
            (place / "own.py").write_text(_OWN)
            (place / "runs.csv").write_text("s\n5\n2m\n")
            (place / "s.json").write_text(text)
            said = say("simulate", *options, "-o", "json", "s.json")
            judge(said, "json", 1_000_000)
            if said.code != ExitCode.BAD_INPUT:
                _judge_outcome(said)
            other = say("simulate", *options, "-o", form, "s.json")
            judge(other, form, 1_000_000)
            if other.code != said.code:
                raise Wrong(f"exit code {said.code} as JSON, {other.code} as {form}")

    # A fleet may take all the steps that it is allowed: a `workerLostTimeout` of 5µs keeps a manager busy, as in Kueue.
    return Case(f"{folder} {options}: {damage.what}", act, 2 * len(text), seconds=120)


def smaller(scenario: Any) -> Any:
    """The scenario with so few jobs that a case is short."""
    work = scenario.get("work") if isinstance(scenario, dict) else None
    if not isinstance(work, list):
        return scenario
    few = []
    for row in work:
        count = row.get("count") if isinstance(row, dict) else None
        is_many = type(count) is int and _MAX_JOBS < count < 10**7
        few.append(_calmer({**row, "count": _MAX_JOBS} if is_many else row))
    return {**scenario, "work": few}


def _calmer(work: Any) -> Any:
    """Work whose jobs do not come more often than four in an hour."""
    arrivals = work.get("arrivals") if isinstance(work, dict) else None
    if not isinstance(arrivals, dict):
        return work
    often = arrivals.get("perHour")
    if not isinstance(often, int | float) or not 4 < often <= 1e6:
        return work
    return {**work, "arrivals": {**arrivals, "perHour": 4}}


def _judge_outcome(said: Said) -> None:
    reported = json.loads(said.out)
    begin, end = nanoseconds(reported["start"]), nanoseconds(reported["end"])
    for job in reported["jobs"]:
        times = [nanoseconds(job[name]) for name in ("created", "admitted", "finished") if job[name]]
        if not all(begin <= time <= end for time in times) or times != sorted(times):
            raise Wrong(f"times of {job['name']}: {job}")
        if (job["waitSeconds"] or 0) < 0 or job["evictions"] < 0 or job["copies"] < 0:
            raise Wrong(f"less than nothing: {job}")
    for group in (reported["all"], *reported["clusterQueues"], *reported["clusters"], *reported["work"]):
        if min(group[name] for name in _COUNTS) < 0 or max(group["admitted"], group["finished"]) > group["jobs"]:
            raise Wrong(f"counts: {group}")
