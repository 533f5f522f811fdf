"""What has to be said of each kind and each field stands in a few tables; these tests name what one of them lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from kueuecore import _core, objects
from kueuecore._kinds import KINDS
from kueuecore.dumps.read_fields import RULES
from kueuecore.dumps.renaming import Walk
from kueuecore.engine import Engine
from kueuecore_apiserver import crds

# What people write of these is validated and no more.
ONLY_SEEN = {"ProvisioningRequestConfig", "MultiKueueConfig", "MultiKueueCluster", "PreemptionConfig"}
KUEUE = "kueue.x-k8s.io/v1beta2"
FIELDS_OF = ("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Topology", "AdmissionCheck")
# Fields of the schema that no decision depends on.
READ_BY_NOBODY = {
    "AdmissionCheck": {"parameters.apiGroup", "parameters.kind", "parameters.name"},
    "ResourceFlavor": {"nodeTaints[].timeAdded"},
}
# Texts of which the schema does not say that they are words.
WORDS = {"operator": "Exists", "effect": "NoSchedule"}


def full(schema: dict[str, Any]) -> Any:
    """A value with every field of a schema, none of them as by default."""
    if "enum" in schema:
        return next(
            row for row in schema["enum"] if row not in (schema.get("default"), "None", "BorrowingOverPreemption")
        )
    match schema.get("type"):
        case "object" if "properties" in schema:
            return {name: WORDS.get(name) or full(of) for name, of in schema["properties"].items()}
        case "object":
            return {"x": full(schema.get("additionalProperties", {"type": "string"}))}
        case "array":
            return [full(schema["items"])]
        case "string":
            return "x"
        case "integer":
            return 7
        case "boolean":
            return True
    assert schema.get("x-kubernetes-int-or-string"), schema
    return "1500m"


def paths(value: Any, path: str = "") -> Iterator[str]:
    """The places of all that a value consists of."""
    match value:
        case dict():
            for name, inner in value.items():
                yield from paths(inner, f"{path}.{name}" if path else name)
        case list():
            for inner in value:
                yield from paths(inner, f"{path}[]")
        case _:
            yield path


def full_object(kind: str) -> dict[str, Any]:
    schema = _core.open_api(KUEUE, kind)
    assert schema is not None
    spec = full(schema["properties"]["spec"])
    metadata = {"name": "x"} | ({"namespace": "x"} if kind == "LocalQueue" else {})
    return {"apiVersion": KUEUE, "kind": kind, "metadata": metadata, "spec": spec}


def lost(before: dict[str, Any], after: Any, *, but: Iterable[str] = ()) -> list[str]:
    return sorted(set(paths(before["spec"])) - set(paths(after["spec"])) - set(but))


def test_the_table_of_kinds_matches_the_engine() -> None:
    of_engine = {name: (versions[0], namespaced, kept) for name, versions, namespaced, kept in _core.kinds()}
    here = {kind.name: (kind.api_version, kind.is_namespaced, kind.is_kept) for kind in KINDS}
    assert here == of_engine, "python/kueuecore/_kinds.py is not as rust/core/src/objects/kind.rs"


def test_an_engine_gives_back_the_kinds_of_which_the_table_says_so() -> None:
    core = Engine()._core
    given_back = {kind.name for kind in KINDS if core.objects(kind.name, None) is not None}
    assert given_back == {kind.name for kind in KINDS if kind.is_given_back}, "look at rust/wire/src/held.rs"


def test_each_kind_has_a_python_class() -> None:
    missing = {(kind.api_version, kind.name) for kind in KINDS} - set(objects.KINDS)
    assert not missing, f"KINDS in python/kueuecore/objects/__init__.py has no {sorted(missing)}"


def test_dumps_know_what_is_read_of_each_kind() -> None:
    missing = {kind.name for kind in KINDS} - ONLY_SEEN - set(RULES)
    assert not missing, f"RULES in python/kueuecore/dumps/read_fields.py has no {sorted(missing)}"


def test_the_test_server_has_a_definition_of_each_of_kueues_kinds() -> None:
    missing = {kind.name for kind in KINDS if kind.api_version == KUEUE} - set(crds.KINDS)
    assert not missing, f"python/kueuecore_apiserver/crds.py has no {sorted(missing)}"


@pytest.mark.parametrize("kind", FIELDS_OF)
def test_an_engine_reads_every_field_of_the_schema_and_gives_it_back(kind: str) -> None:
    engine, given = Engine(), full_object(kind)
    engine.apply(given, trusted=True)
    (found,) = engine.objects(kind)
    missing = lost(given, found, but=READ_BY_NOBODY.get(kind, ()))
    assert not missing, f"{kind} in rust/core/src/objects leaves out {missing}"


@pytest.mark.parametrize("kind", FIELDS_OF)
def test_a_python_class_has_every_field_of_the_schema(kind: str) -> None:
    given = full_object(kind)
    # When a taint was put there is said of nodes, not of flavors.
    missing = lost(given, objects.KINDS[KUEUE, kind].from_manifest(given).to_manifest(), but=["nodeTaints[].timeAdded"])
    assert not missing, f"the class {kind} of python/kueuecore/objects leaves out {missing}"


@pytest.mark.parametrize("kind", FIELDS_OF)
def test_a_dump_to_share_keeps_every_field_of_the_schema(kind: str) -> None:
    given = full_object(kind)
    missing = lost(given, RULES[kind](Walk(), given), but=READ_BY_NOBODY.get(kind, ()))
    assert not missing, f"RULES of python/kueuecore/dumps/read_fields.py leave out {missing} of {kind}"
