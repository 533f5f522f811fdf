"""Saves a controller as plain data: what it has seen, and what jobs have done that is not written yet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from kueuecore._arguments import shown
from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore.checks import WorkloadKey
from kueuecore.jobs.job_report import JobReport
from kueuecore.journal import check_digest, check_mapping, digest_of

__all__ = ["REPORT_PROBLEM", "ControllerSave"]

_FORMAT = "kueuecore.controller/1"
REPORT_PROBLEM = "each entry of reports must be the namespace and name of a saved Workload, and what its job did"


@dataclass(frozen=True, slots=True)
class ControllerSave:
    """The saved state of a controller.

    Args:
        objects: All objects in their newest version.
        versions: What else `Versions` remembers.
        reported: What jobs have done that is not written yet: namespace and name of the Workload, and the report.
    """

    objects: Sequence[JsonValue]
    versions: JsonObject
    reported: Sequence[JsonValue]

    def to_json(self) -> JsonObject:
        """Return it as plain data, signed with its digest."""
        saved: JsonObject = {
            "format": _FORMAT,
            "objects": [*self.objects],
            "versions": self.versions,
            "reports": [*self.reported],
        }
        # The round trip copies everything, and turns keys into text as a file would.
        plain: JsonObject = json.loads(json.dumps(saved))
        return {**plain, "digest": digest_of(plain)}

    @classmethod
    def read(cls, saved: JsonObject) -> Self:
        """Read what `to_json` returned.

        Raises:
            ValueError: It was saved in another format, or was changed since.
        """
        check_mapping(saved)
        if text_at(saved, "format") != _FORMAT:
            found = shown(object_at(saved).get("format"))
            raise ValueError(f"this was saved as {found}, and only {_FORMAT!r} can be read")
        check_digest(saved, "list all objects anew instead")
        objects, versions, reported = (saved.get(name) for name in ("objects", "versions", "reports"))
        if not (isinstance(objects, list) and isinstance(versions, dict) and isinstance(reported, list)):
            raise ValueError("this is not a valid save: it must have objects, versions and reports")
        return cls(objects, versions, reported)

    def reports(self) -> Iterator[tuple[WorkloadKey, JobReport]]:
        """Yield what the job of each Workload has done.

        Raises:
            ValueError: An entry is malformed.
        """
        for entry in self.reported:
            match entry:
                case [str(namespace), str(name), dict(reported)]:
                    yield (namespace, name), JobReport.from_json(reported)
                case _:
                    raise ValueError(REPORT_PROBLEM)
