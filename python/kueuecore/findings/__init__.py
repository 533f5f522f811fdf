"""Find mistakes in manifests that an API server accepts: `kueuecore check` as a function.

`check` reports what is wrong with some objects; `RULES` lists everything it looks for.
"""

from kueuecore.findings.checking import check as check
from kueuecore.findings.finding import Finding as Finding
from kueuecore.findings.finding import Rule as Rule
from kueuecore.findings.finding import Severity as Severity
from kueuecore.findings.registry import ANNOTATION as ANNOTATION
from kueuecore.findings.registry import RULES as RULES

__all__ = ["ANNOTATION", "RULES", "Finding", "Rule", "Severity", "check"]
