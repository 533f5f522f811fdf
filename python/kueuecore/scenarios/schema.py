"""The JSON Schema of a scenario file, for editors."""

from __future__ import annotations

import json
from importlib.resources import files

from kueuecore._json import JsonObject

__all__ = ["scenario_schema"]


def scenario_schema() -> JsonObject:
    """Return the JSON Schema of a scenario, draft 2020-12; a new copy each time.

    It accepts whatever `read_scenario` accepts, and refuses unknown fields and values of wrong types. Only
    `read_scenario` checks what depends on the whole, such as whether a name exists.

    Example:
        >>> scenario_schema()["properties"]["kind"]
        {'const': 'Scenario'}
    """
    text = files("kueuecore.scenarios").joinpath("scenario.schema.json").read_text(encoding="utf-8")
    schema: JsonObject = json.loads(text)
    return schema
