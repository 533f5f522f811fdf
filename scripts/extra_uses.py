"""One real use of each extra, in an environment that has nothing else: `USES`, which scripts/extras.py plays."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import socket
import ssl
import subprocess
import termios
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["USES", "Environment", "TrialError"]

_SCENARIO = "examples/scenario/scenario.yaml"
_SECONDS = 300.0
_TLS = ssl.create_default_context()
_TLS.check_hostname = False
_TLS.verify_mode = ssl.CERT_NONE


class TrialError(Exception):
    """A command failed, or did not do what it should."""


@dataclass(slots=True)
class Environment:
    """A virtual environment, with a folder in which its commands run."""

    folder: Path
    # The URL of a cluster.
    server: str = ""

    @property
    def python(self) -> Path:
        return self.folder / "venv/bin/python"

    @property
    def command(self) -> str:
        return str(self.folder / "venv/bin/kueuecore")

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def variables(self) -> dict[str, str]:
        """The environment variables of its commands: none leads to another package or cluster."""
        hidden = ("PYTHONPATH", "PYTHONHOME", "KUBECONFIG", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        return kept | {"HOME": str(self.work), "UV_CACHE_DIR": _uv_cache()}

    def run(self, *command: str, expect: str = "") -> str:
        """Run a command to its end, and return what it printed.

        Raises:
            TrialError: It did not return 0, or printed nothing that matches `expect`.
        """
        try:
            ran = subprocess.run(
                command,
                cwd=self.work,
                env=self.variables(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise TrialError(f"{' '.join(command)}: no end after {_SECONDS:.0f} s") from None
        if ran.returncode != 0:
            raise TrialError(f"{' '.join(command)}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")
        self.need(re.search(expect, ran.stdout) is not None, f"{command}: nothing like {expect} in\n{ran.stdout}")
        return ran.stdout

    def program(self, text: str, expect: str) -> None:
        """Run a Python program, isolated from this folder and from the user's packages."""
        (self.work / "program.py").write_text(text, "utf-8")
        self.run(str(self.python), "-I", "program.py", expect=expect)

    @contextmanager
    def started(self, *command: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command in the background, with its output and errors in one pipe, until the block ends."""
        process = subprocess.Popen(
            command, cwd=self.work, env=self.variables(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=60)

    def need(self, is_met: bool, otherwise: str) -> None:
        """Fail unless something holds."""
        if not is_met:
            raise TrialError(otherwise)


def _uv_cache() -> str:
    """The cache of the user, whose home the commands do not see."""
    given = os.environ.get("UV_CACHE_DIR")
    return given or str(Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "uv")


def _get(url: str) -> tuple[int, str]:
    """Ask an own server, whatever its certificate; 0 as long as nobody listens."""
    try:
        with urllib.request.urlopen(url, timeout=10, context=_TLS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def _arrow(at: Environment) -> None:
    at.run(at.command, "simulate", _SCENARIO, "--results", "out", "--results-format", "parquet")
    table = (at.work / "out/jobs.parquet").read_bytes()
    at.need(table[:4] == table[-4:] == b"PAR1", "out/jobs.parquet is no Parquet file")


def _cel(at: Environment) -> None:
    rule = 'queues["team-a"].borrowed["default-flavor/cpu"] <= 100.0'
    at.run(at.command, "prove", "examples/two-teams", "--always", rule, "--budget", "3s", expect="no counterexample")


def _completion(at: Environment) -> None:
    at.run(at.command, "completion", "bash", expect="complete .*kueuecore")


def _dask(at: Environment) -> None:
    at.program(
        f"""
from dask.distributed import Client
from kueuecore.scenarios import parse_target, read_scenario
from kueuecore.studies import Axis, grid_points, sweep

if __name__ == "__main__":
    axis = Axis(parse_target("work[0].count"), (10, 20))
    with Client(n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        runs = client.get_executor()
        found = sweep(lambda edits: read_scenario({_SCENARIO!r}, edits=edits), grid_points([axis]), executor=runs)
    print([found.estimate(point, "evictions").median for point, _ in enumerate(found.points)])
""",
        expect=r"^\[\d+\.0, \d+\.0\]$",
    )


def _kubernetes(at: Environment) -> None:
    at.run(at.command, "explain", "team-a/train", "--server", at.server, expect="waits in ClusterQueue team-a")
    _serve(at, secure="false")


def _mcp(at: Environment) -> None:
    at.program(
        f"""
import asyncio
from mcp import Client, StdioServerParameters, stdio_client

async def main():
    server = StdioServerParameters(command={at.command!r}, args=["mcp", "examples/two-teams"])
    async with Client(stdio_client(server)) as client:
        answer = await client.call_tool("explain", {{"workload": "team-a/job-release-build-5ad41"}})
        print(answer.is_error, answer.content[0].text)

asyncio.run(main())
""",
        expect="^False .*release-build",
    )


def _multikueue(at: Environment) -> None:
    at.program(
        """
from dataclasses import replace
from kueuecore.multikueue import AllAtOnce
from kueuecore.multikueue.policies import Overridden
from kueuecore.scenarios import read_scenario, run_scenario

image = {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.east/train"}
scenario = read_scenario("examples/multikueue/scenario.yaml")
fleet = replace(scenario.fleet, dispatcher=Overridden(AllAtOnce(), {"east": [image]}))
outcome = run_scenario(replace(scenario, fleet=fleet))
print(sum(job.finished is not None for job in outcome.jobs), {job.cluster for job in outcome.jobs})
""",
        expect="^12 .*east",
    )


def _progress(at: Environment) -> None:
    # A bar is for a terminal.
    outer, inner = pty.openpty()
    termios.tcsetwinsize(inner, (24, 100))
    with subprocess.Popen(
        [at.command, "simulate", _SCENARIO], cwd=at.work, env=at.variables(), stdout=subprocess.DEVNULL, stderr=inner
    ) as process:
        os.close(inner)
        seen = b""
        # The end of a terminal is an error.
        with contextlib.suppress(OSError):
            while part := os.read(outer, 4096):
                seen += part
    os.close(outer)
    at.need(process.returncode == 0 and b"job" in seen and b"%|" in seen, f"no bar: {seen.decode()}")


def _pytest(at: Environment) -> None:
    at.run(str(at.python), "-m", "pytest", "examples/policy-tests", "-p", "no:cacheprovider", expect=r"\b10 passed")


def _report(at: Environment) -> None:
    at.run(at.command, "simulate", _SCENARIO, "--report", "out.html")
    at.need("<svg" in (at.work / "out.html").read_text("utf-8"), "out.html has no picture")


def _serve_extra(at: Environment) -> None:
    _serve(at, secure="true")


def _serve(at: Environment, *, secure: str) -> None:
    """Follow the cluster beside its Kueue, until the pages of health and metrics answer."""
    health, metrics = f"127.0.0.1:{_free_port()}", f"127.0.0.1:{_free_port()}"
    ports = ("--metrics-address", metrics, "--health-address", health, "--metrics-secure", secure)
    with at.started(at.command, "serve", "--server", at.server, "--dry-run", *ports) as run:
        end = time.monotonic() + _SECONDS
        while _get(f"http://{health}/readyz")[0] != 200:
            if run.poll() is not None or time.monotonic() > end:
                run.terminate()
                raise TrialError(f"kueuecore serve is not ready in time, or ended:\n{run.communicate()[0]}")
            time.sleep(0.1)
        if secure == "true":
            # Nobody may read without a token.
            status, page = _get(f"https://{metrics}/metrics")
            at.need(status == 401, f"metrics: {status} {page[:200]}")
        else:
            status, page = _get(f"http://{metrics}/metrics")
            at.need("kueuecore_build_info" in page, f"metrics: {status} {page[:200]}")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def _testing(at: Environment) -> None:
    at.program(
        """
from hypothesis import given, settings
from kueuecore.testing import Invariants, Play, histories, shown

@settings(max_examples=20, deadline=None, database=None)
@given(histories())
def check(history):
    global n_moves
    with shown(history):
        n_moves += sum(1 for _ in Play.of(history, watchers=[Invariants(history)]).run(history.moves))

n_moves = 0
check()
print("played", n_moves > 20)
""",
        expect="^played True",
    )


def _ui(at: Environment) -> None:
    with at.started(at.command, "ui", "examples/two-teams") as run:
        assert run.stdout is not None
        said = ""
        while (address := re.search(r"http://127\.0\.0\.1:\S+", said)) is None:
            line = run.stdout.readline()
            at.need(bool(line), f"kueuecore ui ended:\n{said}")
            said += line
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        # The address with the token leads to the page.
        opener.open(address[0], timeout=30).close()
        with opener.open(address[0].partition("?")[0], timeout=30) as answer:
            page = answer.read().decode()
    at.need("team-a" in page and "</html>" in page, f"no page of team-a:\n{page[:300]}")


USES: dict[str, Callable[[Environment], None]] = {
    "arrow": _arrow,
    "cel": _cel,
    "completion": _completion,
    "dask": _dask,
    "kubernetes": _kubernetes,
    "mcp": _mcp,
    "multikueue": _multikueue,
    "progress": _progress,
    "pytest": _pytest,
    "report": _report,
    "serve": _serve_extra,
    "testing": _testing,
    "ui": _ui,
}
