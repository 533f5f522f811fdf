"""Fields without which, or with other types than which, a job says nothing."""

from __future__ import annotations

from kueuecore._json import JsonObject, list_at
from kueuecore.errors import Problem
from kueuecore.jobs.paths import Path, path_text, value_at
from kueuecore.jobs.rejections import invalid, required

__all__ = ["count_problems", "template_problems"]

_INT32 = 2**31


def count_problems(job: JsonObject, path: Path) -> list[Problem]:
    """What is wrong with a number of pods or replicas, if there is one."""
    value, field = value_at(job, path), path_text(path)
    if value is None:
        return []
    if isinstance(value, bool) or not isinstance(value, int) or value >= _INT32:
        return [invalid(field, str(value), "must be a 32-bit integer")]
    return [invalid(field, value, "must be greater than or equal to 0")] if value < 0 else []


def template_problems(job: JsonObject, path: Path) -> list[Problem]:
    """A pod template without containers."""
    if list_at(value_at(job, path), "spec", "containers"):
        return []
    return [required(f"{path_text(path)}.spec.containers")]
