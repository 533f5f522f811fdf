"""Answers the questions of tools about one state: the document of a command, and the same in three sentences."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._near_names import near_names
from kueuecore._text import counted, quoted, shown
from kueuecore.agents.cutting import Left, cut_to, size_of
from kueuecore.agents.listings import Listings
from kueuecore.agents.tools import Tool
from kueuecore.cli.asking import ask
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.state_source import StateSource
from kueuecore.cli.streams import captured
from kueuecore.errors import ManifestError

__all__ = ["Answer", "Answering", "Limits", "NoAnswerError"]

logger = logging.getLogger("kueuecore.agents")

_MAX_LINES = 20
# How argparse and the command end what they report.
_USAGE = re.compile(r"^kueuecore [a-z-]+: error: ")
_OPTION = re.compile(
    r"(?<![\w-])(?:-f|--(set|delete|settle|only|tries|select|ignore|run-seconds|arrivals|window|horizon|seeds|from|to|runs))"
    r"(?![\w-])"
)
_COUNT = re.compile(r"kueuecore: \d+ problems?, nothing was decided")
# The steps of a history.
_NEWEST_LAST = ("steps",)
# For saying what was left out.
_LEFT_BYTES = 1000
_BUG = "kueuecore failed on this: a bug, please report it; the log of the server has more"
# Of the time of a call: the rest is for reading the state, and for what a forecast does beyond its budget.
_SHARE_FOR_FUTURES = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a call may take.

    Args:
        seconds: How long it may take.
        most_bytes: How large its answer may be, as compact JSON.
        most_at_once: How many calls may be worked on at once.
    """

    seconds: float = 30.0
    most_bytes: int = 50_000
    most_at_once: int = 4


class NoAnswerError(Exception):
    """A question has no answer; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers.

    Args:
        document: The document, which its schema describes.
        sentences: The same in three sentences, and a fourth if rows were left out.
    """

    document: JsonObject
    sentences: tuple[str, ...]


class Answering:
    """Answers questions about one state. Safe to use from several threads: each call works on copies of the state.

    Args:
        source: The state.
        limits: How much a call may take.
    """

    def __init__(self, source: StateSource, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self._listings = Listings()
        self._lock = Lock()
        self._notes: list[str] = []

    def answer(self, tool: Tool, asked: JsonObject) -> Answer:
        """Answer a question.

        Args:
            tool: The tool.
            asked: Its parameters.

        Raises:
            NoAnswerError: They are wrong, nothing answers to them, or the answer is too large.
        """
        _refuse_wrong(tool, asked)
        try:
            notes = self._catch_up()
            document = self._by_command(tool, asked) if tool.command else self._by_listing(tool, asked)
            object_at(document, "about")["notes"] = [*notes, *list_at(document, "about", "notes")]
            document = {name: _as_utf8(value) for name, value in document.items()}
        except ManifestError as error:
            raise NoAnswerError(_joined([*map(str, error.problems)])) from None
        except NoAnswerError:
            raise
        except Exception:
            logger.exception("tool %s failed", tool.name)
            raise NoAnswerError(_BUG) from None
        sentences = tool.say(document)
        left = self._cut(document)
        return Answer(document, (*sentences, *map(_said, left)))

    def _catch_up(self) -> list[JsonValue]:
        """Take in what has changed since the last call; a cluster is followed from the first one on.

        Returns:
            What there is to say about the state, such as kinds that may not be listed, in every answer again.
        """
        with self._lock, captured() as said:
            self._source.wait(self._source.version, seconds=0)
            self._notes = list(dict.fromkeys([*self._notes, *map(shown, said.err.splitlines())]))[:_MAX_LINES]
            return list[JsonValue](self._notes)

    def _by_command(self, tool: Tool, asked: JsonObject) -> JsonObject:
        arguments = [*tool.arguments(asked), "-o", "json"]
        if tool.command == "eta":
            # Processes of its own would outlive a call that is given up.
            arguments += ["--workers=1", f"--budget={self._limits.seconds * _SHARE_FOR_FUTURES:g}"]
        answered = ask(self._source, tool.command, *arguments, given=tool.given(asked))
        if answered.code == ExitCode.BUG:
            logger.error("tool %s failed:\n%s", tool.name, "\n".join(answered.lines))
            raise NoAnswerError(_BUG)
        document = answered.document
        if not document:
            raise NoAnswerError(_joined(_without_usage(answered.lines)))
        return self._with_about(document, answered.command, answered.lines)

    def _by_listing(self, tool: Tool, asked: JsonObject) -> JsonObject:
        with captured() as said:
            state = self._source.state()
        listed = self._listings.queues if tool.name == "queues" else self._listings.pending
        document = listed(state, asked, most_bytes=self._limits.most_bytes)
        command = shlex.join(["kueuecore", "run", *self._source.arguments, "-o", "json"])
        return self._with_about(document, command, said.err.splitlines())

    def _with_about(self, document: JsonObject, command: str, notes: Sequence[str]) -> JsonObject:
        shown_notes = list[JsonValue](map(shown, notes))
        about: JsonObject = {"state": self._source.title, "command": command, "notes": shown_notes, "left": []}
        return {**document, "about": about}

    def _cut(self, document: JsonObject) -> list[Left]:
        """Make a document small enough, and say in it what is left.

        Raises:
            NoAnswerError: It is too large even with single rows.
        """
        most = self._limits.most_bytes
        if size_of(document) <= most:
            return []
        left = cut_to(document, most - _LEFT_BYTES, newest_last=_NEWEST_LAST)
        object_at(document, "about")["left"] = list[JsonValue](row.to_dict() for row in left)
        size = size_of(document)
        if size > most:
            raise NoAnswerError(
                f"the answer has {size} bytes even with a single row of each list, and the limit is {most}: "
                "ask about less, or start the server with a larger --max-bytes"
            )
        return left


def _refuse_wrong(tool: Tool, asked: JsonObject) -> None:
    """Check the parameters of a question.

    Raises:
        NoAnswerError: They are not as the schema of the tool says.
    """
    unknown = [name for name in asked if name not in tool.takes]
    if unknown:
        near = near_names(unknown[0], tool.takes)
        takes = ", ".join(tool.takes) or "nothing"
        meant = f"; did you mean {near[0]}?" if near else ""
        raise NoAnswerError(f"{tool.name} does not take {quoted(unknown[0])}: it takes {takes}{meant}")
    error = best_match(Draft202012Validator(tool.input_schema).iter_errors(asked))
    if error is None:
        return
    name = str(error.absolute_path[0]) if error.absolute_path else ""
    is_form = error.validator == "pattern"
    message = f"{quoted(str(error.instance))} has another form" if is_form else error.message
    place = f"{error.json_path.removeprefix('$').removeprefix('.')}: " if error.absolute_path else ""
    what = text_at(tool.takes.get(name), "description")
    raise NoAnswerError(f"{tool.name}: {shown(place + message)}" + (f"; it is {what}" if what else ""))


def _without_usage(lines: Sequence[str]) -> Sequence[str]:
    """Drop the usage of the command, which is not how the tool is called, and name parameters instead of options."""
    begin = next((index for index, line in enumerate(lines) if _USAGE.match(line)), 0)
    said = (_USAGE.sub("", line) for line in lines[begin:] if not _COUNT.fullmatch(line))
    return [_OPTION.sub(_as_parameter, line) for line in said]


def _as_parameter(option: re.Match[str]) -> str:
    return "`objects`" if option[0] == "-f" else f"`{option[1].replace('-', '_')}`"


def _as_utf8(value: JsonValue) -> JsonValue:
    """Escape what UTF-8 cannot hold: a file may be called anything, and the protocol takes UTF-8 only."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_as_utf8(row) for row in value]
    if isinstance(value, dict):
        return {name: _as_utf8(inner) for name, inner in value.items()}
    return value


def _joined(lines: Sequence[str]) -> str:
    more = [f"and {counted(len(lines) - _MAX_LINES, 'more line')}"] if len(lines) > _MAX_LINES else []
    return "\n".join([*map(shown, lines[:_MAX_LINES]), *more]) or "there is no answer"


def _said(left: Left) -> str:
    return f"Of {left.path}, {left.shown} are shown and {left.left} left out, as the answer would be too large."
