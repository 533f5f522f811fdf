"""What any CustomResourceDefinition makes of objects, as an API server does."""

from __future__ import annotations

import copy
import time
from copy import deepcopy
from typing import Any

import pytest

from kueuecore._patches import patched
from kueuecore.api_server import RefusedError
from kueuecore.errors import ManifestError
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import KINDS, crd, crds
from kueuecore_apiserver.schemas.go_patterns import formats, go_pattern
from tests.crd_objects import RICH, schema_of

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
NOT_CHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation"
)


def schema(spec: Any, *, status: Any = None, rules: Any = None, version: str = "v1") -> CrdSchema:
    """The schema of a kind with this spec, and a status, if it has one."""
    properties = {"spec": spec, **({"status": status} if status else {})}
    whole = {"type": "object", "properties": properties, **({"x-kubernetes-validations": rules} if rules else {})}
    served: Any = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": whole},
        **({"subresources": {"status": {}}} if status else {}),
    }
    names = {"kind": "Thing", "plural": "things", "singular": "thing"}
    made: Any = {"group": "example.com", "names": names, "scope": "Cluster", "versions": [served]}
    return CrdSchema.of({"spec": made}, version)


def thing(spec: Any, **more: Any) -> Any:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "o"}, "spec": spec, **more}


def fields(**properties: Any) -> Any:
    return {"type": "object", "properties": properties}


def ruled(part: Any, rule: str, **more: Any) -> Any:
    return {**part, "x-kubernetes-validations": [{"rule": rule, **more}]}


def refused(made: CrdSchema, new: Any, old: Any = None, subresource: str = "") -> list[str]:
    try:
        made.stored(new, old, subresource=subresource)
    except RefusedError as error:
        return [f"{cause['field']}: {cause['message']}" for cause in error.causes]
    return []


def test_unknown_fields_go_and_defaults_come() -> None:
    inner = fields(a={**TEXT, "default": "x"})
    made = schema(
        fields(
            open={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": inner}},
            filled={**inner, "default": {}},
            map={"type": "object", "additionalProperties": inner},
            list={"type": "array", "items": inner},
            maybe={**TEXT, "nullable": True},
        )
    )
    given = {
        "unknown": 1,
        "open": {"more": {"b": None}, "known": {"b": 2}},
        "map": {"one": {"b": 1}, "none": None},
        "list": [{"b": 1}],
        "maybe": None,
    }
    before = copy.deepcopy(given)
    assert made.stored(thing(given))["spec"] == {
        "open": {"more": {"b": None}, "known": {"a": "x"}},
        "filled": {"a": "x"},
        "map": {"one": {"a": "x"}},
        "list": [{"a": "x"}],
        "maybe": None,
    }
    assert given == before


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        (TEXT, 1, 'Invalid value: "integer": spec.a in body must be of type string: "integer"'),
        (TEXT, 2**63, 'Invalid value: "number": spec.a in body must be of type string: "number"'),
        ({**NUMBER, "format": "int32"}, True, 'Invalid value: "": spec.a in body must be of type int32: ""'),
        ({**NUMBER, "minimum": 1}, 0, "Invalid value: 0: spec.a in body should be greater than or equal to 1"),
        (
            {"type": "number", "maximum": 2, "exclusiveMaximum": True},
            2.0,
            "Invalid value: 2: spec.a in body should be less than 2",
        ),
        ({**NUMBER, "multipleOf": 3}, 4, "Invalid value: 4: spec.a in body should be a multiple of 3"),
        ({**TEXT, "minLength": 2}, "é", 'Invalid value: "é": spec.a in body should be at least 2 chars long'),
        ({**TEXT, "maxLength": 1}, "ab", "Too long: may not be more than 1 byte"),
        ({**TEXT, "pattern": "^a$"}, "a\n", "Invalid value: \"a\\n\": spec.a in body should match '^a$'"),
        ({**TEXT, "format": "date"}, "2026", 'Invalid value: "2026": spec.a in body must be of type date: "2026"'),
        ({**TEXT, "enum": ["x", "y"]}, "z", 'Unsupported value: "z": supported values: "x", "y"'),
        (
            {"type": "array", "items": TEXT, "minItems": 1},
            [],
            "Invalid value: 0: spec.a in body should have at least 1 items",
        ),
        ({"type": "array", "items": TEXT, "maxItems": 1}, ["a", "b"], "Too many: 2: must have at most 1 item"),
        (
            {"type": "object", "additionalProperties": TEXT, "maxProperties": 1},
            {"a": "", "b": ""},
            "Too many: 2: must have at most 1 items",
        ),
    ],
)
def test_shapes_and_bounds_are_refused_in_the_servers_words(part: Any, value: Any, message: str) -> None:
    if "maxProperties" in part:
        message = message.replace("items", "item")
    assert refused(schema(fields(a=part)), thing({"a": value})) == [f"spec.a: {message}"]
    assert refused(schema(fields(a={**part, "nullable": True})), thing({"a": None})) == (
        ['spec.a: Unsupported value: null: supported values: "x", "y"'] if "enum" in part else []
    )


def test_required_fields_lists_and_schemas_of_schemas() -> None:
    item = {**fields(k=TEXT, v=NUMBER), "required": ["k"]}
    by_key = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    one_set = {"type": "array", "items": NUMBER, "x-kubernetes-list-type": "set"}
    either = {"oneOf": [{"required": ["x"]}, {"required": ["y"]}], "not": {"required": ["z"]}}
    made = schema(fields(m=by_key, s=one_set, e={**fields(x=TEXT, y=TEXT, z=TEXT), **either}))
    assert refused(made, thing({"m": [{"v": 1}]})) == ["spec.m[0].k: Required value"]
    assert refused(made, thing({"m": [{"k": "a"}, {"k": "b"}, {"k": "a", "v": 1}]})) == [
        'spec.m[2]: Duplicate value: {"k":"a"}'
    ]
    assert refused(made, thing({"s": [1, 2, 1, 1]})) == ["spec.s[2]: Duplicate value: 1"]
    assert refused(made, thing({"e": {"x": "", "y": "", "z": ""}})) == [
        '<nil>: Invalid value: "": "spec.e" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        '<nil>: Invalid value: "": "spec.e" must not validate the schema (not)',
    ]


def test_rules_wait_for_the_shape() -> None:
    made = schema(ruled(fields(a=NUMBER, b=NUMBER), "self.a < self.b", message="a is less"))
    assert refused(made, thing({"a": 1, "b": 2})) == []
    assert refused(made, thing({"a": 2, "b": 2})) == ["spec: Invalid value: a is less"]
    assert refused(made, thing({"a": 1})) == [
        'spec: Invalid value: "object": no such key: b evaluating rule: a is less'
    ]
    assert refused(made, thing({"a": 1.0, "b": 2})) == [
        'spec: Invalid value: "object": invalid data, expected int, got float64 evaluating rule: a is less'
    ]
    assert refused(made, thing({"a": "1", "b": 2})) == [
        'spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"',
        NOT_CHECKED,
    ]


def test_a_rule_says_what_and_where_it_wants_to() -> None:
    parts = fields(a={**NUMBER, "default": 0}, b=fields(c=TEXT))
    reported = {"messageExpression": "'a is ' + string(self.a)", "reason": "FieldValueForbidden", "fieldPath": ".b.c"}
    assert refused(schema(ruled(parts, "self.a > 0", **reported)), thing({})) == ["spec.b.c: Forbidden: a is 0"]
    broken = {"messageExpression": "self.b.c", "message": "else"}
    assert refused(schema(ruled(parts, "self.a > 0", **broken)), thing({})) == ["spec: Invalid value: else"]
    assert refused(schema(ruled(parts, " self.a > 0 ")), thing({})) == ["spec: Invalid value: failed rule: self.a > 0"]
    scalar = schema(fields(a=ruled(NUMBER, "self > 0", message="no")))
    assert refused(scalar, thing({"a": -1})) == ["spec.a: Invalid value: -1: no"]


def test_transition_rules_find_their_old_values() -> None:
    fixed = {"rule": "self == oldSelf", "message": "fixed"}
    item = fields(k=TEXT, v={**NUMBER, "x-kubernetes-validations": [fixed]})
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    loose = {"type": "array", "items": item}
    entries = {"type": "object", "additionalProperties": {**NUMBER, "x-kubernetes-validations": [fixed]}}
    made = schema(fields(m=keyed, l=loose, e=entries, one={**TEXT, "x-kubernetes-validations": [fixed]}))
    old = thing({"m": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "l": [{"k": "a", "v": 1}], "e": {"x": 1}, "one": "x"})
    assert refused(made, old) == []
    moved = {"m": [{"k": "b", "v": 2}, {"k": "a", "v": 3}, {"k": "c", "v": 9}], "l": [{"k": "a", "v": 7}]}
    assert refused(made, thing({**moved, "e": {"x": 2, "y": 3}, "one": "x"}), old) == [
        "spec.m[1].v: Invalid value: 3: fixed",
        "spec.e[x]: Invalid value: 2: fixed",
    ]
    assert refused(made, thing({}), old) == []


def test_an_optional_old_value_is_asked_for() -> None:
    rule = {"rule": "oldSelf.hasValue() ? self >= oldSelf.value() : self == 0", "optionalOldSelf": True, "message": "m"}
    made = schema(fields(a={**NUMBER, "x-kubernetes-validations": [rule]}))
    assert refused(made, thing({"a": 0})) == []
    assert refused(made, thing({"a": 1})) == ["spec.a: Invalid value: 1: m"]
    assert refused(made, thing({"a": 5}), thing({"a": 4})) == []
    assert refused(made, thing({"a": 3}), thing({"a": 4})) == ["spec.a: Invalid value: 3: m"]


def test_what_was_wrong_and_does_not_change_may_stay() -> None:
    item = {**fields(k=TEXT, v={**NUMBER, "maximum": 3}), "required": ["k"]}
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    made = schema(fields(m=keyed, a={**TEXT, "maxLength": 1}, r=ruled(TEXT, "self == 'x'", message="x")))
    old = thing({"m": [{"k": "a", "v": 9}], "a": "long", "r": "y"})
    assert len(refused(made, old)) == 3
    assert refused(made, thing({"m": [{"k": "b", "v": 1}, {"k": "a", "v": 9}], "a": "long", "r": "y"}), old) == []
    assert refused(made, thing({"m": [{"k": "a", "v": 8}], "a": "long", "r": "z"}), old) == [
        "spec.m[0].v: Invalid value: 8: spec.m[0].v in body should be less than or equal to 3",
        'spec.r: Invalid value: "z": x',
    ]


def test_a_status_is_written_by_itself() -> None:
    rule = {"rule": "!has(self.status) || self.status.n <= self.spec.max", "message": "too many"}
    made = schema(fields(max=NUMBER), status=fields(n=NUMBER), rules=[rule])
    created = made.stored(thing({"max": 3}, status={"n": 9}))
    assert "status" not in created
    stored = made.stored({**thing({"max": 0}), "status": {"n": 2, "x": 1}}, created, subresource="status")
    assert stored == {**created, "status": {"n": 2}}
    assert refused(made, {**created, "status": {"n": 4}}, stored, "status") == ["<nil>: Invalid value: too many"]
    assert refused(made, {**created, "status": {"n": "4"}}, stored, "status") == [
        'status.n: Invalid value: "string": n in body must be of type integer: "string"',
        NOT_CHECKED,
    ]
    assert made.stored(thing({"max": 5}, status={"n": 7}), stored) == {**stored, "spec": {"max": 5}}
    assert refused(made, thing({"max": 1}), stored) == ["<nil>: Invalid value: too many"]
    with pytest.raises(ValueError, match="no subresource 'scale'"):
        made.stored(stored, stored, subresource="scale")


def test_who_an_object_is_and_its_metadata() -> None:
    made = schema(fields(a=TEXT))
    other = {**thing({}), "kind": "Other"}
    assert refused(made, other) == ['kind: Invalid value: "Other": must be Thing']
    assert refused(made, {**thing({}), "metadata": {}}) == [
        "metadata.name: Required value: name or generateName is required"
    ]
    assert refused(made, {**thing({}), "metadata": {"name": "a", "labels": {"x y": ""}}})[0].startswith(
        'metadata.labels: Invalid value: "x y": name part must consist of'
    )
    metadata = {"name": "a", "uid": "u", "labels": {"a": "b"}, "creationTimestamp": None, "unknown": 1}
    stored = made.stored({**thing({}), "metadata": metadata})
    assert stored["metadata"] == {"name": "a", "uid": "u", "labels": {"a": "b"}}
    with pytest.raises(RefusedError) as found:
        made.stored({**thing({}), "metadata": {"name": 3}})
    assert (found.value.code, found.value.reason) == (400, "BadRequest")


def test_a_refusal_names_the_object() -> None:
    with pytest.raises(RefusedError) as found:
        schema(fields(a=TEXT, b=TEXT)).stored(thing({"a": 1, "b": 2}))
    wrong = [
        f'spec.{line}: Invalid value: "integer": spec.{line} in body must be of type string: "integer"' for line in "ab"
    ]
    assert (found.value.code, found.value.reason) == (422, "Invalid")
    assert str(found.value) == f'Thing.example.com "o" is invalid: [{", ".join(wrong)}]'
    assert found.value.status["details"] == {
        "name": "o",
        "group": "example.com",
        "kind": "Thing",
        "causes": [
            {
                "reason": "FieldValueTypeInvalid",
                "message": 'Invalid value: "integer": ' + line.partition(": ")[2].partition(": ")[2].partition(": ")[2],
                "field": line.partition(":")[0],
            }
            for line in wrong
        ],
    }
    assert [problem.field for problem in found.value.problems] == ["spec.a", "spec.b"]


@pytest.mark.parametrize(
    ("part", "field"),
    [
        (fields(a={**TEXT, "pattern": r"\pN"}), "properties[spec].properties[a].pattern"),
        (ruled(fields(), "self.a ="), "properties[spec].x-kubernetes-validations[0].rule"),
        (ruled(fields(), "quantity(self.a).isInteger()"), "properties[spec].x-kubernetes-validations[0].rule"),
    ],
)
def test_what_cannot_be_checked_is_refused_at_once(part: Any, field: str) -> None:
    with pytest.raises(ManifestError) as found:
        schema(part)
    assert found.value.field == f"spec.versions[0].schema.openAPIV3Schema.{field}"


def test_a_version_has_to_be_there() -> None:
    with pytest.raises(ManifestError, match="no version 'v2'; one of v1"):
        schema(fields(), version="v2")


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("size(self.t) == 2", {"t": "äö"}, {"t": "ä"}),
        ("self.t.size() < 3 && !has(self.n)", {"t": "äö"}, {"t": "äö", "n": 1}),
        ("self.l.isSorted() && self.l.sum() == 6", {"l": [1, 2, 3]}, {"l": [2, 1, 3]}),
        ("self.t.find('[0-9]+') == '12'", {"t": "a12b3"}, {"t": "a1b2"}),
        ("self.t.lowerAscii() in ['a', 'b']", {"t": "A"}, {"t": "C"}),
        ("self.__namespace__ == self.a__dash__b", {"namespace": "x", "a-b": "x"}, {"namespace": "x", "a-b": "y"}),
        ("self.at < timestamp('2026-01-01T00:00:00Z')", {"at": "2025-01-01T00:00:00Z"}, {"at": "2027-01-01T00:00:00Z"}),
        ("self.o == self.p", {"o": {"x": "a"}, "p": {"x": "a"}}, {"o": {"x": "a"}, "p": {"x": "b"}}),
        ("self.q[0] == self.q[1]", {"q": [{"x": "a"}, {"x": "a"}]}, {"q": [{"x": "a"}, {"x": "b"}]}),
        ("self.q.exists(it, it == self.o)", {"o": {"x": "a"}, "q": [{"x": "a"}]}, {"o": {"x": "a"}, "q": [{"x": "b"}]}),
        ("self.m['k'].x == 'a'", {"m": {"k": {"x": "a"}}}, {"m": {"k": {"x": "b"}}}),
        ("self.m.all(k, self.m[k].x == k)", {"m": {"a": {"x": "a"}}}, {"m": {"a": {"x": "b"}}}),
        ("self.f > 1.5", {"f": 2}, {"f": 1}),
        ("type(self.iot) == int || self.iot.endsWith('%')", {"iot": 3}, {"iot": "3"}),
        ("self.h.all(it, it >= 0)", {"h": []}, {"h": [-1]}),
    ],
)
def test_rules_see_what_they_ask_for(rule: str, good: Any, bad: Any) -> None:
    part = fields(x=TEXT)
    spec = fields(
        t=TEXT,
        n=NUMBER,
        l={"type": "array", "items": NUMBER},
        h={"type": "array", "items": NUMBER},
        namespace=TEXT,
        at={**TEXT, "format": "date-time"},
        o=part,
        p=part,
        q={"type": "array", "items": part},
        m={"type": "object", "additionalProperties": part},
        f={"type": "number"},
        iot={"x-kubernetes-int-or-string": True},
        **{"a-b": TEXT},
    )
    made = schema(ruled(spec, rule, message="no"))
    assert refused(made, thing(good)) == []
    assert refused(made, thing(bad)) == ["spec: Invalid value: no"]


def test_patterns_are_those_of_go() -> None:
    table = {
        r"^[[:alpha:]]+$": ("ab", "a1"),
        r"^(?i)ab(?-i)c$": ("ABc", "abC"),
        r"^\Qa.b\E$": ("a.b", "axb"),
        r"^[]a^[]+\z": ("]^[", "b"),
        r"^[^]a]$": ("b", "]"),
        r"^\d$": ("1", "\u0661"),
    }
    for pattern, (good, bad) in table.items():
        assert go_pattern(pattern).search(good), pattern
        assert not go_pattern(pattern).search(bad), pattern


def test_formats_are_those_of_a_server() -> None:
    table = {
        "datetime": ("2026-01-01T00:00:00.5+01:00", "2026-01-01 00:00:00Z"),
        "duration": ("1h30m", "1x"),
        "ipv4": ("1.2.3.4", "::1"),
        "ipv6": ("::1", "1.2.3.4"),
        "cidr": ("10.0.0.0/8", "10.0.0.0"),
        "mac": ("00:11:22:33:44:55", "00:11"),
        "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123"),
        "uuid4": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        "byte": ("aGk=", "a"),
        "hexcolor": ("#fff", "#ff"),
        "hostname": ("a.example.com", "-a"),
        "email": ("a@b.c", "a"),
        "uri": ("http://a/b", "a b"),
        "k8sshortname": ("a-b", "a.b"),
        "k8slongname": ("a.b", "A.b"),
    }
    for name, (good, bad) in table.items():
        assert formats()[name](good), name
        assert not formats()[name](bad), name


def test_kueues_definitions_have_all_kinds_and_serve_the_newer_version() -> None:
    made = crds()
    assert {other["spec"]["names"]["kind"] for other in made} == set(KINDS)
    assert [other["metadata"]["name"] for other in made] == sorted(other["metadata"]["name"] for other in made)
    for other in made:
        assert [(one["name"], one["served"], one["storage"]) for one in other["spec"]["versions"]] == [
            ("v1beta1", False, False),
            ("v1beta2", True, True),
        ]
    with_status = {other["spec"]["names"]["kind"] for other in made if "subresources" in other["spec"]["versions"][1]}
    assert with_status == {"AdmissionCheck", "ClusterQueue", "Cohort", "LocalQueue", "MultiKueueCluster", "Workload"}
    namespaced = {other["spec"]["names"]["kind"] for other in made if other["spec"]["scope"] == "Namespaced"}
    assert namespaced == {"LocalQueue", "Workload"}
    with pytest.raises(ValueError, match="no kind 'Job'"):
        crd("Job")


def test_older_releases_serve_both_versions_and_show_less() -> None:
    for other in crds(release="0.20.0-devel"):
        assert [one["served"] for one in other["spec"]["versions"]] == [True, True]

    def columns(kind: str, release: str) -> tuple[list[str], list[str]]:
        listed = crd(kind, release=release)["spec"]["versions"][1]["additionalPrinterColumns"]
        return tuple([column["name"] for column in listed if ("priority" in column) is wide] for wide in (False, True))  # type: ignore[return-value]

    assert columns("ClusterQueue", "0.20.0") == (
        ["Cohort", "Pending Workloads"],
        ["Strategy", "Admitted Workloads", "Active", "Reason"],
    )
    assert columns("ClusterQueue", "0.19.2")[1] == ["Strategy", "Admitted Workloads"]
    assert columns("LocalQueue", "0.20.0")[1] == ["Active", "Reason"]
    assert columns("LocalQueue", "0.19.2")[1] == []
    assert columns("AdmissionCheck", "0.19.2") == (["Active", "Age"], [])
    with pytest.raises(ValueError, match=r"0\.99"):
        crd("Workload", release="0.99")


def test_whoever_changes_a_definition_changes_no_other() -> None:
    crd("Workload")["spec"]["versions"].clear()
    assert len(crd("Workload")["spec"]["versions"]) == 2


def test_a_typical_workload_takes_less_than_twelve_deep_copies_of_it() -> None:
    """It takes nine: a ratio of one run, as machines differ, and the quickest of many, as they do much else."""
    made = CrdSchema.of(crd("Workload"), "v1beta2")
    rich = {**RICH["Workload"], "status": {}}
    stored = made.stored(rich)
    written = made.stored({**stored, "status": RICH["Workload"]["status"]}, stored, subresource="status")
    status = patched(written, {"status": {"requeueState": {"count": 1}}})
    times = []
    for _ in range(300):
        start = time.perf_counter()
        made.stored(rich)
        middle = time.perf_counter()
        made.stored(status, written, subresource="status")
        end = time.perf_counter()
        deepcopy(written)
        times.append((middle - start, end - middle, time.perf_counter() - end))
    *stores, copy = map(min, zip(*times, strict=True))
    assert max(stores) < 12 * copy


def test_rules_of_every_version_are_compiled() -> None:
    for kind in KINDS:
        for version in ("v1beta1", "v1beta2"):
            assert schema_of(kind, version).version == version


def test_half_a_character_is_no_text() -> None:
    made = schema(ruled(fields(a=TEXT), "size(self.a) == 1", message="one"))
    assert refused(made, thing({"a": "\ud800"})) == []
    with pytest.raises(RefusedError) as found:
        made.stored({**thing({}), "metadata": {"name": "\ud800"}})
    assert found.value.code == 400
