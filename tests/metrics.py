"""A cluster with a controller that counts, and a strict reader of the page that it shows."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from kueuecore import Configuration
from kueuecore.api_server import ApiServer
from kueuecore.controller import Controller, Metrics
from kueuecore.controller.metric_families import FAMILIES
from kueuecore.times import SECOND_NS, nanoseconds

Json = dict[str, Any]
Samples = dict[str, float]
KUEUE = "kueue.x-k8s.io/v1beta2"
START = nanoseconds("2026-01-01T00:00:00Z")


def thing(kind: str, name: str, spec: Json | None = None, *, namespace: str = "", **metadata: Json | None) -> Json:
    """An object to create; `metadata` are labels and annotations."""
    given = {key: value for key, value in metadata.items() if value is not None}
    whole = {"name": name, **({"namespace": namespace} if namespace else {}), **given}
    version = "v1" if kind == "Namespace" else KUEUE
    return {"apiVersion": version, "kind": kind, "metadata": whole, "spec": spec or {}}


def quotas(nominal: Mapping[str, str], **limits: str) -> list[Json]:
    """One resource group with flavor `f`, with the same limits for each resource."""
    resources = [{"name": name, "nominalQuota": amount, **limits} for name, amount in nominal.items()]
    return [{"coveredResources": [*nominal], "flavors": [{"name": "f", "resources": resources}]}]


def cluster_queue(name: str, cohort: str = "", *, labels: Json | None = None, **spec: Any) -> Json:
    """A ClusterQueue with quota for 2 cpu, unless the spec says otherwise."""
    groups = spec.pop("resourceGroups", quotas({"cpu": "2"}))
    more = {"cohortName": cohort} if cohort else {}
    return thing(
        "ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": groups, **more, **spec}, labels=labels
    )


def local_queue(name: str, queue: str, *, labels: Json | None = None, **spec: Any) -> Json:
    """A LocalQueue in namespace `a`."""
    return thing("LocalQueue", name, {"clusterQueue": queue, **spec}, namespace="a", labels=labels)


class Lab:
    """A cluster, and a controller with metrics.

    Args:
        things: What is there besides a namespace and a flavor.
        settings: Further lines of the Configuration.
    """

    def __init__(self, *things: Json, settings: str = "") -> None:
        text = f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{settings}"
        self.metrics = Metrics()
        self.configuration = Configuration.parse(text) if settings else None
        self.controller = Controller(self.configuration, models_readiness=True, metrics=self.metrics)
        self.cluster = ApiServer(now=START)
        self.seen = 0
        for each in (thing("Namespace", "a"), thing("ResourceFlavor", "f"), *things):
            self.cluster.create(each)

    def submit(
        self,
        name: str,
        queue: str = "q",
        *,
        cpu: str = "1",
        labels: Json | None = None,
        annotations: Json | None = None,
        **spec: Any,
    ) -> None:
        """A Workload of one pod."""
        requests = {"cpu": cpu, **spec.pop("requests", {})}
        container = {"name": "c", "image": "i", "resources": {"requests": requests}}
        pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
        whole = {"queueName": queue, "podSets": [pods], "priority": 0, "active": True, **spec}
        self.cluster.create(thing("Workload", name, whole, namespace="a", labels=labels, annotations=annotations))

    def watch(self) -> None:
        """The controller sees what is new."""
        for version, event in self.cluster.history:
            if version > self.seen:
                self.controller.observe(event, now=self.cluster.now)
        self.seen = self.cluster.version

    def turn(self, seconds: float = 1) -> Any:
        """Later the controller sees what is new, decides, and its writes are accepted."""
        self.cluster.now += int(seconds * SECOND_NS)
        self.watch()
        turn = self.controller.turn(self.cluster.now)
        for write in turn.writes:
            self.controller.done(write, self.cluster.carry_out(write), now=self.cluster.now)
        return turn

    def settle(self) -> None:
        """A few turns at one time."""
        for _ in range(4):
            self.turn(0)

    def samples(self) -> Samples:
        """What the page shows."""
        return parsed(self.metrics.text(self.controller.engine))

    def of(self, family: str) -> Samples:
        """The samples of one family, by their labels."""
        found = {key: value for key, value in self.samples().items() if key.partition("{")[0] == f"kueue_{family}"}
        return {key.partition("{")[2].rstrip("}"): value for key, value in found.items()}


LINE = re.compile(
    r'(kueue_|multikueue_)([a-z_]+)\{((?:[a-zA-Z0-9_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\+Inf|NaN|-?[0-9.e+-]+)'
)
LABEL = re.compile(r'([a-zA-Z0-9_]+)="')


def parsed(page: str, *, replica_role: str = "standalone") -> Samples:
    """The samples of a page, which has to be as Prometheus wants it, without the label `replica_role`."""
    samples: Samples = {}
    family, kind = "", ""
    n_shown: dict[tuple[str, str], int] = {}
    for line in page.splitlines():
        if line.startswith("# "):
            _, word, name, about = line.split(" ", 3)
            assert word in ("HELP", "TYPE")
            n_shown[word, name] = n_shown.get((word, name), 0) + 1
            family, kind = name, about
            continue
        match = LINE.fullmatch(line)
        assert match is not None, line
        prefix, name, labels, value = match.groups()
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        assert prefix + name in [family + suffix for suffix in suffixes]
        assert kind == FAMILIES[family.removeprefix("kueue_")].type
        found = LABEL.findall(labels)
        own = {"replica_role", *({"le"} if name.endswith("_bucket") else ())}
        assert {text for text in found if not text.startswith("custom_")} == {
            *FAMILIES[family.removeprefix("kueue_")].labels,
            *own,
        }, line
        assert found == sorted(found)
        key = re.sub(f',?replica_role="{replica_role}"', "", line.rpartition(" ")[0]).replace("{,", "{")
        assert key not in samples
        samples[key] = float(value)
    assert set(n_shown.values()) <= {1}
    assert sum(word == "HELP" for word, _ in n_shown) * 2 == len(n_shown)
    return samples


def histogram(name: str, labels: str, seconds: Sequence[float], bounds: Sequence[float]) -> Samples:
    """The samples of a histogram that has seen these times."""
    counts = [0] * (len(bounds) + 1)
    for second in seconds:
        counts[bisect_left(bounds, second)] += 1
    samples: Samples = {}
    for index, bound in enumerate([*(f"{bound:g}" for bound in bounds), "+Inf"]):
        parts = sorted([*labels.split(","), f'le="{bound}"'], key=lambda part: part.partition("=")[0])
        samples[f"kueue_{name}_bucket{{{','.join(parts)}}}"] = sum(counts[: index + 1])
    return samples | {
        f"kueue_{name}_sum{{{labels}}}": float(sum(seconds)),
        f"kueue_{name}_count{{{labels}}}": len(seconds),
    }
