"""A sweep on Ray, with the executor on the page. Ray is large, so this runs only where it is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kueuecore.scenarios import Edit, Scenario, parse_target, read_scenario
from kueuecore.studies import Axis, compare, grid_points, sweep

ray = pytest.importorskip("ray")

PAGE = Path(__file__).parents[3] / "docs/sweep.md"
EXAMPLE = "examples/scenario/scenario.yaml"


def read(edits: Sequence[Edit]) -> Scenario:
    return read_scenario(EXAMPLE, edits=edits)


@pytest.fixture(scope="module")
def executor() -> Iterator[Any]:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = (block for block in blocks if "import ray" in block)
    namespace: dict[str, Any] = {}
    exec(compile(code.partition("ray.init()")[0], str(PAGE), "exec"), namespace)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield namespace["OnRay"]()
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_a_sweep_on_ray_gives_the_same(executor: Any) -> None:
    points = grid_points([Axis(parse_target("work[0].count"), (10, 20))])
    assert sweep(read, points, seeds=range(2), executor=executor) == sweep(read, points, seeds=range(2))


@pytest.mark.filterwarnings("ignore")
def test_a_comparison_on_ray_gives_the_same(executor: Any) -> None:
    a, b = read([]), read_scenario(EXAMPLE, edits=[Edit(path="cluster.cycle", value="30s")])
    assert compare(a, b, seeds=[1], executor=executor) == compare(a, b, seeds=[1])
