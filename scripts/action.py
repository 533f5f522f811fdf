"""The steps of the GitHub action in action.yml.

    action.py plan | install | base | check | test | diff | upgrade | prove

Reads the inputs of the action from the environment variable INPUTS, a JSON object of texts. Needs the standard library
alone, and Git for `base`. `plan` writes which commands to run, and `base` what to compare with, to $GITHUB_OUTPUT; the
others run `kueuecore` with annotations, and a summary in $GITHUB_STEP_SUMMARY, and exit with its exit code.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

COMMANDS = ("check", "test", "diff", "upgrade", "prove")
_BAD_INPUT = 2
_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.!+-]*")
_PERCENT = re.compile(r"[0-9]{1,3}(\.[0-9]+)?")


class InputError(Exception):
    """An input of the action is wrong.

    Args:
        name: The input.
        message: What is wrong, and what would be right.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")


class Inputs:
    """The inputs of the action.

    Args:
        texts: They as they are given.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def check(self) -> None:
        """Raises InputError: One of them has a character that no program can be given."""
        for name, text in self._texts.items():
            if "\0" in text:
                raise InputError(name, "it has a NUL in it; remove it")

    def text(self, name: str) -> str:
        return self._texts.get(name, "").strip()

    def lines(self, name: str) -> list[str]:
        """The lines of an input, without blanks around them; names may have blanks in them."""
        return [line for part in self._texts.get(name, "").splitlines() if (line := part.strip())]

    def paths(self, *names: str) -> list[str]:
        """Files and directories that no program takes for options."""
        return [f"./{path}" if path.startswith("-") else path for name in names for path in self.lines(name)]

    def is_on(self, name: str) -> bool:
        """Raises InputError: It is neither true nor false."""
        value = self.text(name) or "false"
        if value not in ("true", "false"):
            raise InputError(name, f"{value!r} is neither true nor false")
        return value == "true"

    def commands(self) -> list[str]:
        """Raises InputError: One of them does not exist, or there is none."""
        found = [name for name in re.split(r"[\s,]+", self.text("commands")) if name]
        unknown = [name for name in found if name not in COMMANDS]
        if unknown or not found:
            what = f"there is no command {unknown[0]!r}" if unknown else "it is empty"
            raise InputError("commands", f"{what}; name any of {', '.join(COMMANDS)}")
        return found


def main(arguments: Sequence[str]) -> int:
    step = _STEPS.get(arguments[0] if len(arguments) == 1 else "")
    texts = _texts(os.environ.get("INPUTS", ""))
    if step is None or texts is None:
        print(f"usage: action.py {' | '.join(_STEPS)}, with a JSON object of texts in INPUTS", file=sys.stderr)
        return _BAD_INPUT
    inputs = Inputs(texts)
    try:
        inputs.check()
        return step(inputs)
    except InputError as error:
        print(f"::error title=kueuecore::{_escaped(f'input {error}')}")
        return _BAD_INPUT


def _texts(text: str) -> dict[str, str] | None:
    """A JSON object of texts; None: it is something else."""
    try:
        found: object = json.loads(text)
    except ValueError:
        return None
    is_right = isinstance(found, dict) and all(isinstance(value, str) for value in found.values())
    return found if isinstance(found, dict) and is_right else None


def _plan(inputs: Inputs) -> int:
    """Check the inputs, and say which commands to run."""
    commands = inputs.commands()
    for name in ("recursive", "coverage", "fail-on-difference"):
        inputs.is_on(name)
    if inputs.text("fail-on") not in ("error", "warning", "note"):
        raise InputError("fail-on", f"{inputs.text('fail-on')!r} is none of error, warning and note")
    least = inputs.text("fail-under") or "0"
    if not _PERCENT.fullmatch(least) or float(least) > 100:
        raise InputError("fail-under", f"{inputs.text('fail-under')!r} is no percentage, such as 90")
    for name, users in {"paths": {*COMMANDS} - {"test"}, "tests": {"test"}}.items():
        if users & {*commands} and not inputs.lines(name):
            raise InputError(name, "it is empty; name files or directories, one per line")
    _requirement(inputs)
    for command in COMMANDS:
        _set_output(command, str(command in commands).lower())
    return 0


def _install(inputs: Inputs) -> int:
    requirement = _requirement(inputs)
    if not requirement:
        return 0
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", requirement]
    return _run(pip)


def _requirement(inputs: Inputs) -> str:
    """What pip installs; empty: nothing.

    Raises:
        InputError: It is no version.
    """
    version = inputs.text("version") or _own_version()
    if version in ("none", "latest"):
        return "" if version == "none" else "kueuecore"
    if not _VERSION.fullmatch(version):
        raise InputError("version", f"{version!r} is no version, such as 0.1.0; latest; or none")
    return f"kueuecore=={version}"


def _own_version() -> str:
    """The version of kueuecore that this action was released with."""
    manifest = tomllib.loads((Path(__file__).parents[1] / "Cargo.toml").read_text("utf-8"))
    return str(manifest["workspace"]["package"]["version"])


def _base(inputs: Inputs) -> int:
    """Find the commit to compare with, fetch it if need be, and write its hash; an empty one: there is none."""
    asked = inputs.text("base")
    # The commit that GitHub makes to test a pull request: its first parent is what the branch would be merged into.
    parents = [] if asked else _parents()
    wanted = asked or (parents[0] if len(parents) > 1 else os.environ.get("GITHUB_BASE_REF", ""))
    if not wanted:
        print("::notice title=kueuecore::there is nothing to compare with: this is no pull request, and base is empty")
        _set_output("base", "")
        return 0
    found = _commit(wanted) if _HASH.fullmatch(wanted) else ""
    if not found and _git("fetch", "--no-tags", "--depth=1", "--", "origin", wanted) is not None:
        found = _commit("FETCH_HEAD")
    found = found or _commit(f"refs/remotes/origin/{wanted}") or _commit(wanted)
    if not found:
        remedy = "check out with fetch-depth: 2, or name a branch of this repository"
        raise InputError("base", f"there is no commit {wanted!r}, and it cannot be fetched; {remedy}")
    _set_output("base", found)
    return 0


def _parents() -> list[str]:
    """The parents of the commit that is checked out, if it is that of a pull request; a shallow clone may lack them."""
    if not re.fullmatch(r"refs/pull/\d+/merge", os.environ.get("GITHUB_REF", "")):
        return []
    head = _git("cat-file", "commit", "HEAD") or ""
    return re.findall(r"^parent ([0-9a-f]+)$", head.partition("\n\n")[0], re.MULTILINE)


def _commit(name: str) -> str:
    return _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}") or ""


def _git(*arguments: str) -> str | None:
    """What Git prints; None: it failed."""
    ran = subprocess.run(["git", *arguments], capture_output=True, text=True, encoding="utf-8", errors="replace")
    return ran.stdout.strip() if ran.returncode == 0 else None


def _check(inputs: Inputs) -> int:
    return _kueuecore("check", *_common(inputs), "--fail-on", inputs.text("fail-on"), inputs=inputs)


def _test(inputs: Inputs) -> int:
    least = inputs.text("fail-under")
    coverage = ["--coverage"] if inputs.is_on("coverage") or least else []
    return _kueuecore(
        "test", *inputs.paths("tests"), *coverage, *(["--fail-under", least] if least else []), inputs=inputs
    )


def _diff(inputs: Inputs) -> int:
    work = [f"--work={path}" for path in inputs.paths("work")]
    against = f"--against={os.environ['BASE']}"
    options = [*_recursive(inputs), *_config(inputs), *work, against, *_on_difference(inputs)]
    return _kueuecore("diff", *inputs.paths("paths"), *options, inputs=inputs)


def _upgrade(inputs: Inputs) -> int:
    releases = {"--from": inputs.text("kueue-version"), "--to": inputs.text("to")}
    between = [f"{option}={release}" for option, release in releases.items() if release]
    return _kueuecore("upgrade", *_common(inputs), *between, *_on_difference(inputs), inputs=inputs)


def _prove(inputs: Inputs) -> int:
    save = inputs.text("save")
    budget = inputs.text("budget")
    options = [*([f"--budget={budget}"] if budget else []), *([f"--save={save}"] if save else [])]
    return _kueuecore("prove", *_common(inputs), *options, inputs=inputs)


def _common(inputs: Inputs) -> list[str]:
    return [*inputs.paths("paths", "work"), *_recursive(inputs), *_config(inputs)]


def _recursive(inputs: Inputs) -> list[str]:
    return ["-R"] if inputs.is_on("recursive") else []


def _config(inputs: Inputs) -> Iterator[str]:
    if config := inputs.text("config"):
        yield f"--config={config}"


def _on_difference(inputs: Inputs) -> list[str]:
    return ["--fail-on-difference"] if inputs.is_on("fail-on-difference") else []


def _kueuecore(command: str, *arguments: str, inputs: Inputs) -> int:
    """Run a command of kueuecore with annotations and a summary; returns its exit code."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY", "")
    options = ["-o", "github", *([f"--summary={summary}"] if summary else [])]
    release = inputs.text("kueue-version")
    return _run(["kueuecore", command, *arguments, *options], {"KUEUECORE_KUEUE": release} if release else {})


def _run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> int:
    sys.stdout.flush()
    environment = {**os.environ, **(variables or {}), "PYTHONUTF8": "1"}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace"
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            print(_harmless(line.rstrip("\n")), file=sys.stderr, flush=True)
    return process.returncode


def _harmless(line: str) -> str:
    """A line that GitHub takes for no command: it may begin with the name of a file."""
    line = line.replace("##[", "## [")
    return f"kueuecore: {line}" if line.lstrip().startswith("::") else line


def _set_output(name: str, value: str) -> None:
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"{name}={value}\n")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_STEPS: dict[str, Callable[[Inputs], int]] = {
    "plan": _plan,
    "install": _install,
    "base": _base,
    "check": _check,
    "test": _test,
    "diff": _diff,
    "upgrade": _upgrade,
    "prove": _prove,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
