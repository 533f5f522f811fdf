"""`kueuecore ui`: it says where the page is, what it lacks, and what is wrong, and ends on Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from importlib import resources
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from kueuecore.cli import main
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.streams import captured
from tests.unit.ui.pages import EXAMPLES

LARGEST = 100_000


def said(*arguments: str) -> tuple[int, str, str]:
    with captured() as streams:
        code = main(["ui", *arguments])
    return code, streams.out, streams.err


@pytest.mark.parametrize("path", ["two-teams", "scenario/scenario.yaml"])
def test_it_prints_an_address_that_works_and_ends_on_ctrl_c(path: str) -> None:
    command = [sys.executable, "-m", "kueuecore", "ui", "-q", str(EXAMPLES / path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", address)
            with urllib.request.urlopen(address) as answer:
                cookie = answer.headers["set-cookie"].partition(";")[0]
            asked = urllib.request.Request(address.partition("?")[0], headers={"cookie": cookie})
            with urllib.request.urlopen(asked) as answer:
                assert b"Used" in answer.read() or path == "two-teams"
        finally:
            os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (ExitCode.OK, "", "")


def test_each_start_has_a_token_of_its_own() -> None:
    from kueuecore.ui.serving import PageServer
    from tests.unit.ui.pages import source_at

    source = source_at(str(EXAMPLES / "two-teams"))
    servers = [PageServer(source=source) for _ in range(2)]
    assert len({server.address.rpartition("=")[2] for server in servers}) == 2
    for server in servers:
        server.socket.close()


def test_a_port_in_use_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, out, err = said("--port", port, str(EXAMPLES / "two-teams"))
    assert (code, out) == (ExitCode.UNAVAILABLE, "")
    assert f"kueuecore ui: cannot listen on 127.0.0.1:{port}: Address already in use; choose another --port" in err


def test_a_wrong_port_is_refused() -> None:
    for port in ("-1", "x", "65536", "999999"):
        code, _, err = said(f"--port={port}", str(EXAMPLES / "two-teams"))
        assert code == ExitCode.BAD_INPUT
        assert "is not a port from 0 to 65535" in err


def test_what_cannot_be_read_is_said_before_anything_is_served(tmp_path: Path) -> None:
    code, out, err = said(str(tmp_path / "none.yaml"))
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert "none.yaml" in err
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("apiVersion: kueuecore/v1\nkind: Scenario\ncluster: {objects: [none.yaml]}\n")
    code, out, err = said(str(scenario))
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert "none.yaml" in err
    code, _, err = said(str(EXAMPLES / "scenario" / "scenario.yaml"), "--trusted")
    assert code == ExitCode.BAD_INPUT
    assert "--trusted works with a state only; set `cluster.objects` in the scenario" in err


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    code, _, err = said(str(EXAMPLES / "two-teams"))
    assert code == ExitCode.BAD_INPUT
    assert "install it with pip install 'kueuecore[ui]'" in err


def test_what_the_page_is_made_of_is_small_and_in_the_package() -> None:
    root = resources.files("kueuecore.ui")
    files = [entry for folder in ("assets", "templates") for entry in (root / folder).iterdir() if entry.is_file()]
    assert {entry.name for entry in files} >= {"page.css", "page.js", "icon.svg", "layout.html.j2", "cohorts.html.j2"}
    assert sum(len(entry.read_bytes()) for entry in files) < LARGEST
    script = (root / "assets" / "page.js").read_text()
    # Whatever a page inserts has been escaped by the server.
    for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"):
        assert unsafe not in script
