"""Counterexamples that are known: the first loops of docs/anomalies.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from kueuecore._json import text_at
from kueuecore.configuration import Configuration
from kueuecore.experiments import Experiments
from kueuecore.findings.building import facts_of
from kueuecore.findings.facts import Facts
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import Move, MoveKind, Property
from kueuecore.proving.shapes import Shape, Tier
from kueuecore.reference import World
from kueuecore.times import nanoseconds
from kueuecore.trials.reference_engine import ReferenceEngine

PAGE = Path(__file__).parents[3] / "docs" / "anomalies.md"
START = nanoseconds("2026-01-01T00:00:00Z")
FAIR = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
"""


def section(number: int) -> str:
    """The first YAML after a heading of the page that has a loop."""
    part = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[number]
    found = re.search(r"```yaml\n(.*?)```", part, re.S)
    assert found is not None
    return found[1]


def counterexample(
    text: str,
    arrivals: Sequence[str],
    *,
    configuration: str | None = None,
    property_: Property | str = Property.LOOPS,
) -> Counterexample:
    """The objects of a text, whose workloads arrive in this order."""
    return of_moves(
        text, [(MoveKind.ARRIVE, name) for name in arrivals], configuration=configuration, property_=property_
    )


def of_moves(
    text: str,
    moves: Sequence[tuple[MoveKind, str | int]],
    *,
    configuration: str | None = None,
    property_: Property | str = Property.LOOPS,
    nodes: tuple[str, ...] = (),
) -> Counterexample:
    """The objects of a text; what arrives is named, who ends is numbered."""
    given = parse_manifests(text)
    queues = {
        text_at(it.object, "metadata", "name"): text_at(it.object, "spec", "clusterQueue")
        for it in given
        if text_at(it.object, "kind") == "LocalQueue"
    }
    works = [it for it in given if text_at(it.object, "kind") == "Workload"]
    shapes = tuple(
        Shape(
            text_at(it.object, "metadata", "name"),
            queues[text_at(it.object, "spec", "queueName")],
            it.object,
            Tier.FIRST,
            (0, Fraction(0), 0),
        )
        for it in works
    )
    names = [shape.name for shape in shapes]
    facts = facts_of(
        [it for it in given if it not in works],
        configuration=None if configuration is None else Configuration.parse(configuration),
        now=START,
    )
    played = [Move(kind, names.index(it) if isinstance(it, str) else it) for kind, it in moves]
    return Counterexample(property_, facts, shapes, nodes, tuple(played))


def preemption_loop() -> Counterexample:
    """Preemption comes to an end."""
    return counterexample(section(1), ("small", "guest", "large"))


def fair_sharing_loop() -> Counterexample:
    """With fair sharing, the preemptor gets the room."""
    return counterexample(section(2), ("borrower", "elastic"), configuration=FAIR)


def reference(facts: Facts) -> ReferenceEngine:
    """The reference model with the same objects."""
    given = facts.configuration or Configuration()
    configuration = {**given.to_dict(), "kueue": given.release.name, "experiments": given.experiments.to_dict()}
    found = ReferenceEngine(World((), configuration=configuration, now=facts.now))
    found._put([it.object for it in sorted(facts.world.manifests, key=_first_cohorts)], facts.now)
    return found


def _first_cohorts(manifest: Manifest) -> bool:
    return text_at(manifest.object, "kind") == "LocalQueue"


def under(found: Counterexample, experiments: Experiments) -> Counterexample:
    """The same with experiments."""
    facts = found.facts
    configuration = (facts.configuration or Configuration()).with_experiments(experiments)
    return replace(found, facts=facts_of(facts.given, configuration=configuration, now=facts.now))
