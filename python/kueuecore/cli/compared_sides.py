"""The sides of `kueuecore compare`: which scenario each is, and what is changed in it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import quoted
from kueuecore.cli.experiment_option import add_experiments, asked_experiments, with_experiments
from kueuecore.cli.kueue_release import asked_release
from kueuecore.errors import ManifestError
from kueuecore.releases import Release
from kueuecore.scenarios import Scenario, parse_edit, read_scenario
from kueuecore.studies.comparison import MAX_SIDES, side_names

__all__ = ["Side", "add_sides", "asked_sides", "described"]

_CHANGES = ("--set", "--experiment")


@dataclass(slots=True, kw_only=True)
class Side:
    """One side, as options describe it.

    Args:
        name: What it is called.
        file: Its scenario.
        edits: The values of `--set`.
        experiments: The values of `--experiment`.
    """

    name: str
    file: str
    edits: list[str] = field(default_factory=list)
    experiments: list[str] = field(default_factory=list)

    @property
    def changes(self) -> list[str]:
        """What is changed in the file, in words."""
        return [*self.edits, *(f"--experiment {it}" for it in self.experiments)]

    def read(self, *, release: Release | None, allow_code: bool) -> Scenario:
        """Read its scenario.

        Args:
            release: The release of Kueue that `--kueue` names.
            allow_code: Whether the scenario may name a program.

        Raises:
            ManifestError: Everything that is wrong with it or its changes.
        """
        edits = [parse_edit(edit) for edit in self.edits]
        default = asked_release(None)
        read = read_scenario(self.file, allow_code=allow_code, edits=edits, release=release, default_release=default)
        return with_experiments(read, asked_experiments(self.experiments), file=self.file)

    def to_dict(self) -> JsonObject:
        """Return what a JSON document says of it."""
        edits: list[JsonValue] = [*self.edits]
        return {"scenario": self.file, **({"edits": edits} if edits else {})}


class _InOrder(argparse.Action):
    """Keeps options in one list, as a change belongs to the side that is named before it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, [*before, (self.option_strings[-1], values)])


def add_sides(add: argparse.ArgumentParser) -> None:
    """Add the scenarios, `--side`, `--set`, `--experiment` and `--baseline`."""
    help_text = (
        "YAML files of kind Scenario with the same work, which are called A, B, C and so on; "
        "of one file, B is that file with the changes of --set and --experiment"
    )
    add.add_argument("scenarios", metavar="SCENARIO", nargs="*", help=help_text)
    help_text = (
        "one more side: this file, or the first scenario, with the changes of the --set and --experiment "
        "that follow; repeatable"
    )
    add.add_argument("--side", metavar="NAME[=FILE]", dest="in_order", action=_InOrder, help=help_text)
    help_text = "set a field in B, or in the --side before it: KIND/NAME:PATH=VALUE, or PATH=VALUE for the scenario"
    add.add_argument("--set", metavar="EDIT", dest="in_order", action=_InOrder, help=f"{help_text}; repeatable")
    add_experiments(add, where=", for B or the --side before it", dest="in_order", action=_InOrder)
    help_text = "the side that the others are compared with; by default the first"
    add.add_argument("--baseline", metavar="NAME", help=help_text)


def asked_sides(options: argparse.Namespace) -> list[Side]:
    """Return the sides that the options describe.

    Raises:
        ManifestError: They are fewer than two or too many, two have the same name, a change does not say which it is
            for, or the baseline is none of them.
    """
    given: list[tuple[str, str]] = options.in_order or []
    if len(options.scenarios) > MAX_SIDES:
        remedy = "compare the most important, or run them with `kueuecore sweep`"
        raise ManifestError.of(f"at most {MAX_SIDES} scenarios can be compared", remedy=remedy)
    sides = [Side(name=ascii_uppercase[index], file=file) for index, file in enumerate(options.scenarios)]
    n_first = next((index for index, (option, _) in enumerate(given) if option == "--side"), len(given))
    if n_first:
        _change(_changed(sides, given[0][0]), given[:n_first])
    for option, value in given[n_first:]:
        if option == "--side":
            sides.append(_named_side(value, sides))
        else:
            _change(sides[-1], [(option, value)])
    if len(sides) < 2:
        remedy = "give a second scenario, or change the first with --set PATH=VALUE or --experiment NAME=SECONDS"
        raise ManifestError.of("there is nothing to compare with", remedy=remedy)
    try:
        side_names(len(sides), [side.name for side in sides], options.baseline)
    except ValueError as error:
        message, _, remedy = str(error).partition("; ")
        of_baseline = "write one of these names after --baseline" if message.startswith("baseline ") else ""
        remedy = remedy or of_baseline or "name the sides with --side NAME, each differently"
        raise ManifestError.of(message, remedy=remedy) from None
    return sides


def described(sides: Sequence[Side]) -> dict[str, str]:
    """Return what each side is, in words, by its name: its file, or what it changes in the first."""
    first, found = sides[0], {}
    for side in sides:
        is_first = side.file == first.file and side is not first and not first.changes
        what = first.name if is_first else side.file
        found[side.name] = f"{what} with {'; '.join(side.changes)}" if side.changes else what
    return found


def _changed(sides: list[Side], option: str) -> Side:
    """Return the side that changes before the first `--side` are for, which may be a new one."""
    match len(sides):
        case 0:
            raise ManifestError.of(
                f"there is no scenario that {option} could change", remedy="give a file of kind Scenario"
            )
        case 1:
            sides.append(Side(name=ascii_uppercase[1], file=sides[0].file))
        case 2:
            pass
        case n:
            remedy = f"write --side NAME=FILE before {option}, instead of the file alone"
            raise ManifestError.of(f"{option} does not say which of {n} scenarios it changes", remedy=remedy)
    return sides[-1]


def _change(side: Side, changes: Sequence[tuple[str, str]]) -> None:
    for option, value in changes:
        (side.edits if option == "--set" else side.experiments).append(value)


def _named_side(text: str, before: Sequence[Side]) -> Side:
    """Parse the value of `--side`.

    Raises:
        ManifestError: It has no name, or there is no file.
    """
    name, has_file, file = text.partition("=")
    if not name.strip() or (has_file and not file):
        raise ManifestError.of(
            f"--side {quoted(text)} has no name or no file", remedy="write --side NAME, or --side NAME=FILE"
        )
    if not has_file and not before:
        raise ManifestError.of(
            f"--side {quoted(text)} has no scenario", remedy=f"write --side {name}=FILE, or a file before it"
        )
    return Side(name=name.strip(), file=file or before[0].file)
