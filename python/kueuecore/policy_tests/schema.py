"""What a file of policy tests may hold, as a JSON Schema that editors read."""

from __future__ import annotations

import json
from importlib.resources import files

from kueuecore._json import JsonObject, object_at
from kueuecore.scenarios.schema import scenario_schema

__all__ = ["policy_test_schema"]

# The work of a scenario and what it is made of.
_OF_SCENARIOS = (
    "object",
    "objectOrFile",
    "duration",
    "work",
    "span",
    "evenSpan",
    "distribution",
    "shapeAndScale",
    "weights",
)


def policy_test_schema() -> JsonObject:
    """The JSON Schema of a policy test, draft 2020-12; a new copy each time.

    It takes whatever `read_policy_tests` takes, and refuses unknown fields and values of other types.

    Example:
        >>> policy_test_schema()["properties"]["kind"]
        {'const': 'PolicyTest'}
    """
    text = files("kueuecore.policy_tests").joinpath("policy_test.schema.json").read_text(encoding="utf-8")
    schema: JsonObject = json.loads(text)
    shared = object_at(scenario_schema(), "$defs")
    schema["$defs"] = {**{name: shared[name] for name in _OF_SCENARIOS}, **object_at(schema, "$defs")}
    return schema
