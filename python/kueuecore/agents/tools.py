"""The tools: what each is for, what it takes, what it answers, and which command gives the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kueuecore._json import JsonObject, JsonValue, list_at, text_at
from kueuecore.agents import sentences, state_schemas, workload_schemas
from kueuecore.agents.listings import DEFAULT_ROWS, MAX_ROWS
from kueuecore.agents.sentences import Sentences
from kueuecore.agents.shapes import described, list_of, one_of
from kueuecore.answers import ChangeKind

__all__ = ["MAX_OBJECT_BYTES", "TOOLS", "Tool", "tool_named"]

MAX_OBJECT_BYTES = 1_000_000
_LONGEST = 1000
_MOST = 100
_MAX_SEEDS = 1000
_MAX_TRIES = 10_000
_MAX_RUNS = 1000

# What begins with a hyphen would be an option of the command.
_WORD: JsonObject = {"type": "string", "pattern": r"^[^-\s]\S*$", "maxLength": _LONGEST}
# Python before 3.13 loses a `--` that is the value of an option.
_VALUE: JsonObject = {"type": "string", "pattern": r"^(?!--$)[\s\S]", "maxLength": _LONGEST}
_NAME: JsonObject = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 253}
_WORKLOAD = described(
    _WORD, "the workload or its job, as NAMESPACE/NAME, or the job as KIND/NAMESPACE/NAME; `pending` lists them"
)
_PAGE: dict[str, JsonObject] = {
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_ROWS,
        "default": DEFAULT_ROWS,
        "description": "most rows of this page",
    },
    "cursor": described(_VALUE, "`nextCursor` of the page before; leave it out for the first page"),
}


def _nothing(_: JsonObject) -> list[str]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A question that an agent may ask.

    Args:
        name: Its name.
        title: The same for people.
        description: What it answers, and when to use it rather than another one.
        takes: The parameters, by name, as JSON Schemas.
        needs: The parameters that are required.
        answers: The JSON Schema of the answer.
        command: The command that answers; empty if a page of the state is the answer.
        arguments: Makes its arguments, without those that name the state.
        given: Makes what `-` stands for among them.
        too_slow: What to do when it takes too long.
        say: Says the answer in three sentences.
    """

    name: str
    title: str
    description: str
    takes: Mapping[str, JsonObject] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    answers: JsonObject
    command: str = ""
    arguments: Callable[[JsonObject], Sequence[str]] = _nothing
    given: Callable[[JsonObject], str] = lambda _: ""
    too_slow: str = "start the server with a longer --timeout"
    say: Callable[[JsonObject], Sentences]

    @property
    def input_schema(self) -> JsonObject:
        """The JSON Schema of its parameters."""
        required: list[JsonValue] = [*self.needs]
        return {
            "type": "object",
            "properties": dict(self.takes),
            "required": required,
            "additionalProperties": False,
        }


def tool_named(name: str) -> Tool | None:
    """Return a tool by its name."""
    return next((tool for tool in TOOLS if tool.name == name), None)


# Values go into one word with their option, so that none of them is read as an option.


def _each(asked: JsonObject, name: str, option: str) -> list[str]:
    return [f"{option}={value}" for value in list_at(asked, name)]


def _one(asked: JsonObject, name: str, option: str) -> list[str]:
    return [f"{option}={asked[name]}"] if name in asked else []


def _of_workload(asked: JsonObject) -> list[str]:
    return [text_at(asked, "workload")]


def _of_unblock(asked: JsonObject) -> list[str]:
    return ["-q", *_of_workload(asked), *_each(asked, "only", "--only"), *_one(asked, "tries", "--tries")]


def _of_what_if(asked: JsonObject) -> list[str]:
    has_objects = bool(text_at(asked, "objects"))
    settles = asked.get("settle", not has_objects)
    return [
        *(["-f", "-"] if has_objects else []),
        *_each(asked, "set", "--set"),
        *_each(asked, "delete", "--delete"),
        *(["--settle"] if settles else []),
    ]


def _of_eta(asked: JsonObject) -> list[str]:
    workloads = [str(workload) for workload in list_at(asked, "workloads")]
    options = [_one(asked, name, f"--{name}") for name in ("arrivals", "window", "horizon", "seeds")]
    return [
        "-q",
        *workloads,
        *_each(asked, "run_seconds", "--run-seconds"),
        *(word for words in options for word in words),
    ]


def _of_check(asked: JsonObject) -> list[str]:
    return [*_each(asked, "select", "--select"), *_each(asked, "ignore", "--ignore")]


def _of_comparison(asked: JsonObject) -> list[str]:
    return [*_one(asked, "from", "--from"), *_one(asked, "to", "--to"), *_one(asked, "runs", "--runs")]


_RELEASE: JsonObject = {"type": "string", "pattern": r"^v?\d+\.\d+(\.\d+|-dev)?$"}
_FINDINGS = list_of(_WORD) | {"maxItems": _MOST}

TOOLS = (
    Tool(
        name="queues",
        title="ClusterQueues and quota",
        description=(
            "Lists ClusterQueues with cohorts, quota, usage and numbers of waiting and running workloads, in pages. "
            "Start here for an overview: which queue is full, inactive or busy. For one workload use `explain`."
        ),
        takes={
            "name": described(_NAME, "only this ClusterQueue"),
            "cohort": described(_NAME, "only ClusterQueues below this cohort"),
            **_PAGE,
        },
        answers=state_schemas.QUEUES,
        say=sentences.say_queues,
    ),
    Tool(
        name="pending",
        title="Waiting workloads",
        description=(
            "Lists workloads that wait for quota, in the order of their queues, each with Kueue's message, in pages; "
            "`reasons` counts all of them. Use it to find a workload's name or place. Why one waits: `explain`."
        ),
        takes={
            "cluster_queue": described(_NAME, "only those of this ClusterQueue"),
            "namespace": described(_NAME, "only those of this namespace"),
            **_PAGE,
        },
        answers=state_schemas.PENDING,
        say=sentences.say_pending,
    ),
    Tool(
        name="explain",
        title="Why does a workload wait, or why is it where it is?",
        description=(
            "Says what is behind the decision about one workload: the obstacles by flavor, resource and cohort, with "
            "their rules, who holds what it needs, which of them could be preempted and which may not. Ask this "
            "before `unblock`, `what_if` or `eta`."
        ),
        takes={"workload": _WORKLOAD},
        needs=("workload",),
        answers=workload_schemas.EXPLAIN,
        command="explain",
        arguments=_of_workload,
        say=sentences.say_explanation,
    ),
    Tool(
        name="unblock",
        title="The smallest changes that would admit a workload",
        description=(
            "Finds the smallest changes that would admit a waiting workload, each tried on a copy: more quota, fewer "
            "pods, another flavor, a higher priority, workloads to delete. Nothing is applied. Check a change with "
            "`what_if` before you propose it: it shows who else moves."
        ),
        takes={
            "workload": _WORKLOAD,
            "only": described(
                list_of(one_of(*map(str, ChangeKind))) | {"maxItems": len(ChangeKind)},
                "look for these kinds of changes only",
            ),
            "tries": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MAX_TRIES,
                "description": "how many changes to try at most, cheap and likely ones first",
            },
        },
        needs=("workload",),
        answers=workload_schemas.UNBLOCK,
        command="unblock",
        arguments=_of_unblock,
        too_slow='name kinds with `only`, such as ["Quota"], or give fewer `tries`',
        say=sentences.say_unblocking,
    ),
    Tool(
        name="what_if",
        title="What would happen to a job, or if something changed?",
        description=(
            "Tries jobs and changes on a copy of the state. With `objects`: would these jobs get quota, where, and who "
            "would be preempted? With `set` or `delete`: change quota, priority or anything else first. With `settle`: "
            "which other workloads would move? Nothing is written to the cluster."
        ),
        takes={
            "objects": {
                "type": "string",
                "maxLength": MAX_OBJECT_BYTES,
                "description": "jobs or Workloads to try, and objects to add with them, as YAML or JSON",
            },
            "set": described(
                list_of(_VALUE) | {"maxItems": _MOST},
                "fields to set first, KIND/NAME:PATH=VALUE, such as ClusterQueue/a:spec.resourceGroups[0].flavors"
                "[name=default].resources[name=cpu].nominalQuota=8",
            ),
            "delete": described(
                list_of(_VALUE) | {"maxItems": _MOST}, "objects to delete first, KIND/NAME or KIND/NAMESPACE/NAME"
            ),
            "settle": described(
                {"type": "boolean"}, "run cycles with the jobs and changes; by default true without `objects`"
            ),
        },
        answers=workload_schemas.WHAT_IF,
        command="what-if",
        arguments=_of_what_if,
        given=lambda asked: text_at(asked, "objects"),
        too_slow="leave out `settle`, or give fewer jobs",
        say=sentences.say_what_if,
    ),
    Tool(
        name="eta",
        title="When will workloads be admitted?",
        description=(
            "Forecasts when waiting workloads will be admitted, as quantiles over simulated futures, with the "
            "assumptions. Name the workloads: all that wait may be many. A forecast is no promise: report its "
            "assumptions with it."
        ),
        takes={
            "workloads": described(list_of(_WORD) | {"maxItems": _MOST}, "by default all that wait"),
            "run_seconds": described(
                list_of(_VALUE) | {"maxItems": _MOST},
                "how long jobs run, such as 30m or {mean: 30m}; for one queue NAMESPACE/LOCALQUEUE=2h; by default "
                "fitted to finished jobs, and needed if none has finished",
            ),
            "arrivals": described(
                one_of("fitted", "none"), "fitted: workloads keep arriving as they have so far; none: no more arrive"
            ),
            "window": described(_VALUE, "fit arrivals to this last span of time only, such as 24h"),
            "horizon": described(_VALUE, "how far to look ahead, such as 12h"),
            "seeds": {"type": "integer", "minimum": 1, "maximum": _MAX_SEEDS, "description": "how many futures"},
        },
        answers=workload_schemas.ETA,
        command="eta",
        arguments=_of_eta,
        too_slow="name one workload, give a short `horizon`, or fewer `seeds`",
        say=sentences.say_eta,
    ),
    Tool(
        name="history",
        title="What happened to a workload?",
        description=(
            "Tells what happened to one workload, in order: queued, admitted, preempted by whom, requeued, finished. "
            "Use it for a workload that was evicted or waited long; `explain` is about now."
        ),
        takes={"workload": _WORKLOAD},
        needs=("workload",),
        answers=workload_schemas.HISTORY,
        command="history",
        arguments=_of_workload,
        say=sentences.say_history,
    ),
    Tool(
        name="check",
        title="Mistakes that an API server accepts",
        description=(
            "Finds mistakes in queues and quota that an API server accepts: quota that nobody can use, limits that "
            "never bind, queues that lead nowhere, workloads that never fit or preempt each other forever. Use it when "
            "the configuration may be wrong, and not only the cluster full."
        ),
        takes={
            "select": described(_FINDINGS, "only these findings, by code, prefix of codes or name, such as KC1"),
            "ignore": described(_FINDINGS, "all but these findings"),
        },
        answers=state_schemas.CHECK,
        command="check",
        arguments=_of_check,
        too_slow="name findings with `select`",
        say=sentences.say_check,
    ),
    Tool(
        name="compare_releases",
        title="What would another release of Kueue decide?",
        description=(
            "Says which decisions about this state another release of Kueue changes, which change of Kueue causes "
            "each, what it refuses, and which feature gates keep the old behaviour. Use it before an upgrade of Kueue."
        ),
        takes={
            "from": described(_RELEASE, "the release that runs now, such as 0.17; by default that of the objects"),
            "to": described(_RELEASE, "the release that is to run; by default the newest"),
            "runs": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MAX_RUNS,
                "description": "how many mixtures of the two releases to run at most, to find the causes",
            },
        },
        answers=state_schemas.COMPARE_RELEASES,
        command="upgrade",
        arguments=_of_comparison,
        too_slow="give fewer `runs`, such as 20",
        say=sentences.say_comparison,
    ),
)
