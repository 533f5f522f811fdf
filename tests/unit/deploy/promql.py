"""A strict reader of the part of PromQL that the dashboards use: anything else is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Of those that Prometheus has, the ones that are used, with their number of arguments.
OF_RANGES = ("rate", "increase", "changes")
FUNCTIONS = {**dict.fromkeys(OF_RANGES, 1), "histogram_quantile": 2, "clamp_min": 2, "time": 0}
AGGREGATIONS = ("sum", "max", "min", "avg", "count")
_OPERATORS = ({">", "<", ">=", "<=", "==", "!="}, {"+", "-"}, {"*", "/"})
_TOKEN = re.compile(
    r'\s*(?:(?P<number>\d+(?:\.\d+)?(?![\w.]))|(?P<name>[a-zA-Z_:][\w:]*)|(?P<text>"(?:[^"\\]|\\.)*")'
    r"|(?P<range>\[\d+[smhd]\])|(?P<sign>=~|!~|!=|==|>=|<=|[-+*/<>={}(),]))"
)


class PromqlError(ValueError):
    """An expression that Prometheus would refuse, or that is beyond this reader."""


@dataclass(frozen=True, slots=True)
class Selector:
    """A metric with its matchers.

    Args:
        metric: Its name.
        matchers: Label, operator and value.
        function: The function right around it, such as `rate`; empty: none.
    """

    metric: str
    matchers: tuple[tuple[str, str, str], ...]
    function: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A parsed expression.

    Args:
        kind: `vector`, `range`, `scalar`.
        selectors: All metrics in it.
        labels: The labels that an aggregation leaves; None: those of the metrics.
    """

    kind: str
    selectors: tuple[Selector, ...] = ()
    labels: frozenset[str] | None = None


def parsed(text: str) -> Part:
    """Parse an expression whose variables were replaced.

    Raises:
        PromqlError: It is none.
    """
    reader = _Reader(text)
    part = reader.expression(0)
    if reader.at < len(reader.tokens):
        raise reader.error("the end")
    if part.kind == "range":
        raise PromqlError(f"a range is no result: {text}")
    return part


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise PromqlError(f"not PromQL: {text[at:]!r}")
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at = text, [*_tokens(text)], 0

    def error(self, expected: str) -> PromqlError:
        found = self.tokens[self.at][1] if self.at < len(self.tokens) else "the end"
        return PromqlError(f"expected {expected}, not {found}: {self.text}")

    def take(self, *wanted: str) -> str:
        """The next token, which must be one of these kinds or signs."""
        kind, token = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        if kind not in wanted and not (kind == "sign" and token in wanted):
            raise self.error(" or ".join(wanted))
        self.at += 1
        return token

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def expression(self, level: int) -> Part:
        if level == len(_OPERATORS):
            return self.operand()
        left = self.expression(level + 1)
        while self.peek() in _OPERATORS[level]:
            self.at += 1
            left = self._joined(left, self.expression(level + 1))
        return left

    def _joined(self, left: Part, right: Part) -> Part:
        kinds = {left.kind, right.kind}
        if "range" in kinds:
            raise PromqlError(f"an operator on a range: {self.text}")
        if kinds == {"scalar"}:
            return Part("scalar")
        if kinds == {"vector"} and left.labels != right.labels:
            raise PromqlError(f"two sides with other labels, which never match: {self.text}")
        labels = left.labels if left.kind == "vector" else right.labels
        return Part("vector", left.selectors + right.selectors, labels)

    def operand(self) -> Part:
        if self.peek() == "(":
            self.at += 1
            part = self.expression(0)
            self.take(")")
            return part
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "number":
            self.at += 1
            return Part("scalar")
        name = self.take("name")
        if name in AGGREGATIONS:
            return self.aggregation()
        return self.call(name) if self.peek() == "(" else self.selector(name)

    def aggregation(self) -> Part:
        by: frozenset[str] = frozenset()
        if self.peek() == "by":
            self.at += 1
            by = frozenset(self.names())
        self.take("(")
        inner = self.expression(0)
        self.take(")")
        if inner.kind != "vector":
            raise PromqlError(f"an aggregation of a {inner.kind}: {self.text}")
        if inner.labels is not None and not by <= inner.labels:
            raise PromqlError(f"labels that are gone: {sorted(by - inner.labels)}: {self.text}")
        return Part("vector", inner.selectors, by)

    def names(self) -> Iterator[str]:
        self.take("(")
        yield self.take("name")
        while self.take(",", ")") == ",":
            yield self.take("name")

    def call(self, name: str) -> Part:
        if name not in FUNCTIONS:
            raise PromqlError(f"unknown function {name}: {self.text}")
        self.take("(")
        parts: list[Part] = []
        while self.peek() != ")":
            parts.append(self.expression(0))
            if self.peek() != ")":
                self.take(",")
        self.take(")")
        if len(parts) != FUNCTIONS[name]:
            raise PromqlError(f"{name} takes {FUNCTIONS[name]} arguments: {self.text}")
        if any((part.kind == "range") is not (name in OF_RANGES) for part in parts):
            raise PromqlError(f"{name} takes {'a range' if name in OF_RANGES else 'no range'}: {self.text}")
        vectors = [part for part in parts if part.kind != "scalar"]
        if not vectors:
            return Part("scalar")
        (part,) = vectors
        labels = part.labels
        if name == "histogram_quantile":
            if labels is not None and "le" not in labels:
                raise PromqlError(f"a quantile without the label le: {self.text}")
            labels = None if labels is None else labels - {"le"}
        if name not in OF_RANGES:
            return Part("vector", part.selectors, labels)
        inside = tuple(Selector(it.metric, it.matchers, name) for it in part.selectors)
        return Part("vector", inside, labels)

    def selector(self, metric: str) -> Part:
        matchers: list[tuple[str, str, str]] = []
        if self.peek() == "{":
            self.at += 1
            while True:
                label = self.take("name")
                operator = self.take("=", "!=", "=~", "!~")
                value = self.take("text")[1:-1]
                if operator.endswith("~"):
                    re.compile(value)
                matchers.append((label, operator, value))
                if self.take(",", "}") == "}":
                    break
        is_range = self.at < len(self.tokens) and self.tokens[self.at][0] == "range"
        self.at += is_range
        return Part("range" if is_range else "vector", (Selector(metric, tuple(matchers)),))
