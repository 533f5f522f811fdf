"""Shells complete the command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main

pytest.importorskip("shtab")


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == ExitCode.OK
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "fish", "powershell", "tcsh", "zsh"])
def test_every_command_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    for command in ("run", "explain", "unblock", "what-if", "check", "simulate", "eta", "plan", "completion"):
        assert command in text


@pytest.mark.skipif(sys.platform == "win32", reason="there is no bash")
def test_bash_completes_commands_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kueuecore.bash"
    path.write_text(script("bash", capsys), encoding="utf-8")

    def completed(*words: str) -> list[str]:
        line = " ".join(f"'{word}'" for word in words)
        asks = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}"
        finds = 'fun=$(complete -p kueuecore | sed "s/.*-F \\([^ ]*\\).*/\\1/"); $fun; printf "%s\\n" "${COMPREPLY[@]}"'
        command = f"source {path}; {asks}; {finds}"
        ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
        return ran.stdout.split()

    assert completed("kueuecore", "expl") == ["explain"]
    assert "--trusted" in completed("kueuecore", "explain", "--tr")


def test_without_the_extra_the_remedy_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == ExitCode.BAD_INPUT
    assert "pip install 'kueuecore[completion]'" in capsys.readouterr().err
