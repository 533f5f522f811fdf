"""Rules over several fields (`x-kubernetes-validations`), evaluated with the package `common-expression-language`.

What that package lacks compared with the CEL of an API server, and what is done about it here:

- It has no types: a server refuses a definition whose rules name unknown fields or compare what cannot be compared,
  here the rule fails when it is evaluated. It has no cost, either: no rule is too expensive.
- `size` of a text counts bytes, and an integer written as `1.0` is a double. Rules that meet such values, or those of
  a wrong type that an update leaves as they are, are evaluated in a second form that does what a server does:
  characters are counted, and what asks for the integer fails.
- An error in one item of `all` or `exists` is not forgiven when a later item decides it. A rule that asks `has` first
  says the same here and there.
- Unknown: optional field selection (`self.?a`), macros with two variables, `cel.bind`, `format`, and the libraries
  for URLs, addresses, quantities, semantic versions and the authorizer. The functions of Kubernetes for lists
  (`isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`), for regular expressions (`find`, `findAll`) and for
  texts, and those of `sets` and `math`, are there. A definition with a rule that uses what is unknown is refused.
- Lists that are sets or maps (`x-kubernetes-list-type`) are compared in their order by `==`, and `+` appends.
- `oldSelf` of a rule with `optionalOldSelf` has `hasValue()`, `value()` and `orValue()`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, TypeAlias

import cel
from cel.stdlib import STDLIB_FUNCTIONS

from kueuecore.errors import ManifestError
from kueuecore.testing.field_errors import ErrorKind, FieldError, rendered
from kueuecore.testing.go_patterns import go_pattern
from kueuecore.testing.structural_schema import ABSENT, Node, Place, path_of
from kueuecore.times import duration_ns, nanoseconds

__all__ = ["Rules", "rules_of"]

_Json: TypeAlias = Any
# What rules do not see as it stands there: why, by the field's name, or "" where it has none.
_Odd: TypeAlias = dict[str, str]
# A part with its schema, and what it was before an update.
_Known: TypeAlias = tuple[Node, _Json, _Json]
_View: TypeAlias = Callable[[_Json, _Odd], _Json]

_TOKEN = re.compile(
    r"""(?P<text>[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"))
    | (?P<name>[A-Za-z_]\w*)
    | (?P<number>\d[\w.]*)
    | (?P<space>\s+)
    | (?P<sign>==|!=|<=|>=|&&|\|\||.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_HAS = re.compile(r"\bhas\(([^()]+)\)")
_SIZE = re.compile(r"\bsize(?=\()")
_KEYWORDS = {
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
}  # fmt: skip
# Their results are scalars, whatever they are called on.
_SCALAR_CALLS = {"size", "has", "all", "exists", "exists_one", "startsWith", "endsWith", "contains", "matches", "type"}
_BUILT_IN = {
    "size", "contains", "startsWith", "endsWith", "matches", "int", "uint", "double", "string", "bytes", "type", "dyn",
    "timestamp", "duration", "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear",
    "getHours", "getMinutes", "getSeconds", "getMilliseconds", "of", "none", "ofNonZeroValue", "hasValue", "value",
    "orValue", "or", "optional",
}  # fmt: skip
# A field with a value of the wrong type has another name: whatever asks for it fails.
_WRONG_NAME = "__wrong"
# Where there is no name, this stands: nothing can be done with it but compare it.
_WRONG_ITEM = ["wrong"]
_WIDE = {" ": ""}
_TIMES = ("datetime", "date")


def _is_sorted(items: list[_Json]) -> bool:
    return all(one <= other for one, other in pairwise(items))


def _index_of(found: str | list[_Json], item: _Json, offset: int = 0) -> int:
    if isinstance(found, str):
        return found.find(item, offset)
    return found.index(item) if item in found else -1


def _last_index_of(found: str | list[_Json], item: _Json) -> int:
    if isinstance(found, str):
        return found.rfind(item)
    return len(found) - 1 - found[::-1].index(item) if item in found else -1


def _find(text: str, pattern: str) -> str:
    found = go_pattern(pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [it[0] for it in go_pattern(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **STDLIB_FUNCTIONS,
    "isSorted": _is_sorted,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "find": _find,
    "findAll": _find_all,
    "_size": len,
}


@dataclass(slots=True)
class _Expression:
    """An expression, compiled, and its second form for values that are odd."""

    source: str
    program: cel.Program = field(init=False)
    _careful: cel.Program | None = None

    def __post_init__(self) -> None:
        self.program = cel.compile(self.source)

    def unknown(self) -> list[str]:
        """The functions that it calls and nobody has."""
        names = [it for it in self.program.functions() if it[0].isalpha()]
        known = {part for name in _FUNCTIONS for part in name.split(".")}
        return [it for it in names if it not in _BUILT_IN and it not in known]

    def value(self, context: cel.Context, *, careful: bool) -> _Json:
        """What it comes to."""
        if not careful:
            return self.program.execute(context)
        if self._careful is None:
            safe = _HAS.sub(rf"(has(\1) || (has(\1{_WRONG_NAME}) && [false][1]))", self.source)
            self._careful = cel.compile(_SIZE.sub("_size", safe))
        return self._careful.execute(context)


@dataclass(slots=True)
class _Rule:
    expression: _Expression
    message: str
    uses_old: bool
    is_old_optional: bool
    kind: ErrorKind
    field: str
    told: _Expression | None

    @property
    def name(self) -> str:
        """The rule as errors name it."""
        return self.message or self.expression.source.strip()


@dataclass(slots=True)
class Rules:
    """The rules of a schema, and of all in it that has rules.

    Args:
        type: The type of what they are about.
        rules: The rules.
        view: What they see of a value: the fields that they name.
        functions: The functions that they call.
        properties: The rules of fields, with the step to each.
        extra: The rules of entries of a map.
        items: The rules of items of a list.
        node: The schema.
    """

    type: str
    rules: tuple[_Rule, ...]
    view: _View
    functions: Mapping[str, Callable[..., Any]]
    properties: Mapping[str, tuple[Rules, str]]
    extra: Rules | None
    items: Rules | None
    node: Node

    def check(self, value: _Json, old: _Json, place: Place, errors: list[FieldError]) -> None:
        """Collect the rules that do not hold; `old` is the value before an update, or `ABSENT`."""
        self._check(value, old, place, errors, None)

    def _check(self, value: _Json, old: _Json, place: Place, errors: list[FieldError], around: _Known | None) -> None:
        """`around` is the nearest part around that was there before: what does not change may stay wrong."""
        if value is None:
            return
        known = around if old is ABSENT else (self.node, value, old)
        if self.rules:
            self._check_rules(value, old, place, errors, known)
        if type(value) is dict:
            before = old if type(old) is dict else None
            for name, (rules, step) in self.properties.items():
                if name in value:
                    part, was = value[name], ABSENT if before is None else before.get(name, ABSENT)
                    rules._check(part, was, (place, step), errors, known)
            if self.extra is not None:
                for name, part in value.items():
                    if name not in self.node.properties:
                        was = ABSENT if before is None else before.get(name, ABSENT)
                        self.extra._check(part, was, (place, f"[{name}]"), errors, known)
        elif self.items is not None and type(value) is list:
            entries = self.node.by_keys(old) if type(old) is list else None
            for i, part in enumerate(value):
                was = ABSENT if entries is None else entries.get(self.node.key_of(part), ABSENT)
                self.items._check(part, was, (place, f"[{i}]"), errors, known)

    def _check_rules(
        self, value: _Json, old: _Json, place: Place, errors: list[FieldError], known: _Known | None
    ) -> None:
        has_old = old is not ABSENT and old is not None
        asked = [rule for rule in self.rules if has_old or not rule.uses_old or rule.is_old_optional]
        if not asked:
            return
        odd: _Odd = {}
        context = cel.Context()
        for name, function in self.functions.items():
            context.add_function(name, function)
        seen = self.view(value, odd)
        if type(seen) is not _Wrong:
            context.add_variable("self", seen)
        before = None
        if has_old and any(rule.uses_old for rule in asked):
            before = self.view(old, odd)
            if type(before) is not _Wrong:
                context.add_variable("oldSelf", before)
        if odd:
            context.add_function("_size", len)
        for rule in asked:
            if rule.is_old_optional:
                maybe = cel.OptionalValue.of(before) if has_old else cel.OptionalValue.none()
                context.add_variable("oldSelf", maybe)
            try:
                holds = rule.expression.value(context, careful=bool(odd))
            except Exception as error:  # whatever the package raises is an answer
                errors.append(self._not_evaluated(rule, error, place, odd))
                continue
            finally:
                if rule.is_old_optional and has_old:
                    context.add_variable("oldSelf", before)
            if holds is True or (not rule.uses_old and known is not None and known[0].stays(*known[1:])):
                continue
            errors.append(self._broken(rule, value, place, context, careful=bool(odd)))

    def _not_evaluated(self, rule: _Rule, error: Exception, place: Place, odd: _Odd) -> FieldError:
        why = _words(error, odd)
        if why == _NO_OVERLOAD:
            signature = "call arguments did not match a supported operator, function or macro signature"
            detail = f"'{why}': {signature} for rule: {rule.name}"
        else:
            detail = f"{why} evaluating rule: {rule.name}"
        return FieldError(path_of(place), ErrorKind.INVALID, detail, rendered(self.type))

    def _broken(self, rule: _Rule, value: _Json, place: Place, context: cel.Context, *, careful: bool) -> FieldError:
        detail = rule.message or f"failed rule: {rule.name}"
        if rule.told is not None:
            try:
                told = rule.told.value(context, careful=careful)
            except Exception:
                told = None
            if isinstance(told, str) and told.strip() and "\n" not in told.strip() and len(told.encode()) <= 5120:
                detail = told.strip()
        path = path_of(place) + rule.field
        # Of a part that has parts of its own, no value is shown.
        shown = None if self.type in ("object", "array") else rendered(value)
        match rule.kind:
            case ErrorKind.INVALID:
                return FieldError(path.removeprefix("."), rule.kind, detail, shown)
            case ErrorKind.DUPLICATE:
                return FieldError(path.removeprefix("."), rule.kind, value=shown)
            case _:
                return FieldError(path.removeprefix("."), rule.kind, detail)


_NO_OVERLOAD = "no such overload"


def _words(error: Exception, odd: _Odd) -> str:
    """What an API server says of an error."""
    wrong = next(filter(None, odd.values()), "")
    match error:
        case TypeError() | IndexError() | RuntimeError() if wrong:
            return wrong
        case KeyError():
            name = str(error.args[0]).strip("'")
            return odd.get(name) or f"no such key: {name}"
        case IndexError():
            return str(error)
        case ZeroDivisionError():
            return "division by zero"
        case OverflowError():
            return "integer overflow"
        case TypeError():
            return _NO_OVERLOAD
        case _:
            return str(error)


def rules_of(node: Node, *, where: str) -> Rules | None:
    """The rules of a schema and of all in it; None if it has none.

    Raises:
        ManifestError: A rule cannot be compiled.
    """
    properties = {
        name: (found, step)
        for name, (part, step) in node.properties.items()
        if (found := rules_of(part, where=f"{where}.properties[{name}]")) is not None
    }
    extra = None if node.extra is None else rules_of(node.extra, where=f"{where}.additionalProperties")
    items = None if node.items is None else rules_of(node.items, where=f"{where}.items")
    every = [*node.rules, *(rule for it in node.all_of for rule in it.rules)]
    rules = tuple(_compiled(rule, f"{where}.x-kubernetes-validations[{i}]") for i, rule in enumerate(every))
    if not (rules or properties or extra or items):
        return None
    expressions = [it for rule in rules for it in (rule.expression, rule.told) if it is not None]
    named = {name for it in expressions for name in it.program.functions()}
    names = None if any(_compares_parts(it.source, node) for it in expressions) else _names(expressions)
    return Rules(
        node.types[0] if node.types else "",
        rules,
        _view(node, names, is_root=node.is_resource),
        {name: it for name, it in _FUNCTIONS.items() if name.split(".")[-1] in named and name != "_size"},
        properties,
        extra,
        items,
        node,
    )


_KINDS = {it.value: it for it in (ErrorKind.REQUIRED, ErrorKind.FORBIDDEN, ErrorKind.DUPLICATE)}


def _compiled(rule: Mapping[str, _Json], where: str) -> _Rule:
    def expression(name: str) -> _Expression:
        try:
            found = _Expression(rule[name])
        except ValueError as error:
            raise ManifestError.of(f"no rule: {error}", field=f"{where}.{name}") from None
        if unknown := found.unknown():
            raise ManifestError.of(f"a rule with unknown functions: {', '.join(unknown)}", field=f"{where}.{name}")
        return found

    main = expression("rule")
    told = expression("messageExpression") if rule.get("messageExpression") else None
    return _Rule(
        main,
        str(rule.get("message", "")).strip(),
        "oldSelf" in main.program.variables(),
        rule.get("optionalOldSelf") is True,
        _KINDS.get(str(rule.get("reason", "")), ErrorKind.INVALID),
        re.sub(r"\['((?:[^'\\]|\\.)*)'\]", r"[\1]", str(rule.get("fieldPath", ""))),
        told,
    )


def _tokens(source: str) -> list[tuple[str, str]]:
    return [(it.lastgroup or "", it[0]) for it in _TOKEN.finditer(source) if it.lastgroup != "space"]


def _names(expressions: Sequence[_Expression]) -> frozenset[str]:
    """All names in expressions: no field is asked for that is not among them, unless by a text in brackets."""
    tokens = [token for it in expressions for token in _tokens(it.source)]
    texts = {text.strip("'\"") for kind, text in tokens if kind == "text"}
    return frozenset({text for kind, text in tokens if kind == "name"} | texts)


def _compares_parts(source: str, node: Node) -> bool:
    """Are parts with fields of their own compared, so that each of these counts?"""
    tokens = _tokens(source)
    for i, (_, text) in enumerate(tokens):
        if text not in ("==", "!=", "in"):
            continue
        sides = _operand(tokens[:i][::-1], is_before=True), _operand(tokens[i + 1 :], is_before=False)
        if "literal" in sides:
            continue
        if any(_may_have_fields(side, node) for side in sides):
            return True
    # What is put together, or given to a function, may be compared there.
    calls = [one[1] for one, other in pairwise(tokens) if one[0] == "name" and other[1] == "("]
    return any(it not in _SCALAR_CALLS | {"filter", "map"} for it in calls)


def _operand(tokens: Sequence[tuple[str, str]], *, is_before: bool) -> str:
    """What stands next to a comparison: `literal`, the name of its last field, or empty if nobody knows.

    Tokens go away from the comparison.
    """
    if not tokens:
        return ""
    kind, text = tokens[0]
    if kind in ("text", "number") or text in ("true", "false", "null"):
        return "literal"
    if is_before:
        if kind == "name":
            return text
        return _call(tokens) if text == ")" else ""
    if text == "[":
        inner = [it for it in tokens[1 : next((i for i, it in enumerate(tokens) if it[1] == "]"), 0)] if it[1] != ","]
        return "literal" if inner and all(it[0] in ("text", "number") for it in inner) else ""
    name = ""
    for i, (kind, text) in enumerate(tokens):
        if kind == "name":
            name = text
            if i + 1 < len(tokens) and tokens[i + 1][1] == "(":
                return "literal" if text in _SCALAR_CALLS else ""
        elif text != ".":
            return "" if text in ("(", "[") else name
    return name


def _call(tokens: Sequence[tuple[str, str]]) -> str:
    """The call that ends here, going backwards."""
    depth = 0
    for i, (_, text) in enumerate(tokens):
        depth += {")": 1, "(": -1}.get(text, 0)
        if depth == 0:
            after = tokens[i + 1] if i + 1 < len(tokens) else ("", "")
            return "literal" if after[1] in _SCALAR_CALLS else ""
    return ""


def _may_have_fields(name: str, node: Node) -> bool:
    """May what has this name have fields?"""
    if name in ("self", "oldSelf"):
        return _has_fields(node)
    found = [it for part in _all(node) for known, (it, _) in part.properties.items() if _escaped(known) == name]
    # A variable may be any part.
    return any(map(_has_fields, found or _all(node)))


def _all(node: Node) -> Iterator[Node]:
    yield node
    for part in node.parts():
        yield from _all(part)


def _has_fields(node: Node) -> bool:
    return any(it.properties or it.preserves for it in _all(node))


def _escaped(name: str) -> str:
    """A field's name as expressions write it; empty if they cannot."""
    if name in _KEYWORDS:
        return f"__{name}__"
    name = name.replace("__", "__underscores__")
    for sign, word in ((".", "dot"), ("-", "dash"), ("/", "slash")):
        name = name.replace(sign, f"__{word}__")
    return name if name.isidentifier() and name.isascii() else ""


def _view(node: Node, names: frozenset[str] | None, *, is_root: bool = False) -> _View:
    """What rules see of a value: of fields those with these names; what is odd about it is noted."""
    if node.items is not None:
        item = _view(node.items, names)
        return lambda value, odd: _items(item, value, odd)
    if node.extra is not None and not node.properties:
        entry = _view(node.extra, names)
        return lambda value, odd: _entries(entry, value, odd)
    if node.types == ("object",) or is_root:
        fields = {
            name: (_escaped(name), _view(part, names))
            for name, (part, _) in node.properties.items()
            if (names is None or _escaped(name) in names) and _escaped(name) and (part.types or part.properties)
        }
        if is_root:
            whole = _view(Node(types=("string",)), names)
            metadata = Node(types=("object",), properties={it: (Node(types=("string",)), "") for it in _NAMED})
            fields |= {it: (it, whole) for it in ("apiVersion", "kind") if names is None or it in names}
            fields |= {"metadata": ("metadata", _view(metadata, names))} if names is None or "metadata" in names else {}
        return lambda value, odd: _fields(fields, value, odd)
    return _scalar(node)


_NAMED = ("name", "generateName")


class _Wrong:
    """Stands for a value of the wrong type."""


def _wrong(odd: _Odd, why: str) -> _Wrong:
    odd[""] = f"invalid data, expected {why}"
    return _Wrong()


def _items(item: _View, value: _Json, odd: _Odd) -> _Json:
    if type(value) is not list:
        return _wrong(odd, "an array for the provided schema with type=array")
    seen = [item(it, odd) for it in value]
    return [_WRONG_ITEM if type(it) is _Wrong else it for it in seen] if odd else seen


def _entries(entry: _View, value: _Json, odd: _Odd) -> _Json:
    if type(value) is not dict:
        return _wrong(odd, _NO_OBJECT)
    seen = {name: entry(it, odd) for name, it in value.items()}
    return {name: _WRONG_ITEM if type(it) is _Wrong else it for name, it in seen.items()} if odd else seen


_NO_OBJECT = "a map for the provided schema with type=object"


def _fields(fields: Mapping[str, tuple[str, _View]], value: _Json, odd: _Odd) -> _Json:
    if type(value) is not dict:
        return _wrong(odd, _NO_OBJECT)
    if len(fields) <= len(value):
        seen = {known[0]: known[1](value[name], odd) for name, known in fields.items() if name in value}
    else:
        seen = {it[0]: it[1](part, odd) for name, part in value.items() if (it := fields.get(name)) is not None}
    for name in [name for name, it in seen.items() if type(it) is _Wrong] if odd else ():
        seen[f"{name}{_WRONG_NAME}"] = seen.pop(name) and _WRONG_ITEM
        odd[name] = odd[""]
    return seen


def _scalar(node: Node) -> _View:
    match node.types:
        case ("integer",):
            return _integer
        case ("number",):
            return _number
        case ("boolean",):
            return _boolean
        case ("string",) if node.format.replace("-", "") in _TIMES:
            return lambda value, odd: _time(_text(value, odd))
        case ("string",) if node.format == "duration":
            return lambda value, odd: _duration(_text(value, odd))
        case ("string",) if node.format == "byte":
            return lambda value, odd: _bytes(_text(value, odd))
        case ("string",):
            return _text
        case _:
            return _mixed


def _integer(value: _Json, odd: _Odd) -> _Json:
    return value if type(value) is int else _wrong(odd, f"int, got {_go_type(value)}")


def _number(value: _Json, odd: _Odd) -> _Json:
    return float(value) if type(value) in (int, float) else _wrong(odd, f"float, got {_go_type(value)}")


def _boolean(value: _Json, odd: _Odd) -> _Json:
    return value if type(value) is bool else _wrong(odd, f"bool, got {_go_type(value)}")


def _text(value: _Json, odd: _Odd) -> _Json:
    if type(value) is not str:
        return _wrong(odd, f"string, got {_go_type(value)}")
    if not value.isascii():
        odd |= _WIDE
        # Half a character is none.
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _mixed(value: _Json, odd: _Odd) -> _Json:
    if type(value) is str:
        return _text(value, odd)
    return value if type(value) is int else _wrong(odd, "XIntOrString value to be either a string or integer")


def _go_type(value: _Json) -> str:
    """The type of a value in Go."""
    match value:
        case bool():
            return "bool"
        case int() if -(2**63) <= value < 2**63:
            return "int64"
        case int() | float():
            return "float64"
        case str():
            return "string"
        case list():
            return "[]interface {}"
        case _:
            return "map[string]interface {}"


def _time(value: _Json) -> _Json:
    try:
        text = value if "T" in value.upper() else f"{value}T00:00:00Z"
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds(text) // 1000)
    except (AttributeError, ValueError):
        return value


def _duration(value: _Json) -> _Json:
    try:
        return timedelta(microseconds=duration_ns(value) / 1000)
    except (AttributeError, ValueError, TypeError):
        return value


def _bytes(value: _Json) -> _Json:
    try:
        return base64.b64decode(value)
    except (binascii.Error, TypeError):
        return value
