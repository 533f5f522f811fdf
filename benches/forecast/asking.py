"""Ask for forecasts at moments of a replay, and keep them beside what happened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from math import inf, isinf
from pathlib import Path
from time import process_time
from typing import Any

from benches.forecast.baselines import Baselines
from benches.forecast.dump import Dumps
from benches.forecast.logs import Log, read_log
from benches.forecast.moments import Question, Way, questions
from benches.forecast.oracles import Knows, Oracle
from benches.forecast.past import Past
from benches.forecast.replay import Replay, replay
from benches.forecast.scores import SHARES, Answer
from kueuecore.forecasts import Experience, eta
from kueuecore.forecasts.backtest import N_MOMENTS
from kueuecore.times import SECOND_NS

__all__ = ["ETA", "Asked", "Kept", "Part", "Settings", "ask_all", "ask_log", "kept_parts", "read_part", "write_part"]

ETA = "eta"
"""The name of our own forecast among the others."""
_ORACLE_FUTURES = 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to ask.

    Args:
        n_asked: How many forecasts per log and way.
        n_futures: How many futures for each.
        n_moments: At how many moments of the past, at most, each forecast is tried out.
        n_oracle: How many of them to ask the oracles too, evenly over time.
        seed: The seed of the moments.
    """

    n_asked: int = 1000
    n_futures: int = 40
    n_moments: int = N_MOMENTS
    n_oracle: int = 200
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is measured in one go: one log, asked in one way, in order of time.

    Args:
        file: The log.
        way: When one asks.
        settings: How.
    """

    file: str
    way: Way
    settings: Settings

    def path(self, folder: Path) -> Path:
        """Return where its answers are kept."""
        return folder / f"{Path(self.file).name.partition('.')[0]}.{self.way.value}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question, all forecasts for it, and the truth.

    Args:
        at: The moment, in seconds from the start of the log.
        row: The job's row in the log.
        waited: How long it had waited, in seconds.
        truth: How much longer it waited.
        queue: Its queue.
        pods: How many processors it requests.
        n_waiting: How many jobs waited.
        n_running: How many ran.
        seconds: The CPU time of `eta`.
        forecasts: Quantiles for `SHARES` by the name of the forecaster, in seconds.
    """

    at: float
    row: int
    waited: float
    truth: float
    queue: str
    pods: int
    n_waiting: int
    n_running: int
    seconds: float
    forecasts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def answer(self, name: str) -> Answer:
        """Return the forecast of one forecaster."""
        return Answer(self.at, self.forecasts[name], self.truth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The answers of one part.

    Args:
        about: What is known of the log and the settings.
        asked: The answers, in order of time.
    """

    about: Mapping[str, Any]
    asked: tuple[Asked, ...]

    @property
    def log(self) -> str:
        """The name of the log."""
        return str(self.about["log"])

    @property
    def way(self) -> Way:
        """When one asked."""
        return Way(self.about["way"])

    def answers(self, name: str) -> list[Answer]:
        """Return the answers of one forecaster."""
        return [asked.answer(name) for asked in self.asked if name in asked.forecasts]


class _Asker:
    """Asks `eta` about one cluster in order of time; what it may remember of earlier forecasts is kept here."""

    def __init__(self, played: Replay, settings: Settings) -> None:
        self._played, self._settings = played, settings
        self._dumps = Dumps(played)
        self._experience = Experience()

    def quantiles(self, questions: Sequence[Question]) -> list[tuple[float, ...]]:
        """Return the quantiles for some jobs at one moment."""
        found = eta(
            self._dumps.scenario(questions[0].now),
            [self._played.key(question.row) for question in questions],
            trusted=True,
            seeds=range(self._settings.n_futures),
            n_moments=self._settings.n_moments,
            experience=self._experience,
        )
        return [tuple(forecast.quantile(share) for share in SHARES) for forecast in found.forecasts]


def ask_log(played: Replay, way: Way, settings: Settings) -> Iterator[Asked]:
    """Ask about one replay, in order of time.

    Args:
        played: The replay.
        way: When to ask.
        settings: How.
    """
    asker, baselines, dumps = _Asker(played, settings), Baselines(Past(played)), Dumps(played)
    log, oracle = played.log, Oracle(played, _ORACLE_FUTURES)
    asked = questions(played, way, settings.n_asked, seed=settings.seed)
    place = 0
    for now, group in groupby(asked, key=lambda question: question.now):
        at_once, seen = list(group), dumps.seen(now)
        begin = process_time()
        found = asker.quantiles(at_once)
        seconds = (process_time() - begin) / len(at_once)
        for question, own in zip(at_once, found, strict=True):
            row = question.row
            waited = (now - int(played.created[row])) / SECOND_NS
            # The places at which the number of oracles asked so far grows.
            is_due = place * settings.n_oracle // len(asked) < (place + 1) * settings.n_oracle // len(asked)
            known = {knows.value: oracle.quantiles(question, knows) for knows in Knows} if is_due else {}
            place += 1
            yield Asked(
                at=(now - log.start) / SECOND_NS,
                row=row,
                waited=waited,
                truth=(int(played.admitted[row]) - now) / SECOND_NS,
                queue=log.queue.names[log.queue.codes[row]],
                pods=int(log.pods[row]),
                n_waiting=len(seen.waiting),
                n_running=len(seen.running),
                seconds=round(seconds, 4),
                forecasts={ETA: own, **baselines.quantiles(question, waited), **known},
            )


def ask_all(part: Part, folder: Path) -> Path:
    """Replay a log, ask, and write each answer as it comes.

    Args:
        part: What to measure.
        folder: Where to write it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    played = replay(read_log(Path(part.file)))
    path = part.path(folder)
    write_part(path, about_of(played.log, part), ask_log(played, part.way, part.settings))
    return path


def about_of(log: Log, part: Part) -> dict[str, Any]:
    """Return what the page says about a log."""
    return {
        "log": log.name,
        "way": part.way.value,
        "jobs": len(log),
        "processors": log.processors,
        "days": round(float(log.at[-1]) / 86400, 1),
        "users": len(log.user.names),
        "queues": len(log.queue.names),
        "load": round(float((log.pods * log.run_seconds).sum() / log.processors / log.at[-1]), 3),
        "dropped": log.dropped,
        "limits": round(float((log.limit > 0).mean()), 4),
        "overrun": round(float(((log.limit > 0) & (log.run_seconds > log.limit)).mean()), 4),
        "settings": asdict(part.settings),
    }


def write_part(path: Path, about: Mapping[str, Any], asked: Iterator[Asked]) -> None:
    """Write answers, a line each, after a line about the log."""
    with path.open("w", encoding="utf-8") as out:
        out.write(json.dumps(about) + "\n")
        for each in asked:
            plain = asdict(each)
            plain["forecasts"] = {
                name: [None if isinf(value) else round(value, 1) for value in values]
                for name, values in each.forecasts.items()
            }
            out.write(json.dumps(plain) + "\n")
            out.flush()


def read_part(path: Path) -> Kept:
    """Read what `write_part` wrote."""
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    return Kept(about=json.loads(first), asked=tuple(map(_asked, rest)))


def kept_parts(folder: Path) -> list[Kept]:
    """Return all that is kept in a folder, by log and way."""
    found = [read_part(path) for path in sorted(folder.glob("*.jsonl"))]
    return sorted(found, key=lambda kept: (kept.log, list(Way).index(kept.way)))


def _asked(line: str) -> Asked:
    plain = json.loads(line)
    plain["forecasts"] = {
        name: tuple(inf if value is None else value for value in values) for name, values in plain["forecasts"].items()
    }
    return Asked(**plain)
