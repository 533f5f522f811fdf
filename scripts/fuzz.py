"""Play random worlds on all cores: check invariants, and the engine against the reference, in one run.

Each world follows from a seed, and so does the release of Kueue that decides it. A failure is shrunk and shown as
manifests and as a line to keep in tests/regressions/; `make fuzz SEED=...` starts with that world. At the end it prints
statistics of what happened in the worlds. `--contests` plays worlds of heavy contention: deep trees, many flavors, one
pool for all, crowds of candidates. `--topologies` plays worlds with nodes, which fail, fill up, recover and disappear.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import re
import sys
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from enum import StrEnum
from functools import partial

from kueuecore.errors import ConfigurationError
from kueuecore.releases import newest_releases
from kueuecore.testing import History, Invariants, Limits, random_history, shown
from kueuecore.testing.drawn_contests import random_contest
from kueuecore.testing.drawn_topologies import random_topology
from kueuecore.trials.comparison import compare
from kueuecore.trials.shapes import noted_shapes
from kueuecore.trials.shares import Shares, Witness
from kueuecore.trials.smallest import smallest
from kueuecore.trials.topology_invariants import Places

WORLDS_OF_A_ROUND = 200
# This many failures are enough to see the problem.
MAX_FAILURES = 10


class Kind(StrEnum):
    """The kinds of worlds."""

    PLAIN = "fuzz"
    CONTESTS = "fuzz-contests"
    TOPOLOGIES = "fuzz-topologies"


WANTED = {
    Kind.PLAIN: {
        "preemption": 0.3,
        "borrowing": 0.3,
        "partial admission": 0.1,
        "priority class": 0.2,
        "LocalQueue created anew": 0.03,
        "ClusterQueue changed below a cycle": 0.02,
    },
    Kind.CONTESTS: {
        "preemption": 0.5,
        "fair sharing, deep, decisions on several branches": 0.1,
        "many candidates suffice": 0.05,
        "many candidates do not suffice": 0.05,
    },
    Kind.TOPOLOGIES: {
        "pods with a place": 0.5,
        "a required level": 0.3,
        "slices": 0.04,
        "preemption": 0.1,
        "a lost node replaced": 0.03,
    },
}


def check(history: History, *, echo: bool) -> set[str]:
    """Play one world. In half of them the engine is sent its own decisions back, as the reference always is.

    That changes nothing, except where sums saturate or with that gate off: there, an echo makes it forget something.
    """
    witness, places = Witness(history), Places(history)
    compare(history, watchers=[witness, places, Invariants(history)], echo=echo)
    return witness.seen | places.seen


def world_of(seed: int, kind: Kind) -> tuple[History, bool]:
    """Return the world of a seed, and whether the engine gets its decisions back. One in four is a long history."""
    echo = seed % 2 == 0
    if kind is Kind.CONTESTS:
        history = random_contest(seed, edges=echo)
    elif kind is Kind.TOPOLOGIES:
        history = random_topology(seed)
    else:
        history = random_history(seed, Limits(edges=echo), max_moves=14 if seed % 8 < 2 else 8)
    history = of_a_release(history, seed)
    is_reset = not history.parsed_configuration().is_enabled("FlavorFungibilityPreserveScanProgress")
    return history, echo or is_reset


def of_a_release(history: History, seed: int) -> History:
    """Return a history as one of the releases decides it, each in turn, if its Configuration is valid there."""
    names = [release.name for release in newest_releases()]
    older = replace(history, release=names[seed // 2 % len(names)])
    try:
        older.parsed_configuration()
    except ConfigurationError:
        return history
    return older


def kind_of(error: Exception) -> str:
    """Return an exception's message without the parts that differ from world to world."""
    words = str(error).partition(" differ: ")[2].partition(":")[0] or str(error)[:60]
    return type(error).__name__ + re.sub(r"ns/\w+|[0-9\[\]]", "", words)


def fails_as(error: Exception, echo: bool, history: History) -> bool:
    """Return whether a world fails in the same way."""
    try:
        check(history, echo=echo)
    except Exception as found:
        return kind_of(found) == kind_of(error)
    return False


def play_round(first: int, n: int, until: float, kind: Kind) -> tuple[Shares, dict[int, str]]:
    """Play the worlds of some seeds; return what happened in them, and the failures by seed."""
    # Worlds are freed by reference counts; collecting cycles takes time and finds little.
    gc.disable()
    shares, failures = Shares(), {}
    for seed in range(first, first + n):
        if time.time() > until:
            break
        history, echo = world_of(seed, kind)
        try:
            if kind is Kind.CONTESTS:
                with noted_shapes() as shapes:
                    seen = check(history, echo=echo)
                shares.add(seen | shapes)
            else:
                shares.add(check(history, echo=echo))
        except Exception as error:
            small = smallest(history, partial(fails_as, error, echo))
            try:
                with shown(small):
                    check(small, echo=echo)
            except Exception:
                failures[seed] = traceback.format_exc()
    gc.collect()
    return shares, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="the longest time to run")
    parser.add_argument("--worlds", type=int, default=10**9, help="the most worlds to play")
    parser.add_argument("--seed", type=int, help="seed of the first world; random by default")
    parser.add_argument("--contests", action="store_true", help="worlds of heavy contention")
    parser.add_argument("--topologies", action="store_true", help="worlds with nodes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    arguments = parser.parse_args()
    kind = Kind.CONTESTS if arguments.contests else Kind.TOPOLOGIES if arguments.topologies else Kind.PLAIN
    first = random.SystemRandom().randrange(10**9) if arguments.seed is None else arguments.seed
    print(f"seed {first}", flush=True)

    begun = time.time()
    until = begun + arguments.seconds
    shares, n_failures, n_given = Shares(), 0, 0
    running: set[Future[tuple[Shares, dict[int, str]]]] = set()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        while True:
            while len(running) < 2 * arguments.jobs and time.time() < until and n_failures < MAX_FAILURES:
                if not (n := min(WORLDS_OF_A_ROUND, arguments.worlds - n_given)):
                    break
                running.add(pool.submit(play_round, first + n_given, n, until, kind))
                n_given += n
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for found, failures in (number.result() for number in done):
                shares += found
                n_failures += len(failures)
                for seed, failed in failures.items():
                    print(f"\n{failed}\nagain: make {kind} WORLDS=1 SEED={seed}\n", flush=True)

    took = time.time() - begun
    print(shares)
    if shares.n_histories:
        each = 1000 * took / shares.n_histories
        print(f"{took:.0f} s, {each:.0f} s per 1000 worlds on {arguments.jobs} cores, {n_failures} failed")
    rare = [f"{what} in only {shares.of(what):.0%}" for what, share in WANTED[kind].items() if shares.of(what) < share]
    # A few worlds say little about shares.
    if rare and shares.n_histories >= 1000:
        print(f"too little happens: {', '.join(rare)}", file=sys.stderr)
        return 1
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main())
