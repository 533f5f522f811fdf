"""Reads what the regions of a scenario's cluster have."""

from __future__ import annotations

from kueuecore._fields import Fields
from kueuecore.provisioning import Stock
from kueuecore.scenarios.distributions import Span
from kueuecore.scenarios.spans import read_span

__all__ = ["read_capacity"]


def read_capacity(section: Fields) -> dict[str, Stock]:
    """Read what each region has, and how it is provisioned."""
    stocks = {}
    for region, fields in section.named_parts("capacity"):
        given, delay = _amounts(fields), read_span(fields, "delay") or Span()
        if delay.mean is not None:
            fields.complain("delay", "not a duration", "write seconds, a duration, or {from: 1m, to: 3m}")
        refused, patience, booking = fields.number("refused"), fields.seconds("patience"), fields.seconds("booking")
        fields.end()
        try:
            stocks[region] = Stock(
                amounts=given,
                delay_seconds=(delay.least, delay.least if delay.most is None else delay.most),
                refused=refused,
                patience_seconds=patience,
                booking_seconds=booking,
            )
        except ValueError as error:
            fields.complain("", str(error), "see docs/scenarios.md for the fields")
    return stocks


def _amounts(section: Fields) -> dict[str, str | int]:
    """Read the amount of each resource."""
    amounts, found = section.part("amounts"), dict[str, str | int]()
    for resource, amount in amounts.plain.items() if amounts is not None else ():
        if isinstance(amount, str | int | float) and not isinstance(amount, bool):
            found[resource] = str(amount) if isinstance(amount, float) else amount
        elif amounts is not None:
            amounts.complain(resource, "not a quantity", "write a quantity, such as 8 or 36Gi")
    return found
