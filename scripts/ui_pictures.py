"""Regenerate the pictures in docs/ui.md: the page of `kueuecore ui` in a browser. Needs chromium-headless-shell.

python -m scripts.ui_pictures [FOLDER]
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kueuecore.cli.commands import parsed
from kueuecore.cli.state_source import FileSource
from kueuecore.scenarios import read_scenario
from kueuecore.ui.serving import PageServer
from kueuecore.ui.timeline import Timeline

_STATE = "examples/two-teams"
_SCENARIO = "examples/scenario/scenario.yaml"
# The file, what is shown, the address, the height that is shown, whether it is dark.
PICTURES = (
    ("ui-cohorts.png", _STATE, "/", 620, False),
    ("ui-workload.png", _STATE, "/workloads/team-b/job-benchmark-86330", 1100, False),
    ("ui-timeline.png", _SCENARIO, "/timeline?at=42", 720, True),
)
_WIDTH = 960


def main(folder: Path) -> None:
    """Write all of them."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        raise SystemExit("these pictures need a browser: apt-get install chromium-headless-shell")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for file, path, address, height, is_dark in PICTURES:
            with _served(path) as server:
                viewport: Any = {"width": _WIDTH, "height": height}
                tab = browser.new_page(viewport=viewport, color_scheme="dark" if is_dark else "light")
                tab.goto(server.address)
                tab.wait_for_url(f"http://127.0.0.1:{server.port}/")
                tab.goto(f"http://127.0.0.1:{server.port}{address}")
                tab.wait_for_selector("[aria-busy]", state="detached")
                tab.screenshot(path=folder / file)
                tab.close()
        browser.close()


@contextmanager
def _served(path: str) -> Iterator[PageServer]:
    if path == _SCENARIO:
        run = Timeline.of_scenario(read_scenario(path), title=Path(path).name, command=f"kueuecore simulate {path}")
        server = PageServer(run=run)
    else:
        server = PageServer(source=FileSource(parsed(["ui", "-q", path])))
    thread = threading.Thread(target=server.serve_until_stopped, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
