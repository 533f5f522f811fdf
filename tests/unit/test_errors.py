from __future__ import annotations

import pickle

import pytest

from kueuecore.errors import (
    ConfigurationError,
    EngineBrokenError,
    KueuecoreError,
    ManifestError,
    ObjectRef,
    Problem,
    UnknownObjectError,
)

_BAD_QUOTA = Problem(
    'Invalid value: "1x": this is not a quantity',
    field="spec.resourceGroups[0].flavors[0].resources[0].nominalQuota",
    value="1x",
    remedy='write one such as "1"',
    object=ObjectRef("ClusterQueue", "a"),
    file="queues.yaml",
    document=2,
    line=12,
)


def test_problem_shows_place_object_field_and_remedy() -> None:
    assert str(_BAD_QUOTA) == (
        'queues.yaml:12 (document 2): ClusterQueue "a": spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: '
        'Invalid value: "1x": this is not a quantity; write one such as "1"'
    )


@pytest.mark.parametrize(
    ("problem", "place"),
    [
        (Problem("m"), ""),
        (Problem("m", file="a.yaml"), "a.yaml"),
        (Problem("m", file="a.yaml", line=3, column=4), "a.yaml:3:4"),
        (Problem("m", line=3), "line 3"),
        (Problem("m", document=2), "document 2"),
    ],
)
def test_place_shows_what_is_known(problem: Problem, place: str) -> None:
    assert problem.place == place


def test_manifest_error_lists_every_problem_and_counts_them() -> None:
    error = ManifestError([_BAD_QUOTA, Problem("Required value", field="kind")])
    head, first, second = str(error).splitlines()
    assert head == "2 problems in the manifests:"
    assert first == f"  {_BAD_QUOTA}"
    assert second == "  kind: Required value"
    assert str(ManifestError([_BAD_QUOTA])).startswith("1 problem in the manifests:")


def test_manifest_error_has_the_attributes_of_its_first_problem() -> None:
    error = ManifestError([_BAD_QUOTA, Problem("Required value")])
    assert (error.object, error.field) == (ObjectRef("ClusterQueue", "a"), _BAD_QUOTA.field)
    assert (error.value, error.remedy) == ("1x", 'write one such as "1"')


def test_an_error_needs_at_least_one_problem() -> None:
    with pytest.raises(ValueError, match="at least one Problem"):
        ManifestError([])


def test_classes_can_be_caught_as_what_python_calls_them() -> None:
    assert issubclass(ManifestError, KueuecoreError)
    assert issubclass(ManifestError, ValueError)
    assert issubclass(ConfigurationError, ManifestError)
    assert issubclass(UnknownObjectError, LookupError)
    assert str(ConfigurationError.of("no")).startswith("1 problem in the configuration:")


@pytest.mark.parametrize(
    "error",
    [
        ManifestError([_BAD_QUOTA]),
        ConfigurationError.of("unknown gate", field="featureGates.X", remedy="write Y"),
        UnknownObjectError(ObjectRef("LocalQueue", "a", "x"), remedy="apply it first"),
        EngineBrokenError(),
    ],
)
def test_errors_survive_pickling(error: KueuecoreError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
