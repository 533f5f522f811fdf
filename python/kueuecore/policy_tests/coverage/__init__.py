"""Measures which rules of a configuration the decisions of policy tests depend on.

A *rule* is one place in the manifests (file, line, object, field) that can decide something: a preemption policy, a
borrowing or lending limit or nominal quota of one resource of one flavor, a flavor and its place in the order, a
priority class, a cohort edge, an admission check of a ClusterQueue, a field of `flavorFungibility`, a queueing
strategy, a stop policy, a namespace selector, a weight, an admission scope, and in Kueue's Configuration fair sharing
and its strategies, admission fair sharing, `waitForPodsReady`, `resources` and the feature gates that are written.

A rule is *exercised* if some decision of some test is another one with another value of it: a limit removed or zero, a
policy set to each other value, a flavor removed, two neighbours swapped, an edge cut, a class below or above all
others, a check removed. So coverage counts decisions, not lines that were read, and each test is played once per other
value. Values that Kueue's validation refuses are skipped; a rule without any other valid value is not measurable, and
counts neither way. `course` says what a decision is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.policy_tests.coverage.measuring import Measurement
    from kueuecore.policy_tests.coverage.results import Coverage, Exercise, FileCoverage, RuleCoverage, RuleOutcome
    from kueuecore.policy_tests.coverage.rule import Rule

__all__ = ["Coverage", "Exercise", "FileCoverage", "Measurement", "Rule", "RuleCoverage", "RuleOutcome"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.policy_tests.coverage.measuring": "Measurement",
        "kueuecore.policy_tests.coverage.results": "Coverage Exercise FileCoverage RuleCoverage RuleOutcome",
        "kueuecore.policy_tests.coverage.rule": "Rule",
    },
)
