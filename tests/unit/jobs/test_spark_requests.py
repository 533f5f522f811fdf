"""What the pods of a SparkApplication request since Kueue 0.20 (rules/10 §5.13)."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.jobs.integration import NoWorkload
from kueuecore.jobs.spark_requests import spark_requests

PLAIN = "1408Mi"


def requests(role: str = "driver", conf: dict[str, str] | None = None, kind: str = "Scala", **fields: Any) -> Any:
    factor = fields.pop("factor", None)
    spec: dict[str, Any] = {role: fields, "type": kind, "sparkConf": conf or {}}
    if factor is not None:
        spec["memoryOverheadFactor"] = factor
    return spark_requests({"spec": spec}, role)


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_nothing_set_is_a_core_and_a_gibibyte_with_its_overhead(role: str) -> None:
    assert requests(role) == {"cpu": "1", "memory": PLAIN}


@pytest.mark.parametrize(
    ("cpu", "role", "conf", "fields"),
    [
        ("4", "driver", {}, {"cores": 4}),
        ("500m", "driver", {}, {"cores": 4, "coreRequest": "500m"}),
        ("2500m", "executor", {"spark.kubernetes.executor.request.cores": "2500m"}, {"cores": 4}),
        ("500m", "executor", {"spark.kubernetes.executor.request.cores": "2500m"}, {"coreRequest": "500m"}),
        ("3", "driver", {"spark.driver.cores": "3"}, {}),
        ("4", "driver", {"spark.driver.cores": "3"}, {"cores": 4}),
        ("1", "driver", {"spark.executor.cores": "3"}, {}),
    ],
)
def test_cores(cpu: str, role: str, conf: dict[str, str], fields: Any) -> None:
    assert requests(role, conf, **fields) == {"cpu": cpu, "memory": PLAIN}


_FACTORS = {"spark.kubernetes.memoryOverheadFactor": "0.25"}
_OFF_HEAP = {"spark.memory.offHeap.enabled": "true"}
_PYTHON_MEMORY = {"spark.executor.pyspark.memory": "512m"}


@pytest.mark.parametrize(
    ("memory", "role", "kind", "conf", "fields"),
    [
        ("9011Mi", "executor", "Scala", {}, {"memory": "8g"}),
        ("9011Mi", "executor", "Scala", {"spark.executor.memory": "8g"}, {}),
        ("5Gi", "driver", "Scala", {}, {"memory": "4g", "memoryOverhead": "1g"}),
        ("5Gi", "driver", "Scala", {"spark.driver.memoryOverhead": "1g"}, {"memory": "4g"}),
        ("4608Mi", "driver", "Scala", {}, {"memory": "4g", "memoryOverhead": "512"}),
        ("1408Mi", "driver", "Scala", {}, {"memory": "1g", "factor": "0"}),
        ("3Gi", "driver", "Scala", {}, {"memory": "2g", "factor": "0.5"}),
        ("2560Mi", "driver", "Scala", _FACTORS, {"memory": "2g", "factor": "0.5"}),
        ("3Gi", "executor", "Scala", {**_FACTORS, "spark.executor.memoryOverheadFactor": "0.5"}, {"memory": "2g"}),
        ("2148Mi", "driver", "Scala", {}, {"memory": "2g", "memoryOverhead": "100m", "factor": "0.5"}),
        ("2867Mi", "driver", "Python", {}, {"memory": "2g"}),
        ("2867Mi", "executor", "R", {}, {"memory": " 2G "}),
        ("2432Mi", "driver", "Python", {}, {"memory": "2g", "factor": "0.1"}),
        ("3379Mi", "executor", "Python", _PYTHON_MEMORY, {"memory": "2g"}),
        ("2867Mi", "driver", "Python", _PYTHON_MEMORY, {"memory": "2g"}),
        ("2432Mi", "executor", "Scala", _PYTHON_MEMORY, {"memory": "2g"}),
        ("3456Mi", "executor", "Scala", {**_OFF_HEAP, "spark.memory.offHeap.size": "1g"}, {"memory": "2g"}),
        ("3456Mi", "executor", "Scala", {**_OFF_HEAP, "spark.memory.offHeap.size": "1073741824"}, {"memory": "2g"}),
        ("2432Mi", "executor", "Scala", {"spark.memory.offHeap.size": "1g"}, {"memory": "2g"}),
        ("2432Mi", "driver", "Scala", {**_OFF_HEAP, "spark.memory.offHeap.size": "1g"}, {"memory": "2g"}),
    ],
)
def test_memory(memory: str, role: str, kind: str, conf: dict[str, str], fields: Any) -> None:
    assert requests(role, conf, kind, **fields)["memory"] == memory


@pytest.mark.parametrize(
    ("words", "conf", "fields"),
    [
        ('invalid Spark memory string "512Mi"', {}, {"memory": "512Mi"}),
        ('invalid Spark memory string "1.5g"', {}, {"memory": "1.5g"}),
        ('invalid Spark memory string "8589934592p"', {}, {"memory": "8589934592p"}),
        ("overflows", {}, {"memory": "8191p", "memoryOverhead": "8191p"}),
        ('"lots"', {}, {"factor": "lots"}),
        ('"-1"', {}, {"factor": "-1"}),
        ('"nan"', {}, {"factor": "nan"}),
        ('"four"', {"spark.driver.cores": "four"}, {}),
        ("failed to parse CPU requests one", {}, {"coreRequest": "one"}),
    ],
)
def test_what_spark_cannot_read_is_an_error(words: str, conf: dict[str, str], fields: Any) -> None:
    with pytest.raises(NoWorkload, match=words):
        requests("driver", conf, **fields)
