"""Compiles structural schemas from JSON into nodes that check values."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.errors import ManifestError
from kueuecore_apiserver.schemas.go_patterns import formats, go_pattern
from kueuecore_apiserver.schemas.structural_schema import INTEGERS, PYTHON_TYPES, Bounds, Node

__all__ = ["compiled"]

_FORMATS = formats()


def compiled(schema: JsonObject, *, where: str, is_resource: bool = False) -> Node:
    """Compile a structural schema.

    Args:
        schema: The schema, as in `openAPIV3Schema`.
        where: Its path in the definition, for errors.
        is_resource: Whether it is the schema of a whole object, which keeps `apiVersion`, `kind` and `metadata`.

    Raises:
        ManifestError: A pattern cannot be checked.
    """
    is_mixed = schema.get("x-kubernetes-int-or-string") is True
    type_name = text_at(schema, "type")
    types = ("integer", "string") if is_mixed else (type_name,) if type_name else ()

    def sub(part: JsonValue, step: str) -> Node:
        return compiled(object_at(part), where=f"{where}.{step}")

    names = object_at(schema, "properties")
    properties = {name: (sub(part, f"properties[{name}]"), f".{name}") for name, part in names.items()}
    more = schema.get("additionalProperties")
    node = Node(
        types=types,
        python_types=tuple(kind for name in types or PYTHON_TYPES for kind in PYTHON_TYPES.get(name, ())),
        nullable=schema.get("nullable") is True,
        default=schema.get("default"),
        preserves=schema.get("x-kubernetes-preserve-unknown-fields") is True,
        is_resource=is_resource or schema.get("x-kubernetes-embedded-resource") is True,
        properties=properties,
        # The fields of free-form entries are unknown.
        extra=sub(more, "additionalProperties") if isinstance(more, dict) else Node() if more is True else None,
        is_extra_forbidden=more is False,
        required=tuple(value for value in list_at(schema, "required") if isinstance(value, str)),
        items=sub(schema["items"], "items") if isinstance(schema.get("items"), dict) else None,
        list_type=text_at(schema, "x-kubernetes-list-type") or "atomic",
        keys=tuple(other for other in list_at(schema, "x-kubernetes-list-map-keys") if isinstance(other, str)),
        enum=tuple(list_at(schema, "enum")),
        lengths=_range(schema, "minLength", "maxLength"),
        counts=_range(schema, "minItems", "maxItems"),
        sizes=_range(schema, "minProperties", "maxProperties"),
        numbers=_bounds(schema, types),
        is_unique=schema.get("uniqueItems") is True,
        all_of=tuple(sub(value, f"allOf[{i}]") for i, value in enumerate(list_at(schema, "allOf"))),
        any_of=tuple(sub(value, f"anyOf[{i}]") for i, value in enumerate(list_at(schema, "anyOf"))),
        one_of=tuple(sub(value, f"oneOf[{i}]") for i, value in enumerate(list_at(schema, "oneOf"))),
        none_of=sub(schema["not"], "not") if "not" in schema else None,
        rules=tuple(object_at(other) for other in list_at(schema, "x-kubernetes-validations")),
        defaulted=tuple((name, key.default) for name, (key, _) in properties.items() if key.default is not None),
    )
    _add_texts(node, schema, where)
    others = node.all_of or node.one_of or node.none_of is not None
    node.has_schemas = bool(node.any_of or others)
    node.is_int_or_text = schema.get("anyOf") == [{"type": "integer"}, {"type": "string"}] and not others
    node.has_lists = node.list_type != "atomic" or any(part.has_lists for part in node.parts())
    node.has_unknown = node.preserves or (node.types == ("object",) and not (properties or node.extra))
    node.has_unknown = node.has_unknown or any(part.has_unknown for part in node.parts())
    node.is_plain = _is_plain(node)
    return node


def _add_texts(node: Node, schema: JsonObject, where: str) -> None:
    node.pattern = text_at(schema, "pattern")
    if node.pattern:
        try:
            node.matches = go_pattern(node.pattern).search
        except ValueError as error:
            raise ManifestError.of(str(error), field=f"{where}.pattern") from None
    name = text_at(schema, "format")
    if node.types in ((), ("string",)):
        node.is_of_format = _FORMATS.get(name.replace("-", ""))
        node.format = name if node.is_of_format is not None else ""
    elif node.types in (("integer",), ("number",)):
        node.format = name if name in ("int32", "int64", "float", "double") else ""


def _is_plain(node: Node) -> bool:
    checks = (
        node.properties, node.extra, node.required, node.items, node.enum, node.lengths, node.counts, node.sizes,
        node.numbers, node.is_unique, node.all_of, node.any_of, node.one_of, node.none_of, node.matches,
        node.is_of_format, node.is_extra_forbidden,
    )  # fmt: skip
    return not any(check is not None and check is not False and check != () and check != {} for check in checks)


def _range(schema: JsonObject, least: str, most: str) -> tuple[float, float] | None:
    if least not in schema and most not in schema:
        return None
    return float(str(schema.get(least, 0))), float(str(schema.get(most, "inf")))


def _bounds(schema: JsonObject, types: tuple[str, ...]) -> Bounds | None:
    def number(name: str) -> float | None:
        found = schema.get(name)
        return found if isinstance(found, int | float) and not isinstance(found, bool) else None

    name = types[0] if len(types) == 1 and types[0] in ("integer", "number") else ""
    form = text_at(schema, "format") if name else ""
    bounds = [number(text) for text in ("minimum", "maximum", "multipleOf")]
    if name != "integer" and all(bound is None for bound in bounds):
        return None
    least, most, factor = bounds
    excluded = schema.get("exclusiveMinimum") is True, schema.get("exclusiveMaximum") is True
    return Bounds(name, form if form in INTEGERS else "", least, most, *excluded, factor)
