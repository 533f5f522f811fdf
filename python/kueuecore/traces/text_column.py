"""A dictionary-encoded column of strings: each distinct string once, and its index for each row."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["TextColumn", "TextColumnBuilder"]


@dataclass(frozen=True, slots=True, eq=False)
class TextColumn:
    """The strings of n rows.

    Args:
        codes: Index into `names`, shape (n,).
        names: The distinct strings; an empty one means unknown.

    Example:
        >>> column = TextColumn.of(["batch", "gpu", "batch"])
        >>> column.names, column.codes.tolist(), column.texts()
        (('batch', 'gpu'), [0, 1, 0], ['batch', 'gpu', 'batch'])
    """

    codes: npt.NDArray[np.int64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> TextColumn:
        """Build the column from one string per row."""
        builder = TextColumnBuilder()
        builder.extend(texts)
        return builder.column()

    def texts(self) -> list[str]:
        """Return the string of each row."""
        return [self.names[code] for code in self.codes.tolist()]

    def rows(self, index: npt.NDArray[np.int64]) -> TextColumn:
        """Return the rows at these positions, without names that no longer occur."""
        used, codes = np.unique(self.codes[index], return_inverse=True)
        return TextColumn(codes.astype(np.int64), tuple(self.names[code] for code in used.tolist()))

    def is_one_of(self, texts: Container[str]) -> npt.NDArray[np.bool_]:
        """Return which rows hold one of these strings, shape (n,)."""
        return np.array([name in texts for name in self.names], np.bool_)[self.codes]

    def renamed(self, texts: Sequence[str]) -> TextColumn:
        """Return the same rows with other strings, one for each of `names`; several may become the same."""
        column = TextColumn.of(texts)
        return TextColumn(column.codes[self.codes], column.names)


class TextColumnBuilder:
    """Builds a column from parts, numbering strings in order of appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._parts: list[npt.NDArray[np.int64]] = []

    def extend(self, texts: Sequence[str]) -> None:
        """Append rows."""
        self._parts.append(np.fromiter(self._codes(texts), np.int64, len(texts)))

    def column(self) -> TextColumn:
        """Return the column of all rows so far."""
        codes = np.concatenate(self._parts) if self._parts else np.zeros(0, np.int64)
        return TextColumn(codes, tuple(self._numbers))

    def _codes(self, texts: Iterable[str]) -> Iterable[int]:
        numbers = self._numbers
        return (numbers.setdefault(text, len(numbers)) for text in texts)
