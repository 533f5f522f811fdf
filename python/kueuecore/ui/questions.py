"""The questions about one workload, as the commands answer them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

from kueuecore._json import JsonObject, list_at, object_at
from kueuecore.answers.explanation import Fate
from kueuecore.cli.asking import Answered, ask
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.state_source import FileSource, StateSource

__all__ = ["MOST_ROWS", "PARTS", "Answer", "Part", "answer_of", "ask_part", "heredoc", "list_command", "parts"]

_AS_JSON = ("-o", "json", "-q")
_SUMMARY = re.compile(r"kueuecore: [0-9]+ problems?, nothing was decided")
# Each try of `unblock` settles a copy of the state.
_LARGE, _TRIES = 2000, 20
# More rows than anyone reads; the command has all.
MOST_ROWS = 20


@dataclass(frozen=True, slots=True)
class Part:
    """A question that every workload has.

    Args:
        name: Its name in addresses.
        title: The question.
        command: The command that answers it.
        is_slow: Whether it may take long.
    """

    name: str
    title: str
    command: str
    is_slow: bool = False


PARTS = (
    Part("why", "Why is it where it is?", "explain"),
    Part("unblock", "What would admit it?", "unblock", is_slow=True),
    Part("eta", "When will it be admitted?", "eta", is_slow=True),
    Part("history", "What has happened to it?", "history"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command has answered.

    Args:
        document: The answer as data; empty if there is none.
        command: The command that gives the same answer, for people.
        problems: Why there is no answer.
        by_field: The same by the field of a form that is meant, as far as one is.
    """

    document: JsonObject
    command: str
    problems: Sequence[str] = ()
    by_field: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether there is an answer."""
        return not self.problems and not self.by_field


def parts(*, is_pending: bool) -> list[Part]:
    """Return the questions that make sense: those that have a command, and for one that waits how it gets quota."""
    has_history = find_spec("kueuecore.cli.commands.history") is not None
    names = ["why", *(["unblock", "eta"] if is_pending else []), *(["history"] if has_history else [])]
    return [part for part in PARTS if part.name in names]


def ask_part(source: StateSource, part: Part, key: str, asked: Mapping[str, str], *, n_workloads: int) -> Answer:
    """Ask a question about a workload.

    Args:
        source: The state.
        part: The question.
        key: Namespace and name of the workload.
        asked: What the reader has chosen: `tries`, `runs`, `arrivals`.
        n_workloads: How many workloads the state has.
    """
    arguments = [key]
    if part.name == "unblock":
        tries = asked.get("tries", "") or (str(_TRIES) if n_workloads > _LARGE else "")
        arguments += [f"--tries={tries}"] if tries else []
    if part.name == "eta":
        arguments += [f"--run-seconds={asked['runs']}"] if asked.get("runs") else []
        arguments += [f"--arrivals={asked['arrivals']}"] if asked.get("arrivals") else []
        # In this process: the page should end when its server does.
        arguments += ["--workers=1", "--budget=10s"]
    answer = answer_of(ask(source, part.command, *arguments, *_AS_JSON))
    return replace(answer, document=_cut(answer.document)) if part.name == "why" else answer


def answer_of(answered: Answered, *, given: str = "") -> Answer:
    """Read what a command has said.

    Args:
        answered: What it said.
        given: What `-` stood for.
    """
    command = answered.command.removesuffix(" " + shlex.join(_AS_JSON))
    if given:
        command = heredoc(command, given)
    document = answered.document
    problems = [] if document else problems_in(answered)
    return Answer(document, command, problems)


def problems_in(answered: Answered) -> list[str]:
    """Return why a command has no answer, without what is said beside that."""
    lines = [line for line in answered.lines if not line.startswith(("note: ", "warning: ", "usage: ", " "))]
    if answered.code == ExitCode.BUG:
        what = lines[-2] if len(lines) > 1 else "it has said nothing"
        return [f"This is a bug in kueuecore, please report it: {what}"]
    found = [line for line in lines if not _SUMMARY.fullmatch(line)]
    return found or [f"the command has ended with exit code {answered.code} and said nothing: run it in a terminal"]


def heredoc(command: str, text: str, *, to: str = "") -> str:
    """Return a shell command with its standard input, or a file with this text before the command."""
    end = "END"
    while end in text.split("\n"):
        end += "_"
    body = text if text.endswith("\n") else text + "\n"
    if to:
        return f"cat > {to} <<'{end}'\n{body}{end}\n{command}"
    return f"{command} <<'{end}'\n{body}{end}"


def list_command(source: StateSource, *arguments: str) -> str:
    """Return the command that shows the whole state, as the lists of the page do."""
    everything = () if isinstance(source, FileSource) else ("-A",)
    return shlex.join(["kueuecore", "run", *source.arguments, *everything, *arguments])


def _cut(document: JsonObject) -> JsonObject:
    """Of the lists in an explanation that may have thousands of rows, keep the first, and how many more there are."""
    if not document:
        return document
    ahead = list_at(document, "workload", "whyAhead")
    holders = [object_at(row) for search in list_at(document, "searches") for row in list_at(search, "holders")]
    # Those that would give way are what a reader looks for.
    holders.sort(key=lambda holder: holder.get("verdict") != Fate.VICTIM)
    return {
        **document,
        "workload": {**object_at(document, "workload"), "ahead": None, "whyAhead": None},
        "searches": None,
        "ahead": ahead[:MOST_ROWS],
        "nMoreAhead": max(0, len(ahead) - MOST_ROWS),
        "holders": [*holders[:MOST_ROWS]],
        "nMoreHolders": max(0, len(holders) - MOST_ROWS),
    }
