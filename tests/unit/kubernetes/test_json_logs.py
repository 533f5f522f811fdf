"""Logs are one JSON object a line."""

from __future__ import annotations

import io
import json
import logging

from kueuecore.kubernetes.json_logs import JsonFormatter, log_to


def test_a_line_has_what_was_given_and_an_exception_with_its_traceback() -> None:
    stream = io.StringIO()
    handler = log_to(stream, level="info")
    logger = logging.getLogger("kueuecore.kubernetes")
    try:
        logger.debug("not shown")
        logger.info("leads", extra={"identity": "a\nb"})
        try:
            raise ValueError("broken")
        except ValueError:
            logger.exception("ends")
    finally:
        logging.getLogger().removeHandler(handler)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["level"], line["message"]) for line in lines] == [("info", "leads"), ("error", "ends")]
    assert lines[0]["identity"] == "a\nb"
    assert "ValueError: broken" in lines[1]["traceback"]


def test_nothing_in_a_line_acts_on_a_terminal() -> None:
    record = logging.makeLogRecord({"name": "a", "levelname": "INFO", "msg": "n\x1b[2J\x7f\x9b31m\u202e\u2028é\udcff"})
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["message"] == "n\x1b[2J\x7f\x9b31m\u202e\u2028é\udcff"
