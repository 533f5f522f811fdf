"""Install each extra of pyproject.toml alone, from a wheel into an empty environment, and use it once as users do.

    python -m scripts.extras WHEEL [EXTRA ...]

It needs uv on the path. What an extra brings is the newest that there is, as for a user. Two use a cluster: the API
server for tests, in an environment of its own.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from scripts.extra_uses import USES, Environment, TrialError

ROOT = Path(__file__).parents[1]


def declared() -> set[str]:
    """Return the extras of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {*project["optional-dependencies"]}


def installed(folder: Path, *requirements: str) -> Environment:
    """Return a new environment with requirements, and a folder to work in that has the examples and nothing else.

    Raises:
        TrialError: They cannot be installed, or do not fit each other.
    """
    environment = Environment(folder)
    environment.work.mkdir(parents=True)
    (environment.work / "examples").symlink_to(ROOT / "examples")
    environment.run("uv", "venv", "--quiet", "--python", sys.executable, str(folder / "venv"))
    uv = ("uv", "pip", "--quiet", "--python", str(environment.python))
    environment.run(uv[0], uv[1], "install", *uv[2:], *requirements)
    environment.run(uv[0], uv[1], "check", *uv[2:])
    return environment


@contextmanager
def cluster(folder: Path, wheel: Path) -> Iterator[str]:
    """Serve the README's cluster by the API server for tests, and yield its URL."""
    server = installed(folder, str(wheel), str(ROOT / "python/kueuecore_apiserver"))
    objects = ROOT / "tests/api/readme_cluster.yaml"
    kubeconfig = server.work / "kubeconfig"
    arguments = ["-m", "kueuecore_apiserver", "--kueue", "--load", str(objects), "--kubeconfig", str(kubeconfig)]
    with server.started(str(server.python), *arguments) as process:
        while not kubeconfig.exists() or not kubeconfig.read_text("utf-8"):
            if process.poll() is not None:
                raise TrialError(f"the API server for tests ended with {process.returncode}")
            time.sleep(0.05)
        yield kubeconfig.read_text("utf-8").partition('server: "')[2].partition('"')[0]


def problem(extra: str, wheel: Path, folder: Path, server: str) -> str:
    """Install and use one extra; return what is wrong, or nothing."""
    try:
        environment = installed(folder / extra, f"kueuecore[{extra}] @ {wheel.as_uri()}")
        environment.server = server
        USES[extra](environment)
    except TrialError as failure:
        return str(failure)
    finally:
        shutil.rmtree(folder / extra, ignore_errors=True)
    return ""


def main(arguments: list[str]) -> int:
    """Check extras; returns 0 if all can be used."""
    parser = argparse.ArgumentParser(prog="python -m scripts.extras", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("extras", nargs="*", help="by default all")
    options = parser.parse_args(arguments)
    unknown = {*options.extras} - USES.keys() or declared() ^ USES.keys()
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: not both in pyproject.toml and in USES of scripts/extra_uses.py")
    chosen = options.extras or sorted(USES)
    n_failed = 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        folder, wheel = Path(name), options.wheel.resolve()
        with cluster(folder / "server", wheel) as url:
            for extra, wrong in zip(chosen, pool.map(lambda it: problem(it, wheel, folder, url), chosen), strict=True):
                print(f"{extra:12} {'FAILED' if wrong else 'ok'}", flush=True)
                if wrong:
                    print(wrong, flush=True)
                n_failed += bool(wrong)
    print(f"extras: {len(chosen) - n_failed} ok, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (TrialError, subprocess.SubprocessError) as error:
        sys.exit(str(error))
