"""Anonymises a dump, and checks that it leads to the same decisions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore.dumps.decided import Deciding
from kueuecore.dumps.facts import differences, facts_of
from kueuecore.dumps.new_names import is_known_resource
from kueuecore.dumps.read_fields import RULES
from kueuecore.dumps.renaming import Names, Walk
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest
from kueuecore.times import END_NS, TimeLike, nanoseconds
from kueuecore.world import World

__all__ = ["Anonymised", "anonymise"]


@dataclass(frozen=True, slots=True)
class Anonymised:
    """An anonymised dump.

    Args:
        objects: The objects, in the order in which they were given.
        names: The mapping of old to new names.
        now: The time of the decisions, in nanoseconds since 1970.
        differences: Where its decisions differ from the original's; empty if all are the same.
        dropped: The kinds left out because no decision depends on them, and how many objects of each.
    """

    objects: tuple[JsonObject, ...]
    names: Names
    now: int
    differences: tuple[str, ...]
    dropped: dict[str, int]


def anonymise(
    manifests: Iterable[Manifest], deciding: Deciding, *, seed: int | None = None, move_to: TimeLike | None = None
) -> Anonymised:
    """Remove from a dump whatever could identify its owner, and check that it still leads to the same decisions.

    Names of namespaces, queues, cohorts, flavors, workloads, nodes, classes, labels and their values become numbers
    that sort as the names did, because names and UIDs break ties. Uncommon resources get names whose hashes sort as
    before, too (rules/03 §1). Jobs become Workloads. Images, programs, environments, messages and everything else that
    no decision depends on are removed. Quantities, counts, priorities and times stay.

    Args:
        manifests: The objects.
        deciding: How to decide about them.
        seed: Skip numbers at random, so that they do not reveal how many names there are; None to skip none.
        move_to: Shift all times so that the decisions happen at this one.

    Raises:
        ManifestError: Everything that is wrong with the objects, or times would be shifted too far.

    Example:
        >>> from kueuecore import read_manifests
        >>> found = anonymise(read_manifests("examples/taking-back"), Deciding(now=0))
        >>> found.differences, found.names.by_category["clusterQueue"]
        ((), {'team-a': 'cq-1', 'team-b': 'cq-2'})
    """
    given = tuple(manifests)
    world = World.of(given, configuration=deciding.configuration, trusted=deciding.trusted)
    read, dropped = _read(world)
    shift = 0 if move_to is None else nanoseconds(move_to) - deciding.now
    if not 0 <= deciding.now + shift <= END_NS:
        raise ManifestError.of("times would leave the range from 1970 to 2262", remedy="move them to another time")
    collecting = Walk()
    # Kinds are visited in the order of the rules: node labels come after whatever selects them.
    for kind, rule in RULES.items():
        for manifest in read:
            if text_at(manifest, "kind") == kind:
                rule(collecting, manifest)
    asked, numeric = collecting.found.get("asked", set()), collecting.numeric
    names = collecting.taken(seed=seed, kept=_named_in_configuration(deciding))
    walk = Walk(names, shift, {"asked": asked}, numeric)
    objects = tuple(object_at(RULES[text_at(manifest, "kind")](walk, manifest)) for manifest in read)
    after = replace(deciding, now=deciding.now + shift)
    before_facts = facts_of(deciding.of(given), walk)
    after_facts = facts_of(after.of(map(Manifest, objects)), Walk())
    return Anonymised(objects, names, after.now, tuple(differences(before_facts, after_facts)), dropped)


def _read(world: World) -> tuple[Sequence[JsonObject], dict[str, int]]:
    """The objects that decisions depend on, and how many there are of every other kind."""
    read: list[JsonObject] = []
    dropped: dict[str, int] = {}
    for manifest in world.manifests:
        kind = text_at(manifest.object, "kind")
        if kind in RULES:
            read.append(manifest.object)
        else:
            dropped[kind] = dropped.get(kind, 0) + 1
    return read, dict(sorted(dropped.items()))


def _named_in_configuration(deciding: Deciding) -> tuple[str, ...]:
    """Resources and prefixes of resources in the Configuration, which is not anonymised, so they must stay."""
    if deciding.configuration is None:
        return ()
    texts = set(_texts(json.loads(json.dumps(deciding.configuration.to_dict().get("resources")))))
    return tuple(sorted(text for text in texts if not is_known_resource(text)))


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for row in value:
                yield from _texts(row)
        case dict():
            for key, row in value.items():
                yield key
                yield from _texts(row)
