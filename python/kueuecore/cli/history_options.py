"""The options that name the past of a cluster, and how they are read."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kueuecore._near_names import near_names
from kueuecore._text import quoted, shown
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest

if TYPE_CHECKING:
    from kueuecore.forecasts.history import History
    from kueuecore.forecasts.history.metric_rates import Ask

__all__ = ["add_history", "read_history"]

_QUEUE = "--history-queue"


def add_history(add: argparse._ArgumentGroup) -> None:
    """Add the options of a history."""
    help_text = (
        "the past of the cluster, in a file or from Prometheus; output of `sacct -P` or another trace, a dump or a "
        "folder of dumps, a journal or log of serve, answers of Prometheus, or its address such as "
        "http://prometheus:9090; recognised by content, or prefixed with its kind, such as sacct=FILE; repeatable"
    )
    add.add_argument("--history", metavar="FILE|URL", action="append", default=[], help=help_text)
    help_text = (
        "the LocalQueue of a partition or queue of a trace; such as gpu=team-a/main, or of jobs with another field, "
        "such as user:ann*=team-a/main; by default jobs go by the names of partitions and users; repeatable"
    )
    add.add_argument(
        _QUEUE, metavar="PARTITION=NAMESPACE/LOCALQUEUE", action="append", default=[], type=_queue, help=help_text
    )
    add.add_argument("--history-rules", metavar="FILE", help="rules for the jobs of traces, as a scenario has them")


def read_history(options: argparse.Namespace, objects: Sequence[Manifest], *, now: int) -> History:
    """Read what `--history` names.

    Args:
        options: The options of `add_history`.
        objects: The objects of the cluster.
        now: The present, in nanoseconds since 1970: what happened later does not count.

    Raises:
        ManifestError: Something cannot be read, or a queue is not one of the cluster's.
    """
    from kueuecore.forecasts.history import History, history_of
    from kueuecore.forecasts.history.known_queues import KnownQueues
    from kueuecore.forecasts.past_jobs import past_jobs_of
    from kueuecore.forecasts.present_workloads import present_workloads
    from kueuecore.traces import read_rules

    if not options.history:
        for option, given in ((_QUEUE, options.history_queue), ("--history-rules", options.history_rules)):
            if given:
                raise ManifestError.of(
                    f"{option} works with --history only", remedy="give a --history, or leave it out"
                )
        return History()
    if "-" in options.history:
        raise ManifestError.of("a history is no standard input", field="--history", remedy="give a file")
    if "" in options.history:
        raise ManifestError.of("a name is missing", field="--history", remedy="give a file, a folder or an address")
    known = KnownQueues.of(objects).local_queues
    for _, queue in options.history_queue:
        if known and tuple(queue.split("/")) not in known:
            names = [*map("/".join, known)]
            remedy = f"write {' or '.join(near_names(queue, names, n=3) or sorted(names)[:5])}"
            raise ManifestError.of(f"there is no LocalQueue {shown(queue)}", field=_QUEUE, remedy=remedy)
    return history_of(
        options.history,
        now=now,
        objects=objects,
        present=past_jobs_of(present_workloads(objects)),
        rules=None if options.history_rules is None else read_rules(options.history_rules),
        queues=options.history_queue,
        ask=_ask,
    )


def _ask(address: str) -> Ask:
    from kueuecore.kubernetes.prometheus import connected  # only where a server is named

    return connected(address)


def _queue(text: str) -> tuple[str, str]:
    name, equals, queue = text.rpartition("=")
    namespace, slash, local_queue = queue.partition("/")
    if not (name and equals and namespace and slash and local_queue) or "/" in local_queue:
        raise argparse.ArgumentTypeError(
            f"{quoted(text)} is not PARTITION=NAMESPACE/LOCALQUEUE, such as gpu=team-a/main"
        )
    return name, queue
