"""What small YAML texts can multiply to, and how long it takes to say what is wrong with large ones."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import parse_manifests

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def refused(text: str) -> Problem:
    with pytest.raises(ManifestError) as caught:
        parse_manifests(text)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{HEAD}a: &a {'x' * 100_000}\nb:\n" + "- *a\n" * 20_000, id="values"),
        pytest.param(f"{HEAD}a: &a {{{'x' * 1_000}: 1}}\nb:\n" + "- *a\n" * 20_000, id="keys"),
        pytest.param(
            f"{HEAD}a: &a {{&k {'x' * 1_000}: 1}}\nb:\n" + "- {*k : 1}\n" * 20_000, id="keys that are aliases"
        ),
    ],
)
def test_aliases_that_repeat_a_long_text_are_refused_at_the_line_of_the_text(text: str) -> None:
    problem = refused(text)
    assert problem.message == "the aliases expand to too much text"
    assert (problem.line, problem.remedy, str(problem.object)) == (4, "write the values out", 'ConfigMap "a"')


def test_all_documents_of_a_text_have_one_limit() -> None:
    document = f"{HEAD}a: &a {'x' * 10_000}\nb: [{'*a, ' * 50}]\n---\n"
    problem = refused(document * 60)
    assert problem.message == "the aliases expand to too much text"
    assert problem.document is not None
    assert problem.document > 1


def test_a_template_that_many_jobs_share_is_read() -> None:
    template = "{containers: [{name: c, args: [" + f"{'x' * 100}, " * 20 + "]}]}"
    text = f"{HEAD}template: &t {template}\njobs:\n" + "- {template: *t}\n" * 300
    (manifest,) = parse_manifests(text)
    jobs = manifest.object["jobs"]
    assert isinstance(jobs, list)
    assert len(jobs) == 300


def test_what_aliases_nest_too_deeply_is_refused_by_its_line() -> None:
    levels = [f"a0: &a0 {'[' * 150}{']' * 150}", f"a1: &a1 {'[' * 150}*a0{']' * 150}"]
    problem = refused(HEAD + "\n".join(levels))
    assert (problem.message, problem.line) == ("it is nested too deeply", 4)
    assert problem.field.startswith("a1[0][0]")
    assert problem.remedy == "an object has at most 200 levels"


def test_of_mappings_that_are_merged_the_first_one_counts() -> None:
    text = f"{HEAD}a: &a {{u: 1, v: 1}}\nb: &b {{v: 2, w: 2}}\nc: {{<<: [*a, *b], u: 3}}\n"
    (manifest,) = parse_manifests(text)
    assert manifest.object["c"] == {"u": 3, "v": 1, "w": 2}


def many_unknown_fields(n: int) -> str:
    fields = "".join(f"  field{number}: x\n" for number in range(n))
    return "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: a}\nspec:\n" + fields


def many_merges(n: int) -> str:
    keys = ", ".join(f"k{number}: 1" for number in range(n))
    return f"{HEAD}a: &a {{{keys}}}\nb: &b {{}}\nc: {{<<: [*a{', *b' * n}]}}\n"


def many_doubled_keys(n: int) -> str:
    keys = ", ".join(f'"k{number // 2}": 1' for number in range(n))
    return f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "data": {{{keys}}}}}'


@pytest.mark.parametrize("text", [many_unknown_fields, many_merges, many_doubled_keys])
def test_the_time_is_proportional_to_the_text(text: Callable[[int], str]) -> None:
    # It takes half a second; looking each key up in all others took minutes.
    written, begin = text(40_000), time.process_time()
    with contextlib.suppress(ManifestError):
        Engine().apply(parse_manifests(written))
    assert time.process_time() - begin < 15
