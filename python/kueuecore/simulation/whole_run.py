"""Runs a whole simulation: workloads arrive, run and end, until nothing is left to happen."""

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
    """Simulate a cluster in virtual time until nothing is left to happen, or until a given time.

    It simulates the rest of a cluster around the scheduler: workloads run for their run time and then finish, evicted
    ones stop and wait again, and admission checks without a controller are ready at once. After each cycle, workloads
    for which something may have changed are tried again (Kueue waits up to a second). Pods are ready as soon as they
    start, unless the configuration names `waitForPodsReady` and events say otherwise (`JobPlan.ready_seconds`); pods
    that are late lose their quota. With admission fair sharing, the usage of LocalQueues is sampled at Kueue's
    intervals while anything else is left to happen; the result is in `run.engine.local_queue(...)`.

    To simulate a scenario from its file, use `kueuecore.run("scenario.yaml")`.

    Args:
        objects: The initial objects, in any form that `Engine.apply` takes.
        events: Outside events: `Happening`s, or dicts such as `{"at": 3, "op": "create", "object": {...},
            "runSeconds": 60}` or `{"at": 9, "op": "finish", "key": "ns/name"}`. Events at the same time happen in the
            order given.
        submissions: Workloads that arrive during the run, as arrays; at the same time, before the events.
        copies: Workloads that differ only in name, time and run time; at the same time, after the events.
        configuration: Kueue's Configuration; by default what Kueue runs with when it has no file.
        now: The start time.
        until: Stop at this time; by default when nothing is left to happen. A cycle that has started by then ends after
            it.
        trusted: Take the objects as they are, without defaults and validation.
        cycle_seconds: How long a cycle takes.
        max_cycles: Stop after this many cycles; `None`: never.
        eviction_seconds: How long the job of an evicted workload takes to stop, holding its quota.
        messages: Keep the events and messages of every cycle too, and the workloads that it parked.
        cycles: Keep each cycle's decision. For a run of millions, use `outcome_table` instead.
        finished: Keep Workloads in the engine after their jobs have ended. If false, and without `checks`, memory is
            needed only for those that are alive.
        checks: Controllers of AdmissionChecks; checks without one are ready at once. They are called after every change
            of a workload, in Python.
        progress: Called every few steps with the time of the run in nanoseconds since 1970, and the numbers of
            workloads that have arrived and of jobs that have ended. An exception from it ends the run.
        checkpoint: Save the run there periodically and after Ctrl-C, and resume it from there if `checkpoint.resume`:
            the result is the same as without a break. Requires `cycles=False`, and neither `messages` nor `checks`.
            The files stay when the run is over.

    Raises:
        ManifestError: Everything that is wrong with the objects or those of the events; or the checkpoint belongs to
            another run, or cannot be read or written.
        ConfigurationError: LocalQueues would be sampled more often than once a second.
        ValueError: A time or duration is invalid; submissions have columns of different lengths, values that no
            workload can have, or names of existing workloads.
        OutOfTimeError: Something would happen after April 2262.

    Returns:
        The cycles, what happened to workloads, and the engine in its final state. Ctrl-C ends the run between two
        steps: its ending is then `RunEnding.INTERRUPTED`, and it has everything that happened before.

    Example:
        >>> from kueuecore import World, read_manifests, simulate
        >>> from kueuecore.simulation import Happening, JobPlan, Operation
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
        ...     return Happening(at=at, op=Operation.CREATE, object=workload, plan=JobPlan(run_seconds=60))
        >>> run = simulate(queues, [job("a", 0), job("b", 5)], now="2026-01-01T00:00:00Z")
        >>> for step in run.steps:
        ...     print((step.time - run.start) // 10**9, step.kind, step.key)
        0 Created team-a/a
        0 Admitted team-a/a
        5 Created team-a/b
        60 Finished team-a/a
        60 Admitted team-a/b
        120 Finished team-a/b

        The same work with columns as input and output:

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
