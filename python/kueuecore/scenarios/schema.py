"""What a scenario file may hold, as a JSON Schema that editors read."""

from __future__ import annotations

import json
from importlib.resources import files

from kueuecore._json import JsonObject

__all__ = ["scenario_schema"]


def scenario_schema() -> JsonObject:
    """The JSON Schema of a scenario, draft 2020-12; a new copy each time.

    It takes whatever `read_scenario` takes, and refuses unknown fields and values of other types. What only the whole
    says, such as whether a name is there, `read_scenario` alone finds out.

    Example:
        >>> scenario_schema()["properties"]["kind"]
        {'const': 'Scenario'}
    """
    text = files("kueuecore.scenarios").joinpath("scenario.schema.json").read_text(encoding="utf-8")
    schema: JsonObject = json.loads(text)
    return schema
