"""`kueuecore run` and `check`: manifests, Configurations, bytes, options and streams."""

from __future__ import annotations

import copy
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import yaml

from kueuecore.cli import ExitCode, main
from tests.attack.case import Case, Wrong
from tests.attack.documents import CONFIGURATION, JOBS, KINDS, ROOT, examples
from tests.attack.values import TEXTS, damaged

__all__ = ["Said", "draw", "draw_check", "folder_of_its_own", "judge", "say", "scrambled"]

_FORMS = ("table", "wide", "json", "yaml")
_EXPECTED = {ExitCode.OK, ExitCode.PENDING, ExitCode.BAD_INPUT, ExitCode.UNSETTLED, ExitCode.UNDECIDED}
_PLACE = r"(<stdin>|[^ ].*?|--feature-gates)(:\d+)?(:\d+)?( \(document \d+\))?"
_QUESTION = (
    r"(no files are given, and no cluster is found: |there is no (workload |[A-Z]\w*/)|nothing (is asked|changes)|"
    r"a state has no|no object matches|.+ is not a field of|\".*?\" (is|has|does) no)"
)
_LINE = re.compile(rf"({_QUESTION}|warning: |note: |kueuecore: |usage: |  |kueuecore( \w+)?: error: |{_PLACE}: )")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Said:
    """What the command said."""

    code: int
    out: str
    err: str


class _Stream(io.TextIOWrapper):
    is_terminal = False

    def isatty(self) -> bool:
        return self.is_terminal


@contextmanager
def _streams(stdin: bytes, encoding: str, environment: Mapping[str, str], *, is_terminal: bool) -> Iterator[list[Any]]:
    saved, environ = (sys.stdin, sys.stdout, sys.stderr), dict(os.environ)
    # Without files a command reads a cluster, and here is none.
    os.environ["KUBECONFIG"] = os.devnull
    out, err = io.BytesIO(), io.BytesIO()
    stdout, stderr = _Stream(out, encoding=encoding), _Stream(err, encoding=encoding)
    stdout.is_terminal = is_terminal
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(stdin)), stdout, stderr
    os.environ.update(environment)
    try:
        yield [out, err]
    finally:
        sys.stdin, sys.stdout, sys.stderr = saved
        os.environ.clear()
        os.environ.update(environ)


def say(
    *arguments: str,
    stdin: bytes = b"",
    encoding: str = "utf-8",
    environment: Mapping[str, str] | None = None,
    is_terminal: bool = False,
) -> Said:
    """Run the command in this process."""
    with _streams(stdin, encoding, environment or {}, is_terminal=is_terminal) as (out, err):
        code = main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        return Said(int(code), out.getvalue().decode(encoding), err.getvalue().decode(encoding))


@contextmanager
def folder_of_its_own() -> Iterator[Path]:
    """An empty directory, in which the process stands meanwhile."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        yield Path(folder)


def judge(said: Said, form: str, size: int, *, is_terminal: bool = False) -> None:
    """Raise `Wrong` if the command says what it should not."""
    if said.code not in _EXPECTED or "Traceback" in said.err:
        raise Wrong(f"exit code {said.code}\n{said.err[-6000:]}")
    for line in said.err.split("\n"):
        if not line.isprintable() or (line and not _LINE.match(line)):
            raise Wrong(f"an odd line: {line[:300]!r}")
        if len(line) > 5_000 + size // 10:
            raise Wrong(f"a line of {len(line)} characters: {line[:300]!r}")
    if said.code == ExitCode.BAD_INPUT:
        # In CI, what is wrong is annotated, too.
        annotated = form == "github" and all(line.startswith("::error ") for line in said.out.splitlines())
        if (said.out and not annotated) or not said.err:
            raise Wrong(f"a refusal that says {said.err[:200]!r}, with the output {said.out[:200]!r}")
        return
    if form == "json":
        json.loads(said.out, parse_constant=_no_constant)
    elif form != "yaml":
        for line in said.out.split("\n"):
            if not (_COLOR.sub("", line) if is_terminal else line).isprintable():
                raise Wrong(f"an unprintable line: {line[:300]!r}")
    if len(said.out) > 500_000 + 100 * size:
        raise Wrong(f"{len(said.out)} characters of output for {size} bytes")


def _no_constant(name: str) -> None:
    raise Wrong(f"{name} in JSON")


def draw(rng: Random) -> Case:
    """A run with wrong manifests, mostly."""
    kinds: list[tuple[float, Callable[[Random], Case]]] = [
        (0.55, _manifests), (0.80, _bytes), (0.90, _configuration), (0.985, _options), (1, _process),
    ]  # fmt: skip
    what = rng.random()
    return next(kind for share, kind in kinds if what <= share)(rng)


def _manifests(rng: Random) -> Case:
    objects, reported = _world(rng)
    return _run(rng, *_written(rng, objects), reported)


def draw_check(rng: Random) -> Case:
    """`kueuecore check` in every form: the exit code is the same."""
    objects, reported = _world(rng)
    name, data = _written(rng, objects)
    options = [text for text in ("--trusted", "-q", "--fail-on=note") if rng.random() < 0.3]

    def act() -> None:
        with folder_of_its_own():
            Path(name).write_bytes(data)
            codes = {}
            for form in ("text", "json", "sarif", "github"):
                said = say("check", *options, "--write-worlds", "worlds", "-o", form, name)
                judge(said, "json" if form in ("json", "sarif") else form, len(data))
                codes[form] = said.code
            if len(set(codes.values())) > 1:
                raise Wrong(f"the exit code depends on the form: {codes}")
            for world in sorted(Path().glob("worlds/*.yaml")):
                if say("run", *options[:1] if "--trusted" in options else [], str(world)).code == ExitCode.BAD_INPUT:
                    raise Wrong(f"its own world is refused: {world.read_text()[:2000]}")

    return Case(f"check {' '.join(options)} {name}: {reported}", act, 4 * len(data), seconds=20)


def _bytes(rng: Random) -> Case:
    objects, _ = _world(rng)
    name, data = _written(rng, objects)
    return _run(rng, name, scrambled(rng, data), "bytes")


def _world(rng: Random) -> tuple[list[Any], str]:
    """The objects of an example, and some others, of which a few are damaged."""
    found = examples()
    folder = rng.choice(sorted({name.partition("/")[0] for name in found} - {"multikueue-regions"}))
    objects = [
        example
        for name in found
        if name.startswith(f"{folder}/")
        for example in found[name]
        if example.get("kind") != "Scenario"
    ]
    everything = (*KINDS, *JOBS)
    objects += rng.sample(everything, rng.choice([0, 1, 3]))
    rng.shuffle(objects)
    changed: list[Any] = copy.deepcopy(objects)
    reported = []
    for index in rng.sample(range(len(changed)), min(len(changed), rng.choice([1, 1, 2, 3]))):
        if rng.random() < 0.2:
            changed[index]["status"] = copy.deepcopy(rng.choice(everything).get("status", {}))
        damage = damaged(rng, changed[index], parts=everything)
        reported.append(f"{changed[index].get('kind')}{damage.what}")
        changed[index] = damage.value
    return changed, " | ".join(reported)


def _written(rng: Random, objects: list[Any]) -> tuple[str, bytes]:
    """The name and the bytes of a file with these objects."""
    form = rng.random()
    if form < 0.35:
        return "in.json", b"\n".join(json.dumps(object_).encode() for object_ in objects)
    if form < 0.5:
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        return "in.json", json.dumps(items, indent=1, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    try:
        text = yaml.safe_dump_all(objects, allow_unicode=rng.random() < 0.5, default_flow_style=rng.random() < 0.2)
    except (yaml.YAMLError, RecursionError):
        return "in.json", json.dumps(objects).encode()
    return "in.yaml", text.encode("utf-8", "surrogatepass")


_PIECES = [
    b"\xff", b"\0", b"\t", b"\n---\n", b"&a ", b"*a ", b"<<: ", b"!!x ", b"{{ x }}", b"NaN", b"1e999", b"\\ud800",
    b'"', b"\r", b"\xc2\x85", b"\xe2\x80\xa8", b"\x1b[2J", b"[" * 300, b"- " * 300, b"? ", b": ", b"%YAML 9\n",
    b"\xef\xbb\xbf", b"...\n", b"|\n", b">-\n", b"&x [*x]", b"[" * 100_000, b"a: " * 1_000, b"{" * 5_000,
    b"#" * 100_000,
]  # fmt: skip


def scrambled(rng: Random, data: bytes) -> bytes:
    """Nearly the same bytes."""
    changed = bytearray(data[: rng.choice([10**9, 10**9, 300, 3000])])
    for _ in range(rng.choice([1, 1, 3, 10])):
        if not changed:
            break
        at, what = rng.randrange(len(changed)), rng.random()
        if what < 0.3:
            changed[at] = rng.randrange(256)
        elif what < 0.5:
            changed[at:at] = rng.choice(_PIECES)
        elif what < 0.7:
            del changed[at : at + rng.choice([1, 3, 30])]
        else:
            changed[at:at] = changed[at : at + rng.choice([5, 50, 500])] * rng.choice([1, 1, 50])
    return bytes(changed)


def _drawn_options(rng: Random) -> list[str]:
    options = [name for name in ("--trusted", "--events", "-q", "--fail-on-pending") if rng.random() < 0.25]
    if rng.random() < 0.3:
        options += ["--now", rng.choice(["2026-01-01T00:00:00Z", "2262-04-11T23:47:16Z", "1970-01-01T00:00:00Z"])]
    if rng.random() < 0.15:
        gates = ["PartialAdmission=false", "ElasticJobsViaWorkloadSlices=true", "AllAlpha=true", "AllBeta=false", ""]
        options += ["--feature-gates", rng.choice(gates)]
    return options


def _run(rng: Random, name: str, data: bytes, reported: str) -> Case:
    """The same data in several forms of output: the exit code is the same, and YAML can be read again."""
    options, form = _drawn_options(rng), rng.choice(["table", "wide"])
    is_terminal, encoding = rng.random() < 0.3, rng.choice(["utf-8", "utf-8", "ascii", "latin-1"])
    environment = {"COLUMNS": rng.choice(["", "0", "abc", "-5", "1", "20", "80", "100000", "9" * 30])}

    def act() -> None:
        with folder_of_its_own():
            Path(name).write_bytes(data)
            codes = {}
            for each in ("json", form, "yaml"):
                arguments = ["run", *options, "-o", each, name]
                said = say(*arguments, encoding=encoding, environment=environment, is_terminal=is_terminal)
                judge(said, each, len(data), is_terminal=is_terminal)
                codes[each] = said.code
            if len(set(codes.values())) > 1:
                raise Wrong(f"the exit code depends on the form: {codes}")
            if said.code != ExitCode.BAD_INPUT:
                Path("again.yaml").write_text(said.out, encoding=encoding)
                again = say("run", *options, "-o", "yaml", "again.yaml", encoding=encoding)
                if again.code == ExitCode.BAD_INPUT:
                    raise Wrong(f"its own YAML is refused: {again.err[:2000]}")

    return Case(f"run {' '.join(options)} {name}: {reported}", act, 4 * len(data), seconds=8)


def _configuration(rng: Random) -> Case:
    given = {key: entry for key, entry in CONFIGURATION.items() if key in ("apiVersion", "kind") or rng.random() < 0.5}
    damage = damaged(rng, given, parts=(CONFIGURATION,))
    data = json.dumps(damage.value).encode()
    if rng.random() < 0.2:
        data = scrambled(rng, data)
    files = [str(path) for path in sorted((ROOT / "two-teams").glob("*.yaml"))]
    form = rng.choice(_FORMS)

    def act() -> None:
        with folder_of_its_own() as folder:
            (folder / "config.json").write_bytes(data)
            judge(say("run", "--config", "config.json", "-o", form, *files), form, len(data) + 10_000)

    return Case(f"run --config: {damage.what}", act, len(data), seconds=4)


_NAMES = [
    "in.yaml", "d", ".", "-", "", "absent", "/dev/null", "/proc/self/mem", "/proc/self/environ", "in.yaml/x",
    "x" * 300, "\udcff", "a\nb", "\x1b[2J", "~", "*", "broken", "loop", "config.yaml", sys.executable, "/etc/passwd",
]  # fmt: skip
_WORDS = [
    "-R", "-o", "--output", "json", "yaml", "table", "wide", "--now", "--feature-gates", "--config", "--trusted",
    "--events", "--color", "always", "never", "-q", "--seed", "--fail-on-pending", "in.yaml",
    "PartialAdmission=false", "config.yaml", "--", "-h", "--help", "--version", "--allow-code",
]  # fmt: skip


def _options(rng: Random) -> Case:
    arguments = [rng.choice(["run", "run", "check", "simulate", "gates", "x"])] if rng.random() < 0.9 else []
    for _ in range(rng.randrange(6)):
        pool = _WORDS if rng.random() < 0.6 else [*TEXTS, *_NAMES]
        arguments.append(rng.choice(pool))
    arguments = [argument for argument in arguments if "\0" not in argument and argument.strip()]
    stdin = rng.choice([b"", b"a", b"\xff", b"{}", b"a: 1"])

    def act() -> None:
        with folder_of_its_own():
            Path("d").mkdir()
            Path("in.yaml").write_text(
                "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a}}"
            )
            Path("config.yaml").write_text("{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}")
            Path("broken").symlink_to("nowhere")
            Path("loop").symlink_to("loop")
            judge(say(*arguments, stdin=stdin), "any", 1_000_000)

    return Case(f"{arguments} < {stdin!r}", act, 1_000, seconds=8)


def _process(rng: Random) -> Case:
    """A process of its own, with streams that are closed, full or without a reader."""
    command = rng.choice(
        [
            "run in.yaml",
            "run -",
            "run -o json in.yaml",
            "run -o yaml in.yaml",
            "gates",
            "--help",
            "--version",
            "run absent",
            "",
        ]
    )
    where = " ".join(
        rng.choice(pool)
        for pool in (
            ["", "<&-", "</dev/null", "<in.yaml"],
            ["", ">&-", ">/dev/full", "| head -c 1 >/dev/null", ">/dev/null", "1<in.yaml"],
            ["", "2>&-", "2>/dev/full", "2<in.yaml"],
        )
    )
    more = rng.choice(
        [{}, {"LC_ALL": "C", "PYTHONUTF8": "0"}, {"COLUMNS": "abc"}, {"PYTHONUNBUFFERED": "1"}, {"PYTHONOPTIMIZE": "1"}]
    )
    line = f'set -o pipefail; "{sys.executable}" -m kueuecore {command} {where}; exit $?'

    def act() -> None:
        with folder_of_its_own() as folder:
            files = [ROOT / "two-flavors" / "queues.yaml", ROOT / "two-flavors" / "jobs.yaml"]
            (folder / "in.yaml").write_text("\n---\n".join(file.read_text() for file in files))
            ran = subprocess.run(
                ["bash", "-c", line],
                cwd=folder,
                env={**os.environ, **more},
                capture_output=True,
                timeout=120,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        err = ran.stderr.decode(errors="replace")
        expected = _EXPECTED | {ExitCode.UNWRITABLE, ExitCode.BROKEN_PIPE}
        if ran.returncode not in expected or any(
            name in err for name in ("Traceback", "this is a bug", "ignored", "Errno")
        ):
            raise Wrong(f"exit code {ran.returncode}\n{err[-3000:]}")
        if "-o json" in command and ran.stdout:
            json.loads(ran.stdout)

    return Case(f"{more} {line}", act, 1_000, seconds=20)
