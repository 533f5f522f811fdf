"""The entry points for input ("doors"). Each draws a random case."""

from collections.abc import Callable
from random import Random

from tests.attack.case import Case
from tests.attack.doors import command, controller, engine, fleet, jobs, manager, saves, scenarios, submit, traces

__all__ = ["DOORS"]

DOORS: dict[str, Callable[[Random], Case]] = {
    "command": command.draw,
    "scenarios": scenarios.draw,
    "engine": engine.draw,
    "submit": submit.draw,
    "controller": controller.draw,
    "manager": manager.draw,
    "fleet": fleet.draw,
    "jobs": jobs.draw,
    "saves": saves.draw,
    "traces": traces.draw,
}
