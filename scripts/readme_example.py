"""Run every ``python`` block of README.md, and compare the output with the ``text`` block after it.

    python -I scripts/readme_example.py README.md

The blocks run with the interpreter that runs this file, one process each, in a folder with nothing but the `examples`
beside the file, so that they import the installed package and nothing of the checkout.
"""

import difflib
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """A program in the README and its documented output; None if there is none."""

    line: int
    program: str
    output: str | None


def examples(markdown: str) -> list[Example]:
    """Return the ``python`` blocks of a Markdown text, each with the ``text`` block that follows it."""
    blocks = list(FENCE.finditer(markdown))
    found = []
    for index, block in enumerate(blocks):
        if block[1] == "python":
            following = blocks[index + 1 : index + 2]
            output = following[0][2] if following and following[0][1] == "text" else None
            found.append(Example(markdown.count("\n", 0, block.start()) + 2, block[2], output))
    return found


def problem(example: Example, *, beside: pathlib.Path | None = None) -> str:
    """Run one example and return what is wrong with it; empty if it prints what it should.

    It runs in a folder that is empty except for a link to `beside`, if given.
    """
    with tempfile.TemporaryDirectory() as folder:
        if beside is not None:
            (pathlib.Path(folder) / beside.name).symlink_to(beside)
        run = subprocess.run(
            [sys.executable, "-I", "-c", example.program], cwd=folder, capture_output=True, text=True, check=False
        )
    if run.returncode != 0:
        return run.stderr.rstrip()
    if example.output is None or run.stdout.rstrip() == example.output.rstrip():
        return ""
    lines = difflib.unified_diff(example.output.splitlines(), run.stdout.splitlines(), "README", "printed", lineterm="")
    return "\n".join(lines)


def main(path: pathlib.Path) -> int:
    """Check the examples in one file; return 0 if all run and print what they should."""
    found = examples(path.read_text(encoding="utf-8"))
    if not found:
        print(f"{path}: no python block")
        return 1
    folder = path.resolve().parent / "examples"
    failed = 0
    for example in found:
        wrong = problem(example, beside=folder if folder.exists() else None)
        print(f"{path.name}:{example.line}: {'differs' if wrong else 'ok'}")
        if wrong:
            print(wrong)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "README.md")))
