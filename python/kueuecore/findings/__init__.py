"""Find mistakes in manifests that an API server accepts: `kueuecore check` as a function.

`check` reports what is wrong with some objects; `RULES` lists everything it looks for.
"""

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.findings.checking import check as check
    from kueuecore.findings.finding import Finding as Finding
    from kueuecore.findings.finding import Rule as Rule
    from kueuecore.findings.finding import Severity as Severity
    from kueuecore.findings.registry import RULES as RULES
    from kueuecore.findings.silencing import ANNOTATION as ANNOTATION

__all__ = ["ANNOTATION", "RULES", "Finding", "Rule", "Severity", "check"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.findings.checking": "check",
        "kueuecore.findings.finding": "Finding Rule Severity",
        "kueuecore.findings.registry": "RULES",
        "kueuecore.findings.silencing": "ANNOTATION",
    },
)
