"""The JSON Schema of policy test files, for editors."""

from __future__ import annotations

import json
from importlib.resources import files

from kueuecore._json import JsonObject, object_at
from kueuecore.scenarios.schema import scenario_schema

__all__ = ["policy_test_schema"]

# The definitions of a scenario's work and timetable, which policy tests share.
_OF_SCENARIOS = (
    "object",
    "objectOrFile",
    "duration",
    "experiments",
    "experimentSeconds",
    "kueue",
    "change",
    "work",
    "span",
    "evenSpan",
    "distribution",
    "shapeAndScale",
    "weights",
)


def policy_test_schema() -> JsonObject:
    """Return the JSON Schema of a policy test, draft 2020-12; a new copy each time.

    It accepts whatever `read_policy_tests` accepts, and rejects unknown fields and values of other types.

    Example:
        >>> policy_test_schema()["properties"]["kind"]
        {'const': 'PolicyTest'}
    """
    text = files("kueuecore.policy_tests").joinpath("policy_test.schema.json").read_text(encoding="utf-8")
    schema: JsonObject = json.loads(text)
    shared = object_at(scenario_schema(), "$defs")
    schema["$defs"] = {**{name: shared[name] for name in _OF_SCENARIOS}, **object_at(schema, "$defs")}
    return schema
