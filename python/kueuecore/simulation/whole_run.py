"""A run through virtual time: workloads come, run and end, and cycle follows cycle until nothing is left to happen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kueuecore._arguments import instance
from kueuecore.checks import CheckController
from kueuecore.configuration import Configuration
from kueuecore.engine import Objects
from kueuecore.simulation.checkpoint import Checkpoint
from kueuecore.simulation.copies import Copies
from kueuecore.simulation.run import Happening, Progress, Run
from kueuecore.simulation.stepper import Stepper
from kueuecore.submissions import Submissions
from kueuecore.times import TimeLike, nanoseconds

__all__ = ["simulate"]


def simulate(
    objects: Objects,
    events: Iterable[Happening | Mapping[str, object]] = (),
    *,
    submissions: Sequence[Submissions] = (),
    copies: Copies | None = None,
    configuration: Configuration | None = None,
    now: TimeLike,
    until: TimeLike | None = None,
    trusted: bool = False,
    cycle_seconds: float = 1.0,
    max_cycles: int | None = 1_000_000,
    eviction_seconds: float = 0.0,
    messages: bool = False,
    cycles: bool = True,
    finished: bool = True,
    checks: Sequence[CheckController] = (),
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> Run:
    """Run through virtual time until nothing is left to happen, or until a time.

    Around the scheduler stands what a cluster has: workloads run as long as they are said to and then finish, those
    that are evicted stop and wait again, admission checks are ready at once, unless somebody decides on them. After
    each cycle the workloads for which something may have changed are tried again (Kueue waits up to a second). Pods are
    ready as soon as they start; where the configuration names `waitForPodsReady`, events may say otherwise
    (`ready_seconds`), and pods that are late cost the quota. With admission fair sharing, what LocalQueues use is
    sampled at Kueue's intervals as long as anything else is to happen; what has become of it is in
    `run.engine.local_queue(...)`.

    Args:
        objects: What is there from the start, in any form that `Engine.apply` takes.
        events: What happens from outside: `Happening`s, or dicts such as `{"at": 3, "op": "create", "object": {...},
            "runSeconds": 60}` or `{"at": 9, "op": "finish", "key": "ns/name"}`. Of the same time in the order given.
        submissions: Workloads that come in the course of the run, as arrays; of the same time before the events.
        copies: Workloads that are alike but for name, time and run; of the same time after the events.
        configuration: Kueue's Configuration; by default what Kueue does without a file.
        now: The time of the beginning.
        until: Do what happens up to this time; by default all. A cycle that has begun by then ends after it.
        trusted: Take the objects as they are, without defaults and validation.
        cycle_seconds: How long a cycle takes.
        max_cycles: Stop after this many cycles; `None`: never.
        eviction_seconds: How long the job of an evicted workload takes to stop, holding its quota.
        messages: Keep the events and messages of every cycle, too, and whom it set aside.
        cycles: Keep what each cycle decided. A run of millions has `outcome_table`.
        finished: Keep Workloads in the engine once their jobs have ended. Without, unless somebody decides on checks, a
            run needs memory for those that are alive.
        checks: Who decides on AdmissionChecks; those of others are ready at once. They are asked after every change of
            a workload, in Python.
        progress: Is called every few steps with the time of the run in nanoseconds since 1970, how many workloads have
            come and how many jobs have ended. What it raises ends the run.
        checkpoint: Save the run there now and then, and after Ctrl-C, and take it up from there if the checkpoint says
            so: it comes to the same as a run without a break. Takes `cycles=False`, and neither `messages` nor
            `checks`. The files stay when the run is over.

    Raises:
        ManifestError: Everything that is wrong with the objects, or with those of the events; a checkpoint of another
            run, or one that can not be read or written.
        ConfigurationError: LocalQueues are to be sampled more often than once a second.
        ValueError: An invalid time or duration; columns of submissions that do not fit together, values that
            no workload can have, or names of workloads that are there already.
        OutOfTimeError: Something would happen beyond April 2262.

    Returns:
        The cycles, what became of the workloads, and the engine as it stands at the end. Ctrl-C ends the run between
        two steps: its ending is `RunEnding.INTERRUPTED` then, and what has happened by then is in it.

    Example:
        >>> from kueuecore import World, read_manifests, simulate
        >>> from kueuecore.simulation import Happening, Operation
        >>> from kueuecore.submissions import Submissions
        >>> queues = World.of(read_manifests("examples/scenario/queues.yaml")).manifests
        >>> def job(name: str, at: float) -> Happening:
        ...     container = {"name": "c", "resources": {"requests": {"cpu": "5"}}}
        ...     template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
        ...     workload = {
        ...         "apiVersion": "kueue.x-k8s.io/v1beta2",
        ...         "kind": "Workload",
        ...         "metadata": {"namespace": "team-a", "name": name},
        ...         "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": template}]},
        ...     }
        ...     return Happening(at=at, op=Operation.CREATE, object=workload, run_seconds=60)
        >>> run = simulate(queues, [job("a", 0), job("b", 5)], now="2026-01-01T00:00:00Z")
        >>> for step in run.steps:
        ...     print((step.time - run.start) // 10**9, step.kind, step.key)
        0 Created team-a/a
        0 Admitted team-a/a
        5 Created team-a/b
        60 Finished team-a/a
        60 Admitted team-a/b
        120 Finished team-a/b

        The same work as columns, with columns out:

        >>> jobs = Submissions(
        ...     namespace="team-a", local_queues=["lq"], queue=[0, 0], requests={"cpu": 5000}, at=[0, 5], run_seconds=60
        ... )
        >>> table = simulate(queues, submissions=[jobs], now="2026-01-01T00:00:00Z").outcome_table
        >>> ((table["admitted"] - table["created"]) // 10**9).tolist()
        [0, 55]
    """
    stepper = Stepper(
        objects,
        configuration=configuration,
        now=now,
        checks=checks,
        trusted=trusted,
        cycle_seconds=cycle_seconds,
        max_cycles=max_cycles,
        eviction_seconds=eviction_seconds,
        messages=messages,
        cycles=cycles,
        finished=finished,
    )
    stepper.schedule(events, submissions=submissions)
    if copies is not None:
        stepper.schedule_copies(instance("copies", copies, Copies))
    stepper.happened()
    end = None if until is None else nanoseconds(until)
    writer = None if checkpoint is None else stepper.writer(instance("checkpoint", checkpoint, Checkpoint))
    try:
        stepper.advance(end, progress, writer=writer)
    except KeyboardInterrupt:
        if writer is not None:
            stepper.save(writer, until=end)
        return stepper.run(is_interrupted=True)
    return stepper.run()
