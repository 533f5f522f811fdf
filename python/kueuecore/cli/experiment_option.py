"""The option `--experiment`: rules that Kueue does not have (docs/experiments.md)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from kueuecore.errors import ConfigurationError, ManifestError
from kueuecore.experiments import Experiments, experiment_names, parse_experiments

TYPE_CHECKING = False
if TYPE_CHECKING:  # `prove` reads no scenario
    from kueuecore.scenarios import Scenario

__all__ = ["add_experiments", "asked_experiments", "with_experiments"]


def add_experiments(
    given: argparse.ArgumentParser | argparse._ArgumentGroup,
    *,
    where: str = "",
    dest: str = "experiments",
    action: type[argparse.Action] | None = None,
) -> None:
    """Add `--experiment`.

    Args:
        given: What to add it to.
        where: What it is for, if not for everything, such as ` in B`.
        dest: The name of the result.
        action: What adds a value to it; by default it is a list of them.
    """
    help_text = (
        f"a rule that Kueue does not have{where}, with its time; one of {', '.join(experiment_names())}; repeatable"
    )
    if action is not None:
        given.add_argument("--experiment", metavar="NAME=SECONDS", dest=dest, action=action, help=help_text)
        return
    given.add_argument("--experiment", metavar="NAME=SECONDS", dest=dest, action="append", default=[], help=help_text)


def asked_experiments(texts: Sequence[str]) -> Experiments:
    """Parse the values of `--experiment`.

    Raises:
        ConfigurationError: One of them is wrong; names the option.
    """
    try:
        return parse_experiments(texts)
    except ConfigurationError as error:
        problems = [
            replace(it, field=f"--experiment {it.field}" if it.field else "--experiment") for it in error.problems
        ]
        raise ConfigurationError(problems) from None


def with_experiments(scenario: Scenario, experiments: Experiments, *, file: str) -> Scenario:
    """Return a scenario with experiments beside its own; those of the option win.

    Args:
        scenario: The scenario.
        experiments: The experiments.
        file: Its file, for errors.

    Raises:
        ManifestError: It has several clusters, and the option does not say which of them is meant.
    """
    if not experiments:
        return scenario
    if scenario.fleet is not None:
        remedy = "write `experiments` in the clusters of the fleet"
        raise ManifestError.of("--experiment works for a scenario of one cluster only", remedy=remedy, file=file)
    configuration = scenario.cluster.configuration
    tried = Experiments.of({**configuration.experiments.to_dict(), **experiments.to_dict()})
    cluster = replace(scenario.cluster, configuration=configuration.with_experiments(tried))
    return replace(scenario, cluster=cluster)
