"""A real browser for these tests, if there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

_PROGRAM = shutil.which("chromium-headless-shell") or shutil.which("chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    if _PROGRAM is None:
        pytest.skip("needs chromium-headless-shell or chromium in PATH")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_PROGRAM, args=["--no-sandbox"])
        yield browser
        browser.close()
