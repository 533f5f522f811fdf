"""Write docs/forecast.md and its pictures from the answers that were kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benches.figures import table
from benches.forecast.asking import ETA, Kept
from benches.forecast.baselines import BASELINES
from benches.forecast.failures import failures_table
from benches.forecast.moments import Way
from benches.forecast.pictures import Curve, picture
from benches.forecast.tables import Judged, all_forecasters, cost, figures_table, judged, oracles_table

__all__ = ["page", "write_page"]

_INTRODUCTION = """\
# How well forecasts hold

[`kueuecore eta`](eta.md) says by when a job will start with a probability of 10, 50 or 90 %. This page shows how often
that holds on public logs of real machines, replayed by Kueue's rules: run times and arrivals are real ones.

Written by `make forecast`. Do not edit it: run the command again.
"""

_LEGEND = """\
- **in 50, 80, 95 %**: the share of jobs that started within the interval, with its standard error. It should be 50,
  80 and 95 %.
- **score**: the interval score of the 80 % interval, averaged: its width, plus ten times the time by which it missed.
  Lower is better.
- **to the best baseline**: that score divided by the best one of the forecasts from past waits
  [below](#beside-forecasts-from-past-waits); below 1 is better than it. **Of logs**: the same for log(seconds + 60),
  where a miss by a factor counts the same for short and long waits.
- **factor 2**: the share of medians within a factor of two of what happened, among waits over a minute.
"""

_WAYS = {
    Way.WAITING: "Asked at random moments, which hit long waits more often, about up to three random jobs that wait.",
    Way.SUBMITTED: "Asked two seconds after a random job was submitted, if it has not started by then.",
}

_FAILURES = """\
## Where they fail

At most three kinds of questions per log and way whose 80 % interval is off by more than two standard errors; kinds
overlap.
"""

_LIMITS = """\
## What a forecast cannot know

Two oracles, asked some of the same questions. One knows how long each job that is there will run, but not what will
arrive; it takes days of the past instead. The other knows all arrivals, but draws run times from those of the same
user. No forecast can be expected to beat them; where the first is far better than `eta`, run times are what is hard
to foresee.
"""

_BASELINES = """\
## Beside forecasts from past waits

All know only what was over at the moment, and how long the job had waited.

{baselines}
"""

_PICTURES = """\
## Pictures

Left: for each quantile of the forecast, the share of jobs that started by it. On the diagonal, forecasts hold; below
it, jobs start later than forecast. Right: where in its forecast each start fell, in tenths; all columns should be
equal. High columns at both ends mean that intervals are too narrow.
"""

_METHOD = """\
## How it is measured

{logs}

**Replay.** Each log becomes a cluster: one ResourceFlavor with the machine's processors as `cpu`, a namespace for
each user, and a ClusterQueue (BestEffortFIFO) for each queue of the log, all in one cohort. A ClusterQueue's nominal
quota is its share of the processor-seconds in the first quarter of the log, rounded down, and the cohort has the
rest; all borrow without limit, and nothing is preempted. A log without queues gets one ClusterQueue. Each job becomes
a Workload with a pod for each processor, submitted when it was, and runs for as long as it did. When it starts is
Kueue's decision, not the one recorded: these are waits by Kueue's rules, not those that the machines had. Jobs about
which the log says nothing usable are left out, as the table shows. **Over request** is the share of jobs that ran
longer than requested, **CPU time** that of one forecast, on average.

**What is seen.** At a moment the forecast gets what a dump would show: Workloads that wait and run, and those that
have ended in the last 180 days, at most 10,000. Users are namespaces, and jobs are named after their executables. The
requested time is the annotation `kueuecore.dev/expected-run-seconds`: as `maximumExecutionTimeSeconds` Kueue would
enforce it, while some of these machines let jobs run on. Nothing after the moment is seen, and nothing is asked in the
first quarter.

**Moments.** {moments}

**Scores.** Waits that overlap are alike. So standard errors are by the jackknife over blocks of a week. Times over 30
days, the horizon of a forecast, count as 30 days. The interval score is that of T. Gneiting & A. Raftery (2007), PIT
the share of the forecast below what happened.

**Limits.** Only the first start is forecast. In a cluster, people react to waits; in a replay, they submit when they
did.

## Run it

```sh
make forecast                            # logs in ../shared/logs
make forecast LOGS=my-cluster.swf.gz     # another log in the Standard Workload Format, or a folder
make forecast FORECAST_ARGS=--page       # write this page from the answers in target/forecast
make forecast-quick                      # a generated log and a slice of each: have the figures regressed?
```
"""


def write_page(parts: Sequence[Kept], file: Path, pictures: Path) -> None:
    """Write the page, and a picture for each log.

    Args:
        parts: The answers.
        file: The page.
        pictures: The folder of the pictures, beside the page or below.
    """
    every = [judged(kept) for kept in parts if kept.asked]
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob("*.svg"):
        old.unlink()
    for name, some in _by_log(every).items():
        (pictures / f"{name}.svg").write_text(_picture(name, some), encoding="utf-8")
    folder = pictures.relative_to(file.parent).as_posix()
    file.write_text(page(every, pictures=folder), encoding="utf-8")


def page(parts: Sequence[Judged], *, pictures: str) -> str:
    """Return the page.

    Args:
        parts: The scores of each log and way.
        pictures: The folder of its pictures, relative to it.
    """
    sections = [_INTRODUCTION, "## Figures\n", *_figures(parts), _LEGEND]
    failures = failures_table([part.kept for part in parts])
    sections.append(_FAILURES)
    sections.append(failures + "\n" if failures else "There are none.\n")
    if oracles := oracles_table(parts):
        sections += [_LIMITS, oracles + "\n"]
    lines = "\n".join(f"- **{name}**: {what}" for name, what in BASELINES.items())
    sections.append(_BASELINES.format(baselines=lines))
    for part in parts:
        sections.append(f"### {part.kept.log}, {part.kept.way.value}\n\n{all_forecasters(part)}\n")
    sections.append(_PICTURES)
    sections += [f"![Reliability and PIT of {name}]({pictures}/{name}.svg)\n" for name in _by_log(parts)]
    sections.append(_METHOD.format(logs=_logs(parts), moments=_moments(parts)))
    return "\n".join(sections)


def _figures(parts: Sequence[Judged]) -> Iterator[str]:
    for way, words in _WAYS.items():
        some = [part for part in parts if part.kept.way is way]
        if some:
            yield f"{words}\n\n{figures_table(some)}\n"


def _moments(parts: Sequence[Judged]) -> str:
    settings = parts[0].kept.about["settings"]
    return (
        f"{settings['n_asked']:,} per log and way, drawn with seed {settings['seed']}, uniformly over the time\n"
        "after the first quarter; if no job waits at one, it is drawn again. "
        f"A forecast has {settings['n_futures']} futures."
    )


def _logs(parts: Sequence[Judged]) -> str:
    rows = []
    for name, some in _by_log(parts).items():
        about = some[0].kept.about
        left_out = ", ".join(f"{n:,} {reason}" for reason, n in about["dropped"].items())
        rows.append(
            [
                name,
                f"{about['jobs']:,}",
                f"{about['processors']:,}",
                f"{about['days']:.0f}",
                f"{about['users']:,}",
                f"{about['queues']:,}",
                f"{about['load']:.0%}".replace("%", " %"),
                f"{about['overrun']:.1%}".replace("%", " %"),
                left_out or "none",
                f"{cost([asked for part in some for asked in part.kept.asked]):.2f} s",
            ]
        )
    head = [
        "log",
        "jobs",
        "processors",
        "days",
        "users",
        "queues",
        "load",
        "over request",
        "left out",
        "CPU time",
    ]
    return table(head, rows)


def _by_log(parts: Sequence[Judged]) -> dict[str, list[Judged]]:
    by: dict[str, list[Judged]] = {}
    for part in parts:
        by.setdefault(part.kept.log, []).append(part)
    return by


def _picture(name: str, parts: Sequence[Judged]) -> str:
    ordered = sorted(parts, key=lambda part: list(Way).index(part.kept.way))
    curves = [Curve(f"{ETA}, {part.kept.way.value}", part.kept.answers(ETA)) for part in ordered]
    best = ordered[0].best()
    curves.append(Curve(f"{best}, {ordered[0].kept.way.value}", ordered[0].kept.answers(best), is_other=True))
    return picture(f"{name}: do forecasts hold?", curves)
