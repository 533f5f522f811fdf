"""An engine and its journal, wherever Ctrl-C, another thread or a lack of memory comes in between."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import kueuecore
from kueuecore.engine import Engine
from tests.builders import T0, at, cluster_queue, flavor, local_queue, snapshot, workload

PACKAGE = str(Path(kueuecore.__file__).parent)


def kept() -> Engine:
    """An engine with a journal, an admitted workload `a` and a pending one `b`."""
    engine = Engine(keeps_journal=True)
    engine.apply([flavor(), cluster_queue(cpu=1), local_queue(), workload("a"), workload("b", created=1)], now=T0)
    engine.take_written()
    engine.cycle(T0)
    return engine


C = json.dumps(workload("c").to_manifest()).encode()


def submit(engine: Engine) -> None:
    engine.submit(namespace="ns", local_queues=["lq"], queue=[0, 0], requests={"cpu": 500}, now=at(1))


CALLS: dict[str, Callable[[Engine], object]] = {
    "apply": lambda engine: engine.apply(C, now=at(1)),
    "submit": submit,
    "delete": lambda engine: engine.delete("Workload", "a", namespace="ns", now=at(1)),
    "cycle": lambda engine: engine.cycle(at(1)),
    "reconcile": lambda engine: engine.reconcile(at(1)),
    "finish": lambda engine: engine.finish("a", namespace="ns", now=at(1)),
    "evict": lambda engine: engine.evict("a", namespace="ns", now=at(1)),
    "note_readiness": lambda engine: engine.note_readiness("a", namespace="ns", now=at(1), are_ready=True),
    "forget": lambda engine: engine.forget("a", namespace="ns", now=at(1)),
    "confirm": lambda engine: engine.confirm("a", namespace="ns"),
    "take_written": lambda engine: engine.take_written(),
    "save": lambda engine: engine.save(),
    "journal": lambda engine: engine.journal(),
}


def interrupted(call: Callable[[], object], step: int) -> bool:
    """Call, and press Ctrl-C before the step of that number, a line or an instruction of kueuecore's Python code."""
    n_left = step

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal n_left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        if event in ("line", "opcode"):
            n_left -= 1
            if n_left < 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def all_of(engine: Engine) -> list[object]:
    """What an engine reports, and which reports reading consumes."""
    found = [snapshot(engine), engine.now, engine.fork().take_written()]
    if len(engine) == 2:
        found.append(engine.fork().forget("a", namespace="ns", now=0))
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_interrupted_is_done_and_saved_or_neither(name: str) -> None:
    untouched, done = kept(), kept()
    CALLS[name](done)
    outcomes = [all_of(untouched), all_of(done)]
    # A call has thousands of steps, but few journals and saves come of them.
    replayed = cache(lambda journal: all_of(Engine.replay(json.loads(journal))))
    loaded = cache(lambda saved: all_of(Engine.load(saved)))
    step, engine = 0, kept()
    while interrupted(lambda: CALLS[name](engine), step):  # noqa: B023
        found = all_of(engine)
        assert replayed(json.dumps(engine.journal())) == found, f"step {step}"
        assert loaded(engine.save()) == found, f"step {step}"
        assert found in outcomes, f"half done at step {step}"
        # And nobody holds its lock.
        engine.cycle(at(2))
        step, engine = step + 1, kept()
    assert step > 3, "a call has steps"


def test_an_engine_is_saved_as_it_was_between_two_calls_of_another_thread() -> None:
    engine = Engine(keeps_journal=True)
    engine.apply([flavor(), cluster_queue(cpu=100), local_queue()], now=T0)
    is_over = threading.Event()

    def work() -> None:
        try:
            for number in range(300):
                engine.apply(workload(f"w{number}", created=number), now=at(number))
        finally:
            is_over.set()

    def save() -> list[tuple[dict[str, Any], bytes]]:
        found = []
        while not is_over.is_set():
            found.append((dict(engine.journal()), engine.save()))
        return found

    with ThreadPoolExecutor(2) as pool:
        working, saving = pool.submit(work), pool.submit(save)
        working.result()
        saves = saving.result()
    assert saves
    for journal, saved in (*saves[:: max(1, len(saves) // 10)], (engine.journal(), engine.save())):
        for loaded in (Engine.replay(journal), Engine.load(saved)):
            assert loaded.now == (at(len(loaded) - 1) if len(loaded) else T0)
    assert snapshot(Engine.load(engine.save())) == snapshot(engine)
    assert Engine.replay(engine.journal()).save() == engine.save()


def test_an_eviction_whose_job_has_stopped_is_one_call() -> None:
    engine = kept()
    engine.evict("a", namespace="ns", now=at(1))
    (last,) = dict[str, Any](engine.journal())["calls"][-1:]
    assert last == ["evict", at(1), "ns", "a", "Preempted", "", True]
    assert engine.workload("a", namespace="ns").stage == "Pending"
