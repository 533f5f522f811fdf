"""A whole run that a file of Kueue's generator describes: read, checked and played through virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture

from benches.worlds import T0
from kueuecore import simulate
from kueuecore.scenarios import read_generator
from tests.generator_files import on_racks


def test_15_000_workloads_on_640_nodes(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    file = tmp_path / "generator.yaml"
    file.write_text(json.dumps(on_racks()))

    def run() -> int:
        given = read_generator(file)
        ran = simulate(given.objects, given.events, now=T0, cycle_seconds=0.001)
        return int((ran.outcome_table["finished"] >= 0).sum())

    pedantic: Callable[..., Any] = benchmark.pedantic
    assert pedantic(run, rounds=3) == 15_000
