"""A log becomes a cluster, and what a dump of it shows at a moment does not tell what comes later."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benches.forecast.cluster import cluster_of, quotas
from benches.forecast.dump import KEPT_SECONDS, Dumps
from benches.forecast.logs import log_files, read_log
from benches.forecast.moments import Way, questions
from benches.forecast.replay import Replay, replay
from benches.forecast.synthetic import PROCESSORS, synthetic_log
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.forecasts import eta
from kueuecore.scenarios import Span
from kueuecore.scenarios.present import job_of
from kueuecore.times import SECOND_NS, nanoseconds
from kueuecore.world import World
from tests.unit.benches.forecast_logs import HOUR, log_text, small_log

CROWD = [(600 * number, 1500 + 100 * (number % 7), 1 + number % 4) for number in range(60)]


def seconds(played: Replay, times: npt.NDArray[np.int64]) -> list[float]:
    return [(time - played.log.start) / SECOND_NS for time in times.tolist()]


def test_jobs_start_in_order_when_there_is_room_and_run_as_long_as_in_the_log() -> None:
    played = replay(small_log((100, 60, 4), (110, 50, 3), (120, 50, 2), (130, 10, 1)))
    assert played.log.start == nanoseconds("2001-01-01T00:01:40Z"), "the first job was submitted 100 seconds later"
    assert seconds(played, played.created) == [0, 10, 20, 30]
    assert seconds(played, played.admitted) == [0, 60, 110, 62], "the last one passes in the second cycle after"
    assert seconds(played, played.finished) == [60, 110, 160, 72]
    assert played.key(1).startswith("user-3/job-app-1-2-")


def test_jobs_that_cannot_be_replayed_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.log.swf"
    path.write_text(log_text((0, 60, 4), (1, -1, 1), (2, 60, 5), (3, 60, -1)))
    log = read_log(path)
    assert (log.name, len(log), log.processors) == ("a", 1, 4)
    assert log.dropped == {"no run time": 1, "no number of processors": 1, "larger than the machine": 1}
    path.write_text("; MaxProcs: 2\n" + log_text((0, 60, 4), processors=2))
    with pytest.raises(ManifestError, match=r"no jobs that fit its machine.*check MaxProcs"):
        read_log(path)


def test_a_log_that_does_not_say_its_processors_has_those_of_the_largest_job() -> None:
    log = small_log((0, 60, 3), (5, 60, 7), processors=-1)
    assert log.processors == 7


def test_logs_are_found_in_folders_and_named_one_by_one(tmp_path: Path) -> None:
    for name in ("b.swf", "a.swf.gz", "README.md"):
        (tmp_path / name).touch()
    assert [path.name for path in log_files([tmp_path, tmp_path / "b.swf"])] == ["a.swf.gz", "b.swf"]
    with pytest.raises(ManifestError, match="there is no such file"):
        log_files([tmp_path / "c.swf"])


def test_quotas_are_shares_of_the_work_of_the_first_quarter_and_the_cohort_has_the_rest() -> None:
    log = small_log((0, 100, 2), (1, 100, 1), (900, 9000, 4), (1000, 10, 1), processors=10, queues=(1, 2))
    assert quotas(log) == {"1": 6, "2": 3}
    nominal = {
        (text_at(each.object, "kind"), text_at(each.object, "metadata", "name")): quota
        for each in cluster_of(log)
        if (quota := _nominal(each.object)) is not None
    }
    assert nominal == {("Cohort", "machine"): 1, ("ClusterQueue", "1"): 6, ("ClusterQueue", "2"): 3}
    World.of(cluster_of(log)).apply_to(Engine(), now=log.start)


def _nominal(plain: JsonObject) -> object:
    for group in list_at(plain, "spec", "resourceGroups"):
        for flavor in list_at(group, "flavors"):
            return object_at(list_at(flavor, "resources")[0]).get("nominalQuota")
    return None


def test_a_queue_borrows_the_whole_machine() -> None:
    played = replay(small_log((0, 100, 10), (5, 100, 3), processors=10, queues=(1, 2)))
    assert seconds(played, played.admitted) == [0, 100]


def test_a_log_without_queues_has_one_cluster_queue_with_the_machine() -> None:
    assert quotas(small_log((0, 60, 4), processors=9)) == {"all": 9}


@pytest.mark.parametrize("way", Way)
def test_nothing_that_comes_later_is_in_a_dump(way: Way) -> None:
    played = replay(small_log(*CROWD, queues=(1, 2)))
    dumps = Dumps(played)
    asked = questions(played, way, 20)
    assert len(asked) == 20
    for question in asked:
        shown = dumps.workloads(question.now)
        times = [
            nanoseconds(text_at(condition, "lastTransitionTime"))
            for each in shown
            for condition in list_at(each.object, "status", "conditions")
        ] + [nanoseconds(text_at(each.object, "metadata", "creationTimestamp")) for each in shown]
        assert max(times) <= question.now
        # The same log, cut at the moment, has the same dump: what comes later has no influence.
        n_seen = int((played.created <= question.now).sum())
        cut = Replay(
            log=played.log,
            cluster=played.cluster,
            names=played.names,
            created=np.concatenate([played.created[:n_seen], np.full(len(played.log) - n_seen, 2**62)]),
            admitted=np.where(played.admitted > question.now, 2**62, played.admitted),
            finished=np.where(played.finished > question.now, 2**62, played.finished),
        )
        assert [each.object for each in Dumps(cut).workloads(question.now)] == [each.object for each in shown]


def test_a_dump_looks_like_one_of_a_cluster() -> None:
    played = replay(small_log((0, 60, 4), (10, 50, 3), (20, 50, 2), limit=HOUR))
    ended, running, waiting = Dumps(played).workloads(played.log.start + 70 * SECOND_NS)
    assert [text_at(job_of(each).object, "metadata", "name") for each in (ended, running)] == ["app-2-1", "app-1-2"]
    assert ended.object["metadata"] == {
        "name": played.names[0],
        "namespace": "user-2",
        "uid": "00000000-0000-0000-0000-000000000001",
        "annotations": {"kueuecore.dev/expected-run-seconds": "3600"},
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "generation": 1,
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "app-2-1",
                "uid": "10000000-0000-0000-0000-000000000001",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    conditions = [
        [(text_at(row, "type"), text_at(row, "status")) for row in list_at(each.object, "status", "conditions")]
        for each in (ended, running, waiting)
    ]
    reserved = [("QuotaReserved", "True"), ("Admitted", "True")]
    assert conditions == [[*reserved, ("Finished", "True")], reserved, [("QuotaReserved", "False")]]
    # It is accepted as it stands, and says that one of four processors is free.
    engine = Engine()
    World.of([*played.cluster, ended, running, waiting], trusted=True).apply_to(engine, now=played.log.start)
    assert {state.stage.value for state in engine.workloads()} == {"Finished", "Admitted", "Pending"}


def test_workloads_that_ended_long_ago_are_gone() -> None:
    played = replay(small_log((0, 60, 4), (KEPT_SECONDS + 7, 60, 4)))
    dumps, end = Dumps(played), int(played.finished[0])
    assert dumps.seen(end + KEPT_SECONDS * SECOND_NS - 1).ended.tolist() == [0]
    assert dumps.seen(end + KEPT_SECONDS * SECOND_NS).ended.tolist() == []


def test_a_forecast_that_is_given_run_times_is_what_the_replay_does() -> None:
    jobs = [(100 * number, 250, 4) for number in range(40)]
    played = replay(small_log(*jobs))
    dumps = Dumps(played)
    for question in questions(played, Way.WAITING, 5):
        scenario, key = dumps.scenario(question.now), played.key(question.row)
        found = eta(scenario, [key], trusted=True, seeds=[1], arrivals=False, run_seconds={"": Span(250)})
        truth = (int(played.admitted[question.row]) - question.now) / SECOND_NS
        assert found.forecasts[0].quantile(0.5) == truth


def test_moments_come_after_the_warm_up_in_order_and_are_the_same_for_a_seed() -> None:
    played = replay(small_log(*CROWD))
    for way in Way:
        asked = questions(played, way, 30, seed=3)
        assert asked == questions(played, way, 30, seed=3) != questions(played, way, 30, seed=4)
        assert asked == sorted(asked)
        quarter = played.log.start + (played.created[-1] - played.log.start) // 4
        for question in asked:
            assert quarter <= question.now <= played.created[-1] + 2 * SECOND_NS
            assert played.created[question.row] <= question.now < played.admitted[question.row]


def test_where_nothing_waits_nothing_is_asked() -> None:
    played = replay(small_log((0, 10, 1), (1000, 10, 1), (2000, 10, 1)))
    assert [questions(played, way, 5) for way in Way] == [[], []]


def test_the_generated_log_is_always_the_same_and_loads_its_machine() -> None:
    text = synthetic_log(days=28, n_jobs=800)
    assert text == synthetic_log(days=28, n_jobs=800) != synthetic_log(days=28, n_jobs=800, seed=2)
    rows = [list(map(float, line.split())) for line in text.splitlines() if not line.startswith(";")]
    table = np.array(rows)
    at, run, pods, limit = table[:, 1], table[:, 3], table[:, 4], table[:, 8]
    assert (run * pods).sum() / (PROCESSORS * 28 * 86400) == pytest.approx(0.75, abs=0.05)
    assert ((run >= 1) & (run <= limit)).all()
    weekday, hour = at // 86400 % 7, at % 86400 // 3600
    assert (weekday < 5).mean() > 0.8
    assert ((hour >= 8) & (hour < 18)).mean() > 0.5
    assert run.mean() > 1.5 * np.median(run), "a heavy tail"
    together = np.unique(at, return_counts=True)[1]
    assert together.max() >= 3, "bursts"
