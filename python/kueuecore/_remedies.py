"""Says what to write instead of a value that is refused, where that is known."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._near_names import near_names
from kueuecore._quantity_remedies import is_about_quantity, quantity_remedy
from kueuecore.errors import Problem

__all__ = ["remedy_of"]

_STRATEGIES = "fairSharing.preemptionStrategies"


def remedy_of(problem: Problem, api_versions: Mapping[str, str], file: str = "") -> str:
    """Return the remedy of a problem with a quantity, a kind or a version; empty if there is none.

    Args:
        problem: The problem.
        api_versions: The newest apiVersion of each kind that is read.
        file: The file of the object, if it has one.

    Example:
        >>> from kueuecore.errors import ObjectRef
        >>> remedy_of(Problem("x", field="apiVersion", object=ObjectRef("Job", "a")), {"Job": "batch/v1"})
        'write batch/v1'
    """
    if problem.field == _STRATEGIES and problem.message.startswith("Required value"):
        return "write [LessThanOrEqualToFinalShare, LessThanInitialShare], which is the default of v1beta1"
    if "no matches for kind" in problem.message:
        path = "PATH" if not file or file.startswith("<") else file
        return f"convert it: kueuecore convert {path}"
    if is_about_quantity(problem.message):
        return quantity_remedy(problem.value)
    meant = ""
    if problem.field == "kind":
        meant = next(iter(near_names(str(problem.value), api_versions.keys() - {problem.value})), "")
    elif problem.field == "apiVersion" and problem.object is not None:
        meant = api_versions.get(problem.object.kind, "")
    return f"write {meant}" if meant else ""
