"""The entry points for input ("doors"). Each draws a random case."""

from collections.abc import Callable
from random import Random

from tests.attack.case import Case
from tests.attack.doors import (
    checkpoints,
    command,
    controller,
    engine,
    fleet,
    jobs,
    manager,
    policy_tests,
    questions,
    reports,
    saves,
    scenarios,
    sizes,
    submit,
    timetables,
    traces,
    yaml_output,
)

__all__ = ["DOORS"]

DOORS: dict[str, Callable[[Random], Case]] = {
    "command": command.draw,
    "check": command.draw_check,
    "questions": questions.draw,
    "yaml": yaml_output.draw,
    "scenarios": scenarios.draw,
    "timetables": timetables.draw,
    "checkpoints": checkpoints.draw,
    "reports": reports.draw,
    "policy-tests": policy_tests.draw,
    "engine": engine.draw,
    "submit": submit.draw,
    "controller": controller.draw,
    "manager": manager.draw,
    "fleet": fleet.draw,
    "jobs": jobs.draw,
    "saves": saves.draw,
    "traces": traces.draw,
    "sizes": sizes.draw,
}
