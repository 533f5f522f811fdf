"""Concurrent admission outside of cycles: a parent and its variants, one for each flavor (rules/09 §4)."""

from kueuecore.concurrent_admission.family import FamilyReview, reconcile_parent
from kueuecore.concurrent_admission.variant_objects import (
    PARENT_LABEL,
    becomes_parent,
    is_parent,
    is_variant,
    parent_of,
)

__all__ = ["PARENT_LABEL", "FamilyReview", "becomes_parent", "is_parent", "is_variant", "parent_of", "reconcile_parent"]
