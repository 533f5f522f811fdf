"""Files, directories and standard input of any kind: each is read, or is a problem that names it."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore import _files
from kueuecore.cli import ExitCode, main
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError
from kueuecore.manifests import read_manifests
from tests.command import Ran

FLAVOR = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: %s}}\n"


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: Ran(main(arguments), *capsys.readouterr())


def problem_of(ran: Ran) -> str:
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    line, last = ran.err.splitlines()
    assert last == "kueuecore: 1 problem, nothing was decided"
    return line


def test_a_file_may_be_called_as_people_like(command: Callable[..., Ran]) -> None:
    names = ["two\nlines.yaml", "\x1b[2J.yaml", os.fsdecode(b"\xff.yaml"), "größe.yaml"]
    for index, name in enumerate(names):
        Path(name).write_text(FLAVOR % f"f{index}", encoding="utf-8")
        assert command("run", name).code == ExitCode.OK
        Path(name).write_text("a: [", encoding="utf-8")
        problem_of(command("run", name))
    Path(names[0]).write_text(FLAVOR % "f", encoding="utf-8")
    assert command("run", "-o", "yaml", ".").err.count("\n") == len(names)


def test_what_never_ends_is_not_read_to_the_end(command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "_LARGEST", 2**20)
    reported = "cannot be read: it has more than 1 GiB; give it in several parts"
    assert problem_of(command("run", "/dev/zero")) == f"/dev/zero: {reported}"
    assert problem_of(command("simulate", "/dev/zero")) == f"/dev/zero: {reported}"
    Path("f.yaml").write_text(FLAVOR % "f", encoding="utf-8")
    assert problem_of(command("run", "--config", "/dev/zero", ".")).startswith("/dev/zero: cannot be read: it has more")
    with Path("/dev/zero").open(encoding="utf-8") as endless:
        monkeypatch.setattr("sys.stdin", endless)
        assert problem_of(command("run", "-")) == f"<stdin>: {reported}"


def test_standard_input_that_fails_is_a_problem(command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, _: object) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Broken())))
    assert problem_of(command("run", "-")) == "<stdin>: cannot be read: Input/output error"
    monkeypatch.setattr("sys.stdin", io.StringIO(FLAVOR % "f"))
    assert command("run", "-").code == ExitCode.OK


def test_a_link_to_nothing_is_not_left_out(command: Callable[..., Ran]) -> None:
    Path("folder").mkdir()
    Path("folder/a.yaml").symlink_to("absent")
    Path("folder/b.yaml").write_text(FLAVOR % "b", encoding="utf-8")
    line = problem_of(command("run", "folder"))
    assert line == "folder/a.yaml: it is a link to a file that is not there; check the name"


def test_a_pipe_in_a_directory_is_not_waited_for(command: Callable[..., Ran]) -> None:
    os.mkfifo("pipe.yaml")
    Path("b.yaml").write_text(FLAVOR % "b", encoding="utf-8")
    assert command("run", "-R", ".").code == ExitCode.OK


def test_links_that_lead_back_are_not_followed(command: Callable[..., Ran]) -> None:
    Path("a/b").mkdir(parents=True)
    Path("a/b/again").symlink_to("../..", target_is_directory=True)
    Path("a/b/f.yaml").write_text(FLAVOR % "f", encoding="utf-8")
    assert command("run", "-R", "-o", "yaml", ".").out.count("kind:") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_can_not_be_read_is_not_left_out(command: Callable[..., Ran]) -> None:
    Path("a/b").mkdir(parents=True)
    Path("a/f.yaml").write_text(FLAVOR % "f", encoding="utf-8")
    Path("a/b").chmod(0)
    try:
        assert problem_of(command("run", "-R", ".")) == "a/b: cannot be read: Permission denied"
    finally:
        Path("a/b").chmod(0o700)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "/dev/null/a"])
def test_a_name_that_no_file_has_is_a_problem(name: str) -> None:
    with pytest.raises(ManifestError, match=r"cannot be read|no such file"):
        read_manifests(name)
    with pytest.raises(ManifestError, match="cannot be read"):
        Configuration.read(name)


def test_names_that_an_api_server_makes_up_take_no_time(command: Callable[..., Ran]) -> None:
    one = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {generateName: f-}}\n---\n"
    Path("in.yaml").write_text(one * 5_000, encoding="utf-8")
    assert "name: f-05000\n" in command("run", "-o", "yaml", "in.yaml").out
