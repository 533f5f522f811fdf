"""The reader of files that people write, under the name by which readers of scenarios import it."""

from kueuecore._fields import Fields, seconds_of, shown

__all__ = ["Fields", "seconds_of", "shown"]
