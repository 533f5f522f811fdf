"""`kueuecore simulate --resume`: checkpoints with a few bytes wrong, in either of their two files."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from random import Random

from kueuecore.cli import ExitCode
from kueuecore.scenarios import read_scenario, run_scenario
from kueuecore.simulation import Checkpoint
from tests.attack.case import Case, Wrong
from tests.attack.documents import ROOT
from tests.attack.doors.command import folder_of_its_own, judge, say, scrambled

__all__ = ["draw"]

_SCENARIO = ROOT / "scenario" / "scenario.yaml"


@functools.cache
def _saved() -> tuple[bytes, bytes, str]:
    """The two files of a checkpoint, and what the run says."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(path=Path(folder, "c"), every_seconds=0)
        run_scenario(read_scenario(_SCENARIO), checkpoint=checkpoint)
        files = checkpoint.path.read_bytes(), checkpoint.log_path.read_bytes()
    return (*files, say("simulate", "-q", "-o", "json", str(_SCENARIO)).out)


def draw(rng: Random) -> Case:
    """A checkpoint that is damaged, cut off, mixed with others, or a link."""
    state, log, expected = _saved()
    which = rng.choice(["state", "log", "both", "none"])
    state = scrambled(rng, state) if which in ("state", "both") else state
    log = scrambled(rng, log) if which in ("log", "both") else log
    is_link = rng.random() < 0.2

    def act() -> None:
        with folder_of_its_own() as place:
            (place / "c").write_bytes(state)
            (place / "c.log").write_bytes(log)
            if is_link:
                (place / "precious").write_bytes(log)
                (place / "c.log").unlink()
                (place / "c.log").symlink_to("precious")
            said = say("simulate", "-o", "json", "--checkpoint", "c", "--resume", str(_SCENARIO))
            judge(said, "json", 1_000_000)
            if said.code == ExitCode.OK and which == "none" and said.out != expected:
                raise Wrong("it ends otherwise after a break")
            if is_link and (place / "precious").read_bytes() != log:
                raise Wrong("it wrote through a link")

    return Case(f"{which} damaged, {'a link' if is_link else 'files'}", act, len(state) + len(log), seconds=20)
