"""Random histories of managers who apply and update one object: who owns what stays true."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kueuecore_apiserver.managed_fields import Writer, applied, with_owners
from kueuecore_apiserver.shapes import Merging, Shape
from tests.unit.apiserver.wire import Object

CHECKS = Shape(Merging.KEYED, keys={"name": None}, others=Shape(fields={"tags": Shape(Merging.SET)}))
SHAPE = Shape(fields={"spec": Shape(fields={"checks": CHECKS, "whole": Shape(Merging.ATOMIC)})})
N_STEPS = 60


def drawn_spec(random: Random) -> Object:
    """A spec with some of its fields."""
    spec: Object = {name: random.randrange(3) for name in "abc" if random.random() < 0.5}
    if random.random() < 0.7:
        spec["map"] = {name: random.randrange(3) for name in "xyz" if random.random() < 0.5}
    if random.random() < 0.7:
        names = random.sample(["k", "l", "m"], random.randrange(4))
        spec["checks"] = [
            {"name": name, "v": random.randrange(3), "tags": random.sample(["s", "t"], random.randrange(3))}
            for name in names
        ]
    if random.random() < 0.3:
        spec["whole"] = {"n": random.randrange(3)}
    return {name: value for name, value in spec.items() if value not in ({}, [])}


def covers(live: Any, config: Any) -> bool:
    """Is everything that is applied there?"""
    if isinstance(config, dict):
        return isinstance(live, dict) and all(name in live and covers(live[name], row) for name, row in config.items())
    if isinstance(config, list) and config and isinstance(config[0], dict):
        by_name = {entry["name"]: entry for entry in live}
        return all(row["name"] in by_name and covers(by_name[row["name"]], row) for row in config)
    if isinstance(config, list):
        return set(config) <= set(live)
    return bool(live == config)


def leaves(value: Any, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """The fields of a spec, as steps in `fieldsV1`; what is empty may have lost its owner with what was in it."""
    if isinstance(value, dict) and path[-1:] != ("f:whole",):
        return {leaf for name, child in value.items() for leaf in leaves(child, (*path, f"f:{name}"))}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        # An item keeps its key as long as anybody has something in it.
        items = {child["name"]: {name: entry for name, entry in child.items() if name != "name"} for child in value}
        return {leaf for name, child in items.items() for leaf in leaves(child, (*path, f'k:{{"name":"{name}"}}'))}
    if isinstance(value, list):
        return {(*path, f'v:"{row}"') for row in value}
    return {path}


def owned(manifest: Object, path: tuple[str, ...]) -> bool:
    """Does somebody own a field?"""
    for entry in manifest["metadata"].get("managedFields", []):
        tree = entry["fieldsV1"]
        for step in path:
            tree = tree.get(step)
            if tree is None:
                break
        else:
            return True
    return False


@pytest.mark.parametrize("seed", range(20))
def test_what_is_applied_is_there_and_has_an_owner(seed: int) -> None:
    random = Random(seed)
    live: Object | None = None
    for step in range(N_STEPS):
        name = random.choice(["one", "two", "three"])
        writer = Writer(name, "example.com/v1", "", str(step))
        config: Object = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
        config["spec"] = drawn_spec(random)
        if live is not None and random.random() < 0.3:
            live = with_owners(live, {**live, "spec": config["spec"]}, writer, SHAPE)
        else:
            live = applied(live, config, writer, SHAPE, force=True)
            assert covers(live.get("spec", {}), config["spec"])
            # Once more changes nothing.
            again = applied(live, config, Writer(name, "example.com/v1", "", "later"), SHAPE, force=True)
            assert again == live
        assert [path for path in leaves(live.get("spec", {})) if not owned(live, ("f:spec", *path))] == []
    # What nobody wants any more goes.
    assert live is not None
    for name in ("one", "two", "three"):
        nothing: Object = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
        live = applied(live, nothing, Writer(name, "example.com/v1", "", "end"), SHAPE, force=True)
    updates = [field for field in live["metadata"].get("managedFields", []) if field["operation"] == "Update"]
    left = {**live, "metadata": {"managedFields": updates}}
    assert [path for path in leaves(live.get("spec", {})) if not owned(left, ("f:spec", *path))] == []
