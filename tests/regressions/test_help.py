"""What `help` prints about functions of the public API."""

import inspect
import pydoc

import pytest

from kueuecore import jobs


@pytest.mark.parametrize("name", [name for name in jobs.__all__ if inspect.isfunction(getattr(jobs, name))])
def test_help_fits_on_a_few_screens(name: str) -> None:
    # The table of all kinds was printed as a default: 60 kB for each function.
    assert len(pydoc.render_doc(getattr(jobs, name))) < 5000
