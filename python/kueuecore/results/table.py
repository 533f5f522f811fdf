"""A table of numpy columns, which Arrow reads without a Python object per row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Column", "Table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The values of one column.

    Args:
        values: One number per row; for text, its index in `words`.
        is_null: True where there is no value; `None`: every row has one.
        words: The strings of a text column.
    """

    values: npt.NDArray[Any]
    is_null: npt.NDArray[np.bool_] | None = None
    words: tuple[str, ...] | None = None

    def to_list(self) -> list[Any]:
        """Return the values as Python objects, None for null.

        Example:
            >>> Column(values=np.array([1, 0]), words=("a", "b")).to_list()
            ['b', 'a']
        """
        values: list[Any] = self.values.tolist()
        if self.words is not None:
            values = [self.words[index] if index >= 0 else None for index in values]
        if self.is_null is not None:
            values = [None if null else value for value, null in zip(values, self.is_null, strict=True)]
        return values


class Table:
    """Named columns of the same length.

    Polars, pandas, pyarrow and DuckDB read it through `__arrow_c_stream__`: `polars.DataFrame(table)`,
    `pyarrow.table(table)`. That needs the extra `arrow`.

    Args:
        columns: The columns by name, in order.

    Raises:
        ValueError: The columns differ in length.

    Example:
        >>> table = Table({"n": Column(values=np.arange(3))})
        >>> len(table), table.names, table["n"].to_list()
        (3, ('n',), [0, 1, 2])
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = dict(columns)
        lengths = {name: len(column.values) for name, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must have the same length, not {lengths}")
        self._n_rows = next(iter(lengths.values()), 0)

    def __len__(self) -> int:
        return self._n_rows

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return self.names == other.names and self.texts(0, len(self)) == other.texts(0, len(other))

    def __hash__(self) -> int:
        return hash((self.names, len(self)))

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.names)})"

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        from kueuecore._html_tables import MAX_ROWS, html_table  # commands need it for nothing

        columns = self.texts(0, min(len(self), MAX_ROWS))
        return html_table(self.names, zip(*columns, strict=True), n_rows=len(self))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self._columns)

    def __getitem__(self, name: str) -> Column:
        """Return a column by name.

        Raises:
            KeyError: There is no such column.
        """
        return self._columns[name]

    def texts(self, start: int, stop: int) -> list[list[str]]:
        """Return some rows as text, column by column; null is an empty string, times are RFC 3339.

        Example:
            >>> Table({"n": Column(values=np.arange(3))}).texts(1, 3)
            [['1', '2']]
        """
        return [_texts(column, slice(start, stop)) for column in self._columns.values()]

    def to_arrow(self) -> Any:
        """Convert it to a `pyarrow.Table`, with text as dictionaries.

        Raises:
            ImportError: The extra `arrow` is not installed.
        """
        pa = pyarrow()
        return pa.table({name: _arrow_array(pa, column) for name, column in self._columns.items()})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return its rows as a capsule for Arrow's C stream interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def pyarrow() -> ModuleType:
    """Import the library that writes Arrow.

    Raises:
        ImportError: The extra `arrow` is not installed.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("Arrow and Parquet need pyarrow: pip install 'kueuecore[arrow]'") from error
    module: ModuleType = pyarrow
    return module


def _texts(column: Column, rows: slice) -> list[str]:
    values = column.values[rows]
    is_null = None if column.is_null is None else column.is_null[rows]
    if values.dtype.kind == "M":
        stamps = np.datetime_as_string(values, unit="ns", timezone="UTC").tolist()
        nulls = [False] * len(stamps) if is_null is None else is_null.tolist()
        return ["" if null else stamp for stamp, null in zip(stamps, nulls, strict=True)]
    part = Column(values=values, is_null=is_null, words=column.words)
    return ["" if value is None else str(value) for value in part.to_list()]


def _arrow_array(pa: ModuleType, column: Column) -> Any:
    if column.words is None:
        return pa.array(column.values, mask=column.is_null)
    is_null = column.values < 0
    if column.is_null is not None:
        is_null |= column.is_null
    # A reader may look at the code of a null too.
    codes = pa.array(np.maximum(column.values, 0).astype(np.int32), mask=is_null)
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.words, pa.string()))
