"""A refused quantity comes with how to write it."""

from __future__ import annotations

import pytest

from kueuecore._quantity_remedies import quantity_remedy
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.manifests import parse_manifests
from kueuecore.world import World
from tests.command import JOB, QUEUES

OTHERWISE = "write a number with or without a suffix, such as 500m, 8 or 8Gi"


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ("6TB", "write 6T or 6Ti"),
        ("512 mb", "write 512M or 512Mi"),
        ("2K", "write 2k or 2Ki"),
        ("3gib", "write 3Gi"),
        ("3 mebibytes", "write 3Mi"),
        ("1.5 Gi", "write 1.5Gi"),
        ("4vCPU", "write 4"),
        ("16 cores", "write 16"),
        ("250 millicores", "write 250m"),
        ("-1 GPU", "write -1"),
        ("100 bytes", "write 100"),
        ("some", OTHERWISE),
        ("10%", OTHERWISE),
        ("1,5Gi", OTHERWISE),
        ("", OTHERWISE),
        ("9" * 100_000 + "GB", OTHERWISE),
        (None, OTHERWISE),
    ],
)
def test_the_remedy_is_what_the_text_seems_to_mean(given: object, remedy: str) -> None:
    assert quantity_remedy(given) == remedy


def refusals(text: str, *, trusted: bool = False) -> list[tuple[str, str]]:
    with pytest.raises(ManifestError) as caught:
        World.of(parse_manifests(text), trusted=trusted).apply_to(Engine(), now=0)
    return [(problem.field, problem.remedy) for problem in caught.value.problems]


def test_queues_and_jobs_say_how_to_write_their_quantities() -> None:
    job = (JOB % ("a", 1)).replace("{cpu: 1}", "{cpu: 1, memory: 4GB}")
    assert refusals(QUEUES.replace("nominalQuota: 2", "nominalQuota: 2 cores") + job) == [
        ("spec.resourceGroups[0].flavors[0].resources[0].nominalQuota", "write 2"),
        ("spec.template.spec.containers[0].resources.requests.memory", "write 4G or 4Gi"),
    ]


def test_a_dump_says_it_too() -> None:
    ((_, remedy),) = refusals(QUEUES.replace("nominalQuota: 2", "nominalQuota: 2GB"), trusted=True)
    assert remedy == "write 2G or 2Gi"


def test_other_patterns_get_no_such_remedy() -> None:
    ((_, remedy),) = refusals(QUEUES.replace("metadata: {name: cq}", "metadata: {name: CQ}"))
    assert "Gi" not in remedy
