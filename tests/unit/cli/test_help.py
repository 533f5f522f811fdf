"""The help of every command fits a screen, loses no option, and ends with the exit codes that the command has."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.cli.commands import alone_parser, command_lines
from kueuecore.cli.help_pages import NAMED

CLI = Path(__file__).parents[3] / "python" / "kueuecore" / "cli"
# Every command can end so.
OF_ALL = {
    ExitCode.OK,
    ExitCode.BAD_INPUT,
    ExitCode.BUG,
    ExitCode.UNWRITABLE,
    ExitCode.INTERRUPTED,
    ExitCode.BROKEN_PIPE,
}


def shown(name: str, option: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The help of a command on a screen of this width."""
    monkeypatch.setenv("COLUMNS", str(columns))
    parser = alone_parser(name)
    return parser.format_short_help() if option == "--help" else parser.format_help()


def screen_lines(text: str, columns: int) -> int:
    """How many lines a terminal needs, which wraps longer ones."""
    return sum(max(1, -(-len(line) // columns)) for line in text.splitlines())


@pytest.mark.parametrize(("columns", "most"), [(80, 60), (100, 48), (120, 48)])
@pytest.mark.parametrize("name", command_lines())
def test_the_help_fits_a_screen(name: str, columns: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(name, "--help", columns, monkeypatch)
    assert screen_lines(text, columns) <= most, text


@pytest.mark.parametrize("name", command_lines())
def test_no_option_is_lost(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main([name, "--help"]) == ExitCode.OK
    short = capsys.readouterr().out
    assert main([name, "--help-all"]) == ExitCode.OK
    whole = capsys.readouterr().out
    assert f"`kueuecore {name} --help-all`" in short
    for action in alone_parser(name)._actions:
        for option in action.option_strings:
            if action.dest not in ("help", "help_all"):
                assert re.search(rf"(?<![\w-]){option}(?![\w-])", short), option
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", whole), option
        help_text = " ".join((action.help or "").replace("%%", "%").split())
        assert help_text in " ".join(whole.split())


@pytest.mark.parametrize("option", ["--help", "--help-all"])
@pytest.mark.parametrize("name", command_lines())
def test_the_help_ends_with_the_exit_codes_of_the_command(
    name: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown(name, option, 100, monkeypatch)
    last = text.rpartition("\n\n")[2].splitlines()
    assert last[0] == "exit codes:"
    codes = {ExitCode(int(line.split()[0])) for line in last[1:]}
    assert codes == OF_ALL | returned_by(name)


def returned_by(name: str) -> set[ExitCode]:
    """The exit codes that the module of a command names, or a module that it gets its code from."""
    module = name.replace("-", "_")
    tree = ast.parse((CLI / "commands" / f"{module}.py").read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {other.rpartition(".")[2] for other in imported if other.startswith("kueuecore.cli.")}
    ours -= {"exit_codes", "commands"}
    trees = [tree, *(ast.parse((CLI / f"{other}.py").read_text(encoding="utf-8")) for other in ours)]
    return {
        ExitCode[node.attr]
        for other in trees
        for node in ast.walk(other)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ExitCode"
    }


@pytest.mark.parametrize("name", command_lines())
def test_every_example_in_the_help_is_read(name: str) -> None:
    examples = import_module(f"kueuecore.cli.commands.{name.replace('-', '_')}").EXAMPLES
    lines = re.sub(r"\\\n *", " ", examples).splitlines()
    assert [line for line in lines if f"kueuecore {name}" in line]
    for line in lines:
        # What an example is for stands behind it.
        for words in simple_commands(re.split(r" {3,}", line.strip())[0]):
            if words[0] == "kueuecore":
                assert callable(alone_parser(words[1]).parse_anywhere(words[2:]).command)


def simple_commands(script: str) -> Iterator[list[str]]:
    """The words of each command in a line of a shell."""
    reader = shlex.shlex(script, posix=True, punctuation_chars="|<>()")
    reader.whitespace_split = True
    for is_mark, words in groupby(reader, lambda word: not word.strip("|<>()")):
        if not is_mark:
            yield [*words]


def test_help_can_be_asked_for_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    for given, option in ([], ["--help"]), (["explain"], ["explain", "--help"]):
        assert main(["help", *given]) == ExitCode.OK
        said = capsys.readouterr().out
        assert main(option) == ExitCode.OK
        assert capsys.readouterr().out == said
    assert main(["help", "exlpain"]) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err.endswith("did you mean explain?\n")


def test_every_option_that_is_only_named_exists() -> None:
    known = {option for name in command_lines() for option in alone_parser(name)._option_string_actions}
    assert sorted(NAMED - known) == []


def test_the_default_of_a_missing_path_is_in_the_short_help(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "without any, the cluster" in " ".join(shown("check", "--help", 100, monkeypatch).split())
