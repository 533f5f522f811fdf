"""Engines in threads and processes: calls wait for each other, nothing hangs, the same bytes everywhere."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kueuecore.engine import Engine
from kueuecore.errors import KueuecoreError, ManifestError, UnknownObjectError
from tests.builders import admitted, at, cluster_queue, local_queue, settle, snapshot, usage, workload, world

ROOT = Path(__file__).parents[3]


def test_threads_share_an_engine_without_losing_anything() -> None:
    engine = world(cluster_queue(cpu=1000))

    def submit(thread: int) -> None:
        for number in range(50):
            engine.apply([workload(f"w{thread}-{number}", created=number)], now=at(1))
            engine.cycle(at(2))
            engine.workloads()
            engine.quota()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(submit, range(4)))
    settle(engine, at(3), limit=300)
    assert (len(engine), usage(engine), engine.cluster_queue("cq").admitted_workloads) == (200, "200", 200)


def test_forks_in_threads_decide_as_in_one() -> None:
    engine = world(cluster_queue(cpu=50), *(workload(f"w{i}", i % 5, created=i) for i in range(100)))
    expected = settle(engine.fork(), at(1))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: settle(engine.fork(), at(1)), range(8))) == [expected] * 8


def test_other_threads_run_while_an_engine_works() -> None:
    """The interpreter is free during a call: a counter in another thread goes on meanwhile."""
    lines = b"\n".join(_line(i) for i in range(4000))
    ticks, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        engine = world()
        before = ticks[0]
        engine._core.apply(lines, True, at(0))
        during = ticks[0] - before
    finally:
        done.set()
        counter.join()
    # A switch interval is 5 ms: with the interpreter held, hardly a tick would fall into the call.
    assert during > 100


def _line(number: int) -> bytes:
    import json

    return json.dumps(workload(f"w{number}", number + 1, created=number).to_manifest()).encode()


def test_a_call_waits_for_the_one_before() -> None:
    engine = world(cluster_queue(cpu=100_000))
    barrier = threading.Barrier(2)
    seen: list[int] = []

    def apply() -> None:
        barrier.wait()
        engine.apply([workload(f"w{i}") for i in range(500)], now=at(1))

    def look() -> None:
        barrier.wait()
        while not seen or seen[-1] < 500:
            seen.append(len(engine))

    with ThreadPoolExecutor(2) as pool:
        for future in (pool.submit(apply), pool.submit(look)):
            future.result(timeout=60)
    assert set(seen) <= {0, 500}, "a batch is seen as a whole or not at all"


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_ends_a_loop_of_cycles() -> None:
    code = """
        import signal
        from tests.builders import *
        # What started the tests may ignore it, such as nohup.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        engine = world(*(workload(f"w{i}", 11 + i, created=i) for i in range(200)))
        print("ready", flush=True)
        while True:
            engine.cycle(at(1))
            engine.apply([cluster_queue(cpu=10), cluster_queue(cpu=9)], now=at(1))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert "KeyboardInterrupt" in errors
    assert child.returncode in (1, 130, -signal.SIGINT)


def test_the_same_bytes_in_another_process_with_another_hash_seed() -> None:
    code = """
        from tests.builders import *
        from kueuecore import Configuration
        from tests.quotas import FAIR as TEXT
        FAIR = Configuration.parse(TEXT)
        for configuration in (None, FAIR):
            engine = world(
                cluster_queue("a", 7, cohort="t"), cluster_queue("b", 5, cohort="t"), cluster_queue("c", 3, cohort="t"),
                *(local_queue(f"to-{n}", n) for n in "abc"),
                *(workload(f"w{i}", i % 4, queue=f"to-{'abc'[i % 3]}", created=i // 5, uid="") for i in range(60)),
                configuration=configuration,
            )
            print(story(engine, at(100), 20), snapshot(engine))
    """
    outputs = []
    for seed in ("0", "1", "12345"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", textwrap.dedent(code)]
        outputs.append(subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=True).stdout)
    assert len(outputs[0]) > 10_000
    assert outputs == outputs[:1] * 3


def test_errors_of_an_engine_can_be_sent_to_another_process() -> None:
    errors: list[KueuecoreError] = []
    for call in (
        lambda: Engine().apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q}, spec: 3}"),
        lambda: Engine().apply(b"{"),
        lambda: Engine().cluster_queue("x"),
        lambda: Engine().finish("x", namespace="ns", now=0),
    ):
        with pytest.raises((ManifestError, UnknownObjectError)) as caught:
            call()
        errors.append(caught.value)
    for error in errors:
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy)) == (type(error), str(error))


def test_a_refused_call_leaves_the_engine_usable() -> None:
    engine = world(workload("w"))
    before = snapshot(engine)
    with pytest.raises(ManifestError):
        engine.apply(b"[" * 100_000)
    with pytest.raises(UnknownObjectError):
        engine.pending("x")
    assert snapshot(engine) == before
    engine.apply([local_queue("more")], now=at(1))
    assert admitted(engine.cycle(at(1))) == ["w"]
