"""Random worlds, as many as the time allows, on all cores: invariants, and the engine against the reference.

A round is a few hundred worlds that follow from one seed. What fails is shown as small as it becomes, with the seed of
its round; `make fuzz SEED=...` begins with that round. At the end it says what happened in the worlds.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import sys
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

from hypothesis import HealthCheck, given, seed, settings

from kueuecore.testing import Invariants, Limits, Play, Scenario, Shares, Witness, histories, shown
from kueuecore.testing.comparison import compare

WORLDS_OF_A_ROUND = 300
WANTED = {"preemption": 0.3, "borrowing": 0.3, "partial admission": 0.1}


def play_round(number: int, seconds: float) -> tuple[Shares, str]:
    """Play the worlds of one seed, for so long; returns what happened in them, and what failed."""
    shares, until = Shares(), time.monotonic() + seconds

    @seed(number)
    @settings(max_examples=WORLDS_OF_A_ROUND, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    # See tests/regressions/open.jsonl.
    @given(histories(Limits(deactivation=False)))
    def check(history: Scenario) -> None:
        if time.monotonic() > until:
            return
        with shown(history):
            witness = Witness(history)
            play = Play.of(history, watchers=[witness, Invariants(history)])
            for _ in play.run(history.moves):
                pass
            play.check_parents()
            shares.add(witness.seen)
            compare(history)

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            check()
        except Exception:
            return Shares(), f"{said.getvalue()}\n{traceback.format_exc()}"
    return shares, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long")
    parser.add_argument("--seed", type=int, help="seed of the first round; drawn by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    arguments = parser.parse_args()
    first = random.SystemRandom().randrange(10**9) if arguments.seed is None else arguments.seed
    print(f"seed {first}", flush=True)

    begun = time.monotonic()
    shares, failures, n_rounds = Shares(), 0, 0
    running: dict[Future[tuple[Shares, str]], int] = {}
    with ProcessPoolExecutor(arguments.jobs) as pool:
        while running or time.monotonic() - begun < arguments.seconds:
            while len(running) < arguments.jobs and (left := arguments.seconds - time.monotonic() + begun) > 0:
                running[pool.submit(play_round, first + n_rounds, left)] = first + n_rounds
                n_rounds += 1
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                number = running.pop(done)
                found, failed = done.result()
                shares += found
                if failed:
                    failures += 1
                    print(f"\n{failed}\nagain: make fuzz SEED={number}\n", flush=True)

    took = time.monotonic() - begun
    print(shares)
    if shares.n_histories:
        each = 1000 * took / shares.n_histories
        print(f"{n_rounds} rounds in {took:.0f} s, {each:.0f} s per 1000 worlds on {arguments.jobs} cores")
    rare = [f"{what} in only {shares.of(what):.0%}" for what, share in WANTED.items() if shares.of(what) < share]
    # A few worlds say little of their shares.
    if rare and shares.n_histories >= 5 * WORLDS_OF_A_ROUND:
        print(f"too little happens: {', '.join(rare)}", file=sys.stderr)
        failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
