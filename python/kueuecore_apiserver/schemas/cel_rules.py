"""Rules over several fields (`x-kubernetes-validations`), evaluated with the package `common-expression-language`.

What that package lacks compared with the CEL of an API server, and how this module handles it:

- It has no types: a server refuses a definition whose rules name unknown fields or compare incomparable values, here
  the rule fails when it is evaluated. It has no cost model either: no rule is too expensive.
- `size` of a string counts bytes, and an integer written as `1.0` is a double. Rules that meet such values, or values
  of a wrong type that an update leaves unchanged, are evaluated in a second form that behaves like a server:
  characters are counted, and operations that need the integer fail.
- An error in one item of `all` or `exists` is not forgiven when a later item decides the result. A rule that asks
  `has` first gives the same result in both.
- Unsupported: optional field selection (`self.?a`), macros with two variables, `cel.bind`, `format`, and the libraries
  for URLs, addresses, quantities, semantic versions and the authorizer. Supported are the Kubernetes functions for
  lists (`isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`), for regular expressions (`find`, `findAll`) and
  for strings, and those of `sets` and `math`. A definition whose rules use anything unsupported is refused.
- Lists that are sets or maps (`x-kubernetes-list-type`) are compared in order by `==`, and `+` appends.
- `oldSelf` in a rule with `optionalOldSelf` has `hasValue()`, `value()` and `orValue()`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import cel

from kueuecore.errors import ManifestError
from kueuecore_apiserver.schemas.cel_functions import FUNCTIONS, unknown_functions
from kueuecore_apiserver.schemas.cel_names import compares_parts, names_in
from kueuecore_apiserver.schemas.cel_views import WRONG_NAME, Odd, View, Wrong, view
from kueuecore_apiserver.schemas.field_errors import ErrorKind, FieldError, rendered
from kueuecore_apiserver.schemas.structural_schema import ABSENT, Node, Place, path_of

__all__ = ["Rules", "rules_of"]

_Json: TypeAlias = Any
# A part with its schema, and its value before an update.
_Known: TypeAlias = tuple[Node, _Json, _Json]

_HAS = re.compile(r"\bhas\(([^()]+)\)")
_SIZE = re.compile(r"\bsize(?=\()")


@dataclass(slots=True)
class _Expression:
    """A compiled expression, with its second form for odd values."""

    source: str
    program: cel.Program = field(init=False)
    _careful: cel.Program | None = None

    def __post_init__(self) -> None:
        self.program = cel.compile(self.source)

    def unknown(self) -> list[str]:
        """The functions that it calls and that do not exist."""
        return unknown_functions(self.program.functions())

    def value(self, context: cel.Context, *, careful: bool) -> _Json:
        """Evaluate the expression."""
        if not careful:
            return self.program.execute(context)
        if self._careful is None:
            safe = _HAS.sub(rf"(has(\1) || (has(\1{WRONG_NAME}) && [false][1]))", self.source)
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
    reported: _Expression | None

    @property
    def name(self) -> str:
        """The rule as errors name it."""
        return self.message or self.expression.source.strip()


@dataclass(slots=True)
class Rules:
    """The rules of a schema and of all schemas in it that have rules.

    Args:
        type: The type of the value that they check.
        rules: The rules.
        view: Turns a value into what they see: the fields that they name.
        functions: The functions that they call.
        properties: The rules of fields, with the step to each.
        extra: The rules of the values of a map.
        items: The rules of items of a list.
        node: The schema.
    """

    type: str
    rules: tuple[_Rule, ...]
    view: View
    functions: Mapping[str, Callable[..., Any]]
    properties: Mapping[str, tuple[Rules, str]]
    extra: Rules | None
    items: Rules | None
    node: Node

    def check(self, value: _Json, old: _Json, place: Place, errors: list[FieldError]) -> None:
        """Collect the rules that fail; `old` is the value before an update, or `ABSENT`."""
        self._check(value, old, place, errors, None)

    def _check(self, value: _Json, old: _Json, place: Place, errors: list[FieldError], around: _Known | None) -> None:
        """Check with `around`, the nearest enclosing part that existed before: unchanged values may stay invalid."""
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
        odd: Odd = {}
        context = cel.Context()
        for name, function in self.functions.items():
            context.add_function(name, function)
        seen = self.view(value, odd)
        if type(seen) is not Wrong:
            context.add_variable("self", seen)
        before = None
        if has_old and any(rule.uses_old for rule in asked):
            before = self.view(old, odd)
            if type(before) is not Wrong:
                context.add_variable("oldSelf", before)
        if odd:
            context.add_function("_size", len)
        for rule in asked:
            if rule.is_old_optional:
                maybe = cel.OptionalValue.of(before) if has_old else cel.OptionalValue.none()
                context.add_variable("oldSelf", maybe)
            try:
                holds = rule.expression.value(context, careful=bool(odd))
            except Exception as error:  # any exception of the package is an answer
                errors.append(self._not_evaluated(rule, error, place, odd))
                continue
            finally:
                if rule.is_old_optional and has_old:
                    context.add_variable("oldSelf", before)
            if holds is True or (not rule.uses_old and known is not None and known[0].stays(*known[1:])):
                continue
            errors.append(self._broken(rule, value, place, context, careful=bool(odd)))

    def _not_evaluated(self, rule: _Rule, error: Exception, place: Place, odd: Odd) -> FieldError:
        why = _words(error, odd)
        if why == _NO_OVERLOAD:
            signature = "call arguments did not match a supported operator, function or macro signature"
            detail = f"'{why}': {signature} for rule: {rule.name}"
        else:
            detail = f"{why} evaluating rule: {rule.name}"
        return FieldError(path_of(place), ErrorKind.INVALID, detail, rendered(self.type))

    def _broken(self, rule: _Rule, value: _Json, place: Place, context: cel.Context, *, careful: bool) -> FieldError:
        detail = rule.message or f"failed rule: {rule.name}"
        if rule.reported is not None:
            try:
                reported = rule.reported.value(context, careful=careful)
            except Exception:
                reported = None
            if (
                isinstance(reported, str)
                and reported.strip()
                and "\n" not in reported.strip()
                and len(reported.encode()) <= 5120
            ):
                detail = reported.strip()
        path = path_of(place) + rule.field
        # No value is shown for a part that has parts of its own.
        shown = None if self.type in ("object", "array") else rendered(value)
        match rule.kind:
            case ErrorKind.INVALID:
                return FieldError(path.removeprefix("."), rule.kind, detail, shown)
            case ErrorKind.DUPLICATE:
                return FieldError(path.removeprefix("."), rule.kind, value=shown)
            case _:
                return FieldError(path.removeprefix("."), rule.kind, detail)


_NO_OVERLOAD = "no such overload"


def _words(error: Exception, odd: Odd) -> str:
    """Return an error in the words of an API server."""
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
    """Compile the rules of a schema and of everything in it; None if it has none.

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
    every = [*node.rules, *(rule for node in node.all_of for rule in node.rules)]
    rules = tuple(_compiled(rule, f"{where}.x-kubernetes-validations[{i}]") for i, rule in enumerate(every))
    if not (rules or properties or extra or items):
        return None
    expressions = [entry for rule in rules for entry in (rule.expression, rule.reported) if entry is not None]
    named = {name for expression in expressions for name in expression.program.functions()}
    names = (
        None
        if any(compares_parts(expression.source, node) for expression in expressions)
        else names_in(expression.source for expression in expressions)
    )
    return Rules(
        node.types[0] if node.types else "",
        rules,
        view(node, names, is_root=node.is_resource),
        {name: function for name, function in FUNCTIONS.items() if name.split(".")[-1] in named and name != "_size"},
        properties,
        extra,
        items,
        node,
    )


_KINDS = {entry.value: entry for entry in (ErrorKind.REQUIRED, ErrorKind.FORBIDDEN, ErrorKind.DUPLICATE)}


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
    reported = expression("messageExpression") if rule.get("messageExpression") else None
    return _Rule(
        main,
        str(rule.get("message", "")).strip(),
        "oldSelf" in main.program.variables(),
        rule.get("optionalOldSelf") is True,
        _KINDS.get(str(rule.get("reason", "")), ErrorKind.INVALID),
        re.sub(r"\['((?:[^'\\]|\\.)*)'\]", r"[\1]", str(rule.get("fieldPath", ""))),
        reported,
    )
