"""Reading recorded cases for the reference model, and writing amounts as they do. Holds no rule."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore.reference import quantity
from kueuecore.reference.amount import UNLIMITED
from kueuecore.reference.objects import FlavorResource, complete
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.world import World

__all__ = [
    "Amounts",
    "by_flavor",
    "configuration_of",
    "from_flavors",
    "settings_of",
    "texts",
    "workload_of",
    "world_of",
]

Amounts = Mapping[FlavorResource, int]


def configuration_of(case: Json) -> Json:
    """The Configuration of a case, in the release of Kueue that it was recorded from."""
    release = {name: case[name] for name in ("kueue", "changes") if name in case}
    return {**case.get("config", {}), "featureGates": case.get("featureGates", {}), **release}


def settings_of(case: Json) -> Settings:
    """What is configured."""
    return Settings(configuration_of(case))


def world_of(case: Json) -> World:
    """All objects of a case."""
    return World(case.get("objects", ()), configuration=configuration_of(case), now=case["config"]["now"], trusted=True)


def workload_of(workload: Json) -> Json:
    """A Workload as the rules read it."""
    return complete({"kind": "Workload", **workload})


def by_flavor(amounts: Amounts) -> Json:
    """Amounts by flavor and resource, as texts."""
    found: Json = {}
    for (flavor, resource), number in amounts.items():
        text = "unlimited" if number == UNLIMITED else quantity.text(resource, number)
        found.setdefault(flavor, {})[resource] = text
    return found


def from_flavors(given: Json) -> dict[FlavorResource, int]:
    """The same the other way round."""
    return {
        (flavor, resource): UNLIMITED if text == "unlimited" else quantity.value(resource, text)
        for flavor, resources in given.items()
        for resource, text in resources.items()
    }


def texts(requests: Mapping[str, int]) -> Json:
    """Amounts of resources as texts."""
    return {n: "unlimited" if v == UNLIMITED else quantity.text(n, v) for n, v in requests.items()}
