"""Build what a release publishes into dist/, and check it as users meet it: `make dist`.

    python -m scripts.dist [--targets T ...] [--pythons PATH ...] [--profile release] [--no-checks]

One wheel for the stable ABI for each target, cross-compiled with zig; the source distribution; the wheel of the API
server for tests. Then twine, abi3audit, bills of materials, a build of the source, `check_wheel.sh` under each Python,
and each extra alone.

Exit codes: 0 if everything was built and passed; 75 if all that was built passed, but a target was left out because its
standard library cannot be had here; 1 if something failed.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from scripts.sboms import write_sboms

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
LEFT_OUT = 75
# The oldest C library that Rust supports, of 2012: zig links against that of any age.
_TAG = "manylinux_2_17"


@dataclass(slots=True)
class Report:
    """What was done, with its time; printed at the end."""

    rows: list[tuple[str, str, float]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def step(self, name: str, work: Callable[[], object]) -> bool:
        """Do one thing; returns whether it worked."""
        print(f"\n#### {name}\n", flush=True)
        start, verdict = time.monotonic(), "ok"
        try:
            work()
        except (subprocess.SubprocessError, OSError, ValueError) as error:
            print(error, file=sys.stderr, flush=True)
            verdict = "FAILED"
        self.rows.append((name, verdict, time.monotonic() - start))
        return verdict == "ok"

    def leave_out(self, target: str) -> None:
        """Note a target that cannot be built here."""
        self.rows.append((f"wheel for {target}", "left out", 0.0))
        self.missing.append(target)

    def exit_code(self) -> int:
        """Print the table, sizes, and what is missing with its remedy."""
        print("\n#### summary\n")
        for name, verdict, seconds in self.rows:
            print(f"{name:44} {verdict:8} {seconds:5.0f} s")
        for path in sorted(DIST.iterdir()) if DIST.is_dir() else []:
            print(f"{path.stat().st_size / 1e6:8.2f} MB  {path.name}")
        for target in self.missing:
            print(f"left out: the wheel for {target}, whose Rust library is not here: rustup target add {target}")
        if any(verdict == "FAILED" for _, verdict, _ in self.rows):
            return 1
        return LEFT_OUT if self.missing else 0


def run(*command: str | Path, **variables: str) -> None:
    """Run a command in the checkout, and show it first.

    Raises:
        CalledProcessError: It failed.
    """
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], cwd=ROOT, env={**os.environ, **variables}, check=True)


def rustc_for(target: str) -> dict[str, str] | None:
    """Return the environment variables with which cargo can build for a target; None: it cannot be had here."""
    asked = ["rustc", "--print", "target-libdir", "--target", target]
    libraries = subprocess.run(asked, cwd=ROOT, check=False, capture_output=True, text=True).stdout.strip()
    if libraries and any(Path(libraries).glob("libstd-*.rlib")):
        return {}
    if target != "aarch64-unknown-linux-gnu":
        return None
    debian = ["sh", "scripts/debian_rust.sh", "target/debian-rust"]
    found = subprocess.run(debian, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    return {"RUSTC": found.stdout.strip()} if found.returncode == 0 else None


def build_wheel(target: str, profile: str, variables: Mapping[str, str]) -> None:
    """Build the wheel for a target, for any Linux with the C library of the tag or a newer one."""
    maturin = ("maturin", "build", "--quiet", "--locked", "--profile", profile, "--zig", "--target", target)
    run(*maturin, "--compatibility", _TAG, "--out", DIST, **variables)


def build_server() -> None:
    """Build the wheel of the API server for tests."""
    run("uv", "build", "--quiet", "--wheel", "--out-dir", DIST, "python/kueuecore_apiserver")
    # Which would keep the others out of git: there is one for all of dist/.
    (DIST / ".gitignore").unlink(missing_ok=True)


def check_files() -> None:
    """Look at the files as PyPI does, and in the wheels for what the stable ABI lacks."""
    run("twine", "check", "--strict", *sorted(DIST.iterdir()))
    run("abi3audit", "--strict", "--verbose", *sorted(DIST.glob("kueuecore-*.whl")))


def check_source() -> None:
    """Build the source distribution as pip does, away from this checkout, and run the README's examples with that."""
    (source,) = DIST.glob("kueuecore-*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        # Link-time optimisation would take minutes and show nothing. Its lock file names crates that it lacks.
        run(
            *("uv", "build", "--quiet", "--wheel", "--out-dir", folder, source),
            MATURIN_PEP517_ARGS="--profile develop",
            CARGO_TARGET_DIR=str(ROOT / "target/sdist"),
        )
        (wheel,) = Path(folder).glob("*.whl")
        run("sh", "scripts/check_wheel.sh", wheel, QUICK="1")


def pythons() -> list[Path]:
    """Return one interpreter of each minor version from 3.11 on, from PATH or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for minor in range(11, 20):
        on_path = shutil.which(f"python3.{minor}")
        known = [Path(on_path)] if on_path else []
        known += sorted(pyenv.glob(f"3.{minor}.*/bin/python3"), reverse=True)
        for python in known:
            # A name on the path may be a shim that does not run.
            asked = [str(python), "-c", "import sys, venv, ensurepip; print(sys.version_info[1])"]
            if subprocess.run(asked, check=False, capture_output=True, text=True).stdout.strip() == str(minor):
                # Not that of an environment, such as the one of these tools.
                found.append(python.resolve())
                break
    return found


def checked(report: Report, interpreters: Sequence[Path]) -> None:
    """Check what was built."""
    report.step("files", check_files)
    report.step("bills of materials", partial(write_sboms, DIST, ROOT / "target/sboms"))
    report.step("source distribution builds", check_source)
    wheels = list(DIST.glob(f"kueuecore-*{platform.machine()}.whl"))
    if not wheels:
        print(f"no wheel here runs on this machine, a {platform.machine()}: none is installed")
        return
    for python in interpreters:
        check = partial(run, "sh", "scripts/check_wheel.sh", wheels[0], PYTHON=str(python))
        report.step(f"installed under {python}", check)
    report.step("each extra alone", partial(run, sys.executable, "-m", "scripts.extras", wheels[0]))


def main(arguments: list[str]) -> int:
    """Build and check; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.dist", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--targets", nargs="+", default=TARGETS, metavar="TARGET", help="by default %(default)s")
    parser.add_argument("--pythons", nargs="+", type=Path, metavar="PATH", help="by default one of each version here")
    parser.add_argument("--profile", default="release", help="cargo's; develop only to try this out")
    parser.add_argument("--no-checks", action="store_true", help="only build")
    options = parser.parse_args(arguments)
    shutil.rmtree(DIST, ignore_errors=True)
    report = Report()
    for target in options.targets:
        variables = rustc_for(target)
        if variables is None:
            report.leave_out(target)
        else:
            report.step(f"wheel for {target}", partial(build_wheel, target, options.profile, variables))
    report.step("source distribution", partial(run, "maturin", "sdist", "--out", DIST))
    report.step("wheel of the API server for tests", build_server)
    if not options.no_checks:
        checked(report, options.pythons or pythons())
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
