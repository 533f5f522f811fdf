"""Which names somebody may have meant."""

from __future__ import annotations

import pytest

from kueuecore._near_names import near_names


@pytest.mark.parametrize(
    ("given", "known", "near"),
    [
        ("trian", ["train"], ("train",)),  # two letters swapped are one slip
        ("tain", ["train"], ("train",)),
        ("traiin", ["train"], ("train",)),
        ("Train", ["train"], ("train",)),
        ("train", ["label", "train-large"], ("train-large",)),
        ("teem-a/trian", ["team-a/train"], ("team-a/train",)),
        ("trial", ["other", "train", "trail"], ("trail",)),
        ("abcd", ["abxx"], ()),  # two slips in four letters
        ("ab", ["abacus"], ()),  # two letters begin too much
        ("a", ["b"], ()),
        ("FlavorFungibilityImplicitPreferenceDefault", ["FlavorFungibilityPreserveScanProgress"], ()),
        ("", ["a"], ()),
    ],
)
def test_a_name_is_near_if_typos_explain_the_difference(given: str, known: list[str], near: tuple[str, ...]) -> None:
    assert near_names(given, known) == near


def test_the_nearest_goes_first_then_the_order_given() -> None:
    known = ["workload-cc", "workload-ab", "workload-bb", "workload-ab", "workload-aa"]
    assert near_names("workload-aa", known, n=9) == ("workload-aa", "workload-ab", "workload-cc", "workload-bb")
    assert near_names("workload-aa", known, n=2) == ("workload-aa", "workload-ab")
