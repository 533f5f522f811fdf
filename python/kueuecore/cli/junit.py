"""Results of policy tests as JUnit XML, which CI systems read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree

from kueuecore._text import escaped
from kueuecore.policy_tests import CaseResult

__all__ = ["junit_xml"]


def junit_xml(results: Sequence[CaseResult]) -> str:
    """Write a `testsuites` document: a suite per file, a test case per case. It has no times.

    Args:
        results: The results, grouped by file.
    """
    root = ElementTree.Element("testsuites", {"name": "kueuecore", **_counts(results)})
    for file, group in groupby(results, key=lambda result: result.test.file):
        found = list(group)
        suite = ElementTree.SubElement(root, "testsuite", {"name": escaped(file), **_counts(found)})
        for result in found:
            _add_case(suite, result)
    ElementTree.indent(root)
    # ASCII, so that the locale does not change the file.
    data: bytes = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True)
    return data.decode("ascii") + "\n"


def _counts(results: Sequence[CaseResult]) -> dict[str, str]:
    n_failed = sum(not result.has_passed for result in results)
    return {"tests": str(len(results)), "failures": str(n_failed), "errors": "0", "skipped": "0"}


def _add_case(suite: ElementTree.Element, result: CaseResult) -> None:
    test = result.test
    names = {"classname": escaped(test.file), "name": escaped(test.name), "file": escaped(test.file)}
    case = ElementTree.SubElement(suite, "testcase", {**names, "line": str(test.line)})
    if notice := test.configuration.experiments.notice:
        properties = ElementTree.SubElement(case, "properties")
        ElementTree.SubElement(properties, "property", name="experiments", value=notice)
    for failure in result.failures:
        verdict = failure.verdict
        message = escaped(f"{verdict.subject}: expected {verdict.expected}; got {verdict.got}")
        element = ElementTree.SubElement(case, "failure", type="expectation", message=message)
        element.text = "\n".join(map(escaped, str(failure).splitlines()))
