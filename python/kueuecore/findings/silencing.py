"""Which findings the annotations of an object silence."""

from __future__ import annotations

from kueuecore._json import JsonObject, texts_at
from kueuecore.findings.finding import Rule

__all__ = ["ANNOTATION", "has_id", "is_silenced", "silenced_ids"]

ANNOTATION = "check.kueuecore/ignore"
"""Annotation that silences findings about an object: their codes or names, separated by commas."""


def is_silenced(rule: Rule, plain: JsonObject) -> bool:
    """Whether an annotation of an object silences a rule."""
    return any(has_id(rule, silenced_id) for silenced_id in silenced_ids(plain))


def silenced_ids(plain: JsonObject) -> list[str]:
    """The codes and names in the annotation of an object."""
    text = texts_at(plain, "metadata", "annotations").get(ANNOTATION, "")
    return [name for part in text.split(",") if (name := part.strip())]


def has_id(rule: Rule, name: str) -> bool:
    """Whether a name, a code or the prefix of a code means a rule."""
    return name == rule.name or (name.startswith("KC") and rule.code.startswith(name))
