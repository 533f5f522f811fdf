"""The results of a run as tables, measures, metrics and files."""

from kueuecore.results.results import Results
from kueuecore.results.summary import Summary
from kueuecore.results.table import Column, Table

__all__ = ["Column", "Results", "Summary", "Table"]
