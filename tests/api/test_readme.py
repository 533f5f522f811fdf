"""What the pages show is what a user gets."""

from pathlib import Path

import pytest

from scripts.readme_example import Example, examples, problem

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs/start.md",
    ROOT / "docs/embed-in-a-controller.md",
    ROOT / "docs/admission-checks.md",
    ROOT / "docs/arrays.md",
    ROOT / "docs/check.md",
    ROOT / "docs/forecast-history.md",
    ROOT / "docs/jobs.md",
    ROOT / "docs/multikueue-policies.md",
    ROOT / "docs/share-a-dump.md",
    ROOT / "docs/multikueue.md",
    ROOT / "docs/topology.md",
    ROOT / "docs/test-against-a-server.md",
    ROOT / "docs/traces.md",
    ROOT / "docs/webhooks.md",
    *sorted(ROOT.glob("docs/roles/*.md")),
    *sorted(ROOT.glob("examples/*/README.md")),
]
EXAMPLES = [
    pytest.param(example, id=f"{page.relative_to(ROOT)} line {example.line}")
    for page in PAGES
    for example in examples(page.read_text(encoding="utf-8"))
]


def test_the_readme_shows_a_program() -> None:
    assert examples((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_program_of_a_page_prints_what_it_says(example: Example) -> None:
    assert problem(example, beside=ROOT / "examples") == ""


def test_a_program_is_paired_with_the_text_block_after_it() -> None:
    text = "# T\n```python\nprint(1)\n```\nprints\n```text\n1\n```\n```python\npass\n```\n"
    assert examples(text) == [Example(3, "print(1)\n", "1\n"), Example(10, "pass\n", None)]


def test_another_output_is_a_problem() -> None:
    assert problem(Example(1, "print(1)", "1")) == ""
    assert "-2" in problem(Example(1, "print(1)", "2"))
    assert "ZeroDivisionError" in problem(Example(1, "1 / 0", None))
