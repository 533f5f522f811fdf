"""Rules of preemption beyond those of a ClusterQueue (rules/01 §1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from kueuecore._json import JsonObject, JsonValue  # noqa: F401  # used at run time, through the type hints
from kueuecore.objects._fields import at
from kueuecore.objects._meta import ClusterObject

__all__ = ["PreemptionConfig"]


@dataclass(frozen=True, slots=True)
class PreemptionConfig(ClusterObject):
    """More candidates for preemption, for the ClusterQueues whose annotation names it (rules/01 §1).

    Args:
        rules: The rules, as in the manifest. kueuecore does not apply them.
        other: Every other field of the spec, as in the manifest.
    """

    api_version: ClassVar[str] = "kueue.x-k8s.io/v1alpha1"

    _: KW_ONLY
    rules: Sequence[JsonObject] = ()
    other: JsonObject = field(default_factory=dict, metadata=at("spec", rest=True))
