"""Policy tests in pytest: files of kind PolicyTest are collected, and the fixture `kueue` is a cluster to ask.

pytest finds it by itself where the extra `pytest` is installed. Everything else is imported when it is first used:
who has no policy tests pays nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kueuecore.policy_tests import PolicyTest
    from kueuecore.policy_tests.asking import Kueue

__all__ = ["PolicyFile", "PolicyItem", "kueue"]

_ENDINGS = ("_test.yaml", "_test.yml", "_test.json")
# Others call their files so, too.
_KIND = re.compile(rb"""["']?kind["']?\s*:\s*["']?PolicyTest\b""")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> PolicyFile | None:
    """Collect a file whose name ends in `_test.yaml` and that holds policy tests."""
    if not file_path.name.endswith(_ENDINGS):
        return None
    try:
        is_one = _KIND.search(file_path.read_bytes()) is not None
    except OSError:
        return None
    return PolicyFile.from_parent(parent, path=file_path) if is_one else None


class PolicyFile(pytest.File):
    """A file of policy tests."""

    def collect(self) -> Iterator[PolicyItem]:
        """Its cases."""
        from kueuecore.errors import ManifestError
        from kueuecore.policy_tests import read_policy_tests

        try:
            tests = read_policy_tests(self.path)
        except ManifestError as error:
            raise self.CollectError(_relative(str(error), self)) from None
        for test in tests:
            yield PolicyItem.from_parent(self, name=test.name, test=test)


class PolicyItem(pytest.Item):
    """One case.

    Args:
        test: What it is.
        others: What every item has.
    """

    def __init__(self, *, test: PolicyTest, **others: Any) -> None:
        super().__init__(**others)
        self.test = test

    def runtest(self) -> None:
        """Run it.

        Raises:
            AssertionError: Every expectation that is not met.
            ManifestError: Everything that is wrong with its objects and jobs.
        """
        from kueuecore.policy_tests import run_policy_test

        result = run_policy_test(self.test)
        if not result.has_passed:
            raise AssertionError("\n\n".join(map(str, result.failures)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What is not as expected, or wrong with the input: no traceback, for no program is at fault."""
        from kueuecore.errors import ManifestError

        if isinstance(excinfo.value, AssertionError | ManifestError):
            return _relative(str(excinfo.value), self)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it stands; lines count from 0 here."""
        return self.path, self.test.line - 1, self.name


@pytest.fixture
def kueue(request: pytest.FixtureRequest) -> Kueue:
    """A cluster: `load` its objects, `submit` jobs, `settle`, and ask what became of them.

    Files are looked for beside the test.
    """
    from kueuecore.policy_tests.asking import Kueue

    return Kueue(request.path.parent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the last answer of `kueue` in full below an assertion that fails: pytest cuts long ones."""
    report = yield
    found = getattr(item, "funcargs", {}).get("kueue")
    answer = getattr(found, "last_answer", None)
    if report.when == "call" and report.failed and answer is not None:
        report.sections.append(("kueue", str(answer)))
    return report


def _relative(text: str, node: pytest.Item | pytest.Collector) -> str:
    """A message with the name of its file as people see it from where they are."""
    folder = str(node.config.invocation_params.dir)
    path = str(node.path)
    return text.replace(path, os.path.relpath(path, folder)) if path.startswith(folder) else text
