"""Policy tests in pytest: collects files of kind PolicyTest, and provides the fixture `kueue`, a cluster for tests.

pytest finds the plugin by itself if the extra `pytest` is installed. It imports everything else on first use, so
projects without policy tests pay nothing.
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
# Other projects use the same file names.
_KIND = re.compile(rb"""["']?kind["']?\s*:\s*["']?PolicyTest\b""")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> PolicyFile | None:
    """Collect a file whose name ends in `_test.yaml` and that contains policy tests."""
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
        """Yield its cases."""
        from kueuecore.errors import ManifestError
        from kueuecore.policy_tests import read_policy_tests

        try:
            tests = read_policy_tests(self.path)
        except ManifestError as error:
            raise self.CollectError(_relative(str(error), self)) from None
        for test in tests:
            yield PolicyItem.from_parent(self, name=test.name, test=test)


class PolicyItem(pytest.Item):
    """One case of a policy test file.

    Args:
        test: The policy test.
        others: The arguments of every pytest item.
    """

    def __init__(self, *, test: PolicyTest, **others: Any) -> None:
        super().__init__(**others)
        self.test = test

    def runtest(self) -> None:
        """Run the test.

        Raises:
            AssertionError: Some expectations are not met; lists all of them.
            ManifestError: Everything that is wrong with its objects and jobs.
        """
        from kueuecore.policy_tests import run_policy_test

        result = run_policy_test(self.test)
        if not result.has_passed:
            raise AssertionError("\n\n".join(map(str, result.failures)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show unmet expectations and bad input without a traceback, as no code is at fault."""
        from kueuecore.errors import ManifestError

        if isinstance(excinfo.value, AssertionError | ManifestError):
            return _relative(str(excinfo.value), self)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return its location; pytest counts lines from 0 here."""
        return self.path, self.test.line - 1, self.name


@pytest.fixture
def kueue(request: pytest.FixtureRequest) -> Kueue:
    """Provide a cluster: `load` its objects, `submit` jobs, `settle`, and ask what became of them.

    File names are relative to the directory of the test.
    """
    from kueuecore.policy_tests.asking import Kueue

    return Kueue(request.path.parent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the last answer of `kueue` in full below a failed assertion, as pytest truncates long ones."""
    report = yield
    found = getattr(item, "funcargs", {}).get("kueue")
    answer = getattr(found, "last_answer", None)
    if report.when == "call" and report.failed and answer is not None:
        report.sections.append(("kueue", str(answer)))
    return report


def _relative(text: str, node: pytest.Item | pytest.Collector) -> str:
    """Make the file name in a message relative to the working directory."""
    folder = str(node.config.invocation_params.dir)
    path = str(node.path)
    return text.replace(path, os.path.relpath(path, folder)) if path.startswith(folder) else text
