"""A preemptor never said that its preemptions had failed, as Kueue's scheduler does where an eviction is refused."""

from __future__ import annotations

from kueuecore.controller import Controller
from kueuecore.writes import Answer, Write
from tests.unit.controller.world import World, workload

WAITS = (
    "couldn't assign flavors to pod set main: "
    "insufficient unused quota for cpu in flavor default-flavor, {} more needed"
)


def preempting(n_victims: int) -> tuple[World, dict[str, Write]]:
    """A world in which one workload needs the room of others, and the writes of the cycle that says so."""
    world = World(
        n_victims,
        Controller(status_delay_seconds=None),
        preemption={"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Never"},
    )
    for index in range(n_victims):
        world.cluster.create(workload(f"low-{index}"))
    world.settle()
    world.cluster.create(workload("high", n_victims, priority=1))
    return world, {write.name: write for write in world.turn().writes}


def message(world: World) -> str:
    conditions = world.stored("high")["status"]["conditions"]
    reported: str = next(condition["message"] for condition in conditions if condition["type"] == "QuotaReserved")
    return reported


def test_a_preemptor_says_that_it_tries_again() -> None:
    world, writes = preempting(1)
    pending = f"{WAITS.format(1)}. Pending the preemption of 1 workload(s)"
    world.controller.done(writes.pop("low-0"), Answer(error="refused"), now=world.now)
    world.send(writes.pop("high"))
    assert message(world) == pending
    assert world.controller.next_wake(world.now) == world.now
    again = {write.name: write for write in world.turn().writes}
    world.send(again.pop("high"))
    assert message(world) == f"{WAITS.format(1)}. Preempting 1 workload(s) failed, will retry."
    # The same turn has tried again.
    world.send(again.pop("low-0"))
    assert "Evicted" in str(world.stored("low-0")["status"]["conditions"])
    world.settle()
    assert message(world) == pending


def test_one_success_is_what_a_preemptor_waits_for() -> None:
    world, writes = preempting(2)
    world.controller.done(writes.pop("low-0"), Answer(error="refused"), now=world.now)
    world.send(writes.pop("low-1"))
    world.send(writes.pop("high"))
    world.turn()
    assert message(world) == f"{WAITS.format(2)}. Pending the preemption of 2 workload(s)"
