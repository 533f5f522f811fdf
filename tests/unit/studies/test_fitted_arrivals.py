"""What comes to a cluster as it has come."""

from __future__ import annotations

from itertools import islice, takewhile
from statistics import mean

import pytest

from kueuecore._json import object_at, text_at
from kueuecore.studies.arrivals import arrivals_of
from kueuecore.studies.present_workloads import PresentWorkload, present_workloads
from tests.unit.studies.present_states import START, state, workload


def seen(*given: tuple[str, float], **fields: float) -> tuple[PresentWorkload, ...]:
    """Workloads by name and how long ago they were created, before that one that ended an hour ago."""
    first = workload("first", created=7200, admitted=7200, finished=3600)
    rest = [workload(name, created=ago, **fields) for name, ago in given]  # type: ignore[arg-type]
    return present_workloads(state(first, *rest).cluster.objects)


def test_arrivals_since_the_first_end_continue() -> None:
    found, window = arrivals_of(seen(("before", 4000), ("a", 3000), ("b", 2000), ("c", 100)), now=START)
    assert window == 3600
    (queue,) = found.queues
    assert (queue.local_queue, len(queue.batches), queue.per_hour) == (("ns", "lq"), 3, 3.0)


def test_a_window_leaves_out_what_came_before() -> None:
    found, window = arrivals_of(seen(("a", 3000), ("b", 500), ("c", 100)), now=START, window_seconds=600)
    assert (window, found.queues[0].per_hour) == (600, 12.0)


def test_without_an_end_the_window_begins_with_the_first_creation() -> None:
    given = state(workload("a", created=3600), workload("b", created=1800))
    found, window = arrivals_of(present_workloads(given.cluster.objects), now=START)
    assert (window, len(found.queues[0].batches)) == (3600, 1)


def test_nothing_arrives_if_nothing_has_arrived() -> None:
    found, window = arrivals_of(seen(("before", 4000)), now=START)
    assert (window, found.queues, list(found.draws("1"))) == (3600, (), [])


def test_workloads_that_arrived_together_arrive_together() -> None:
    found, _ = arrivals_of(seen(("a", 3000), ("b", 3000), ("c", 3000), ("d", 100)), now=START)
    times = [at for at, _ in islice(found.draws("1"), 400)]
    sizes = {times.count(at) for at in times}
    assert sizes == {1, 3}


def test_arrivals_keep_their_rate_on_average_over_many_futures() -> None:
    given = [(f"job-{number}", 36.0 * number + 10) for number in range(90)]
    found, _ = arrivals_of(seen(*given), now=START)
    counts = [len(list(takewhile(lambda draw: draw[0] < 3600, found.draws(str(seed))))) for seed in range(300)]
    assert mean(counts) == pytest.approx(90, rel=0.05)
    # The rate is not known for certain: counts vary more than those of one Poisson process.
    assert mean((count - 90) ** 2 for count in counts) > 130


def test_similar_workloads_share_a_template_without_name_and_status() -> None:
    given = [workload("a", created=3000, job="x"), workload("b", created=2000), workload("big", created=10, cpu=3)]
    held = workload("first", created=7200, admitted=7200, finished=3600)
    found, _ = arrivals_of(present_workloads(state(held, *given).cluster.objects), now=START)
    small, big = (template.object for template in found.templates)
    assert object_at(small, "metadata") == {"namespace": "ns", "name": "template"}
    assert "status" not in small
    assert text_at(big, "spec", "queueName") == "lq"
    assert found.kinds == (("ns", "lq", 0), ("ns", "lq", 0))


def test_the_same_seed_draws_the_same() -> None:
    found, _ = arrivals_of(seen(("a", 3000), ("b", 2000)), now=START)
    first, again, other = (list(islice(found.draws(name), 20)) for name in ("1", "1", "2"))
    assert first == again != other
