"""Logs say in short what a server says at length: it quotes objects, and with them what their pods are given."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from kueuecore._text import MAX_LOGGED, logged
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api, Election, LeaseSettings, Process
from kueuecore.kubernetes.json_logs import JsonFormatter
from kueuecore_apiserver import Fault, Request
from tests.unit.kubernetes.clusters import job, served, wait_for
from tests.unit.kubernetes.test_process import running

LONG = f'Job.batch "j" is invalid: spec.template: Invalid value: {{"env": "{"secret " * 1000}"}}: field is immutable'
LEASE = LeaseSettings("kueue-system", "one", "first", 3, 2, 1)
FOLDER = Path(__file__).parents[3] / "python" / "kueuecore" / "kubernetes"


def test_a_long_error_keeps_its_beginning_and_its_end() -> None:
    text = logged(RefusedError(422, LONG))
    assert len(text) == MAX_LOGGED
    assert (text[:30], text[-21:]) == (LONG[:30], "}: field is immutable")
    assert logged("short") == "short"


def test_whatever_a_server_refuses_is_said_in_short(caplog: pytest.LogCaptureFixture) -> None:
    refused: set[str] = set()

    def refuse(request: Request) -> Fault | None:
        # Each kind of request once.
        key = f"{request.verb} {request.resource}"
        if key in refused or not request.user_agent.startswith("kueuecore/"):
            return None
        refused.add(key)
        return Fault(refusal=RefusedError(422, LONG))

    # The election's own logger is silent in a process: it logs every step.
    caplog.set_level(logging.INFO, logger="kueuecore")
    with served(faults=refuse) as server:
        process = Process(Api.connect(server=server.url))
        election = Election(Api.connect(server=server.url), LEASE, won=lambda: None, lost=lambda error: None)
        with running(process):
            election.start()
            server.load([job("j")])
            wait_for(lambda: "patch jobs" in refused, "the job is started in vain")
            wait_for(lambda: "create leases" in refused, "the lease is asked for")
            election.release()
    said = [text for record in caplog.records for text in vars(record).values() if isinstance(text, str)]
    quoted = [text for text in said if "secret" in text]
    assert {"cannot be watched, is tried again", "write not accepted", "event not created"} <= {*said}
    assert len(quoted) > 5
    assert max(map(len, quoted)) <= MAX_LOGGED


def test_a_traceback_quotes_no_more() -> None:
    try:
        raise RefusedError(422, LONG)
    except RefusedError as error:
        found = (type(error), error, error.__traceback__)
    record: Any = logging.makeLogRecord({"msg": "cannot continue", "exc_info": found})
    assert len(JsonFormatter().format(record)) < 4 * MAX_LOGGED


def test_no_log_line_takes_an_error_as_it_is() -> None:
    for file in sorted(FOLDER.glob("*.py")):
        lines = file.read_text(encoding="utf-8").splitlines()
        for line in lines:
            if "extra=" in line or "_LOGGER" in line:
                assert not re.search(r'"(error|problem)": (str\(|error\b)', line), f"{file.name}: {line.strip()}"
