"""Concurrent admission outside of cycles: a parent with one variant for each flavor (rules/09 §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.concurrent_admission.family import (
        FamilyReview,
        creation_event,
        deletion_event,
        reconcile_parent,
    )
    from kueuecore.concurrent_admission.family_index import FamilyIndex
    from kueuecore.concurrent_admission.family_statuses import is_admitted_by_variant
    from kueuecore.concurrent_admission.variant_objects import (
        PARENT_LABEL,
        becomes_parent,
        belongs_to,
        flavor_of,
        flavors_of,
        is_parent,
        parent_of,
        workload_key,
    )

__all__ = [
    "PARENT_LABEL",
    "FamilyIndex",
    "FamilyReview",
    "becomes_parent",
    "belongs_to",
    "creation_event",
    "deletion_event",
    "flavor_of",
    "flavors_of",
    "is_admitted_by_variant",
    "is_parent",
    "parent_of",
    "reconcile_parent",
    "workload_key",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.concurrent_admission.family": "FamilyReview creation_event deletion_event reconcile_parent",
        "kueuecore.concurrent_admission.family_index": "FamilyIndex",
        "kueuecore.concurrent_admission.family_statuses": "is_admitted_by_variant",
        "kueuecore.concurrent_admission.variant_objects": """
            PARENT_LABEL becomes_parent belongs_to flavor_of flavors_of is_parent parent_of workload_key
        """,
    },
)
