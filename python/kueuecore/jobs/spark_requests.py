"""Says what the pods of a SparkApplication request: cores, and memory with its overhead (rules/10 §5.13)."""

from __future__ import annotations

import re
from math import isfinite

from kueuecore._json import JsonObject, JsonValue, object_at, text_at, texts_at
from kueuecore.jobs.integration import NoWorkload
from kueuecore.jobs.quantities import canonical, is_quantity

__all__ = ["spark_requests"]

_MEMORY = re.compile(r"([0-9]+)([a-z]*)")
_KIB, _MIB = 2**10, 2**20
_UNITS = {"b": 1, "k": _KIB, "m": _MIB, "g": 2**30, "t": 2**40, "p": 2**50}
_UNITS |= {f"{unit}b": size for unit, size in _UNITS.items() if unit != "b"}
_LEAST_OVERHEAD = 384
_MOST = 2**63 - 1


def spark_requests(job: JsonObject, role: str) -> JsonObject:
    """Return the requests of a role's container for cpu and memory.

    Args:
        job: The SparkApplication.
        role: `driver` or `executor`.

    Raises:
        NoWorkload: A value cannot be read.

    Example:
        >>> spark_requests({"spec": {"driver": {"cores": 2, "memory": "4g"}}}, "driver")
        {'cpu': '2', 'memory': '4505Mi'}
    """
    mebibytes = _memory(job, role) + _overhead(job, role) + _beyond(job, role)
    if mebibytes * _MIB > _MOST:
        raise NoWorkload(f"the memory of the {role} overflows: {mebibytes}Mi")
    return {"cpu": _cpu(job, role), "memory": canonical(f"{mebibytes}Mi")}


def _cpu(job: JsonObject, role: str) -> JsonValue:
    spec, conf = object_at(job, "spec", role), _conf(job)
    named = text_at(spec, "coreRequest") or conf.get(f"spark.kubernetes.{role}.request.cores", "")
    if named and not is_quantity(named):
        raise NoWorkload(f"failed to parse CPU requests {named}: it is not a quantity")
    if named:
        return named
    cores = spec.get("cores")
    if cores is None:
        cores = conf.get(f"spark.{role}.cores", "1").strip()
        if re.fullmatch(r"[0-9]+", cores) is None:
            raise NoWorkload(f'invalid spark.{role}.cores "{cores}": it is not a whole number')
    return str(cores)


def _memory(job: JsonObject, role: str) -> int:
    text = text_at(job, "spec", role, "memory") or _conf(job).get(f"spark.{role}.memory", "")
    return _mebibytes(text) if text else 1024


def _overhead(job: JsonObject, role: str) -> int:
    text = text_at(job, "spec", role, "memoryOverhead") or _conf(job).get(f"spark.{role}.memoryOverhead", "")
    if text:
        return _mebibytes(text)
    return max(int(_factor(job, role) * _memory(job, role)), _LEAST_OVERHEAD)


def _factor(job: JsonObject, role: str) -> float:
    conf = _conf(job)
    names = (f"spark.{role}.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor")
    written = (*(conf.get(name, "") for name in names), text_at(job, "spec", "memoryOverheadFactor"))
    text = next(filter(None, written), "")
    if not text:
        return 0.4 if text_at(job, "spec", "type") in ("Python", "R") else 0.1
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if not isfinite(factor) or factor < 0:
        raise NoWorkload(f'invalid memory overhead factor "{text}"')
    return factor


def _beyond(job: JsonObject, role: str) -> int:
    """Return what an executor has beside its heap and overhead: memory of Python, and off the heap."""
    if role != "executor":
        return 0
    conf, beyond = _conf(job), 0
    if (text := conf.get("spark.executor.pyspark.memory", "")) and text_at(job, "spec", "type") == "Python":
        beyond += _mebibytes(text)
    if conf.get("spark.memory.offHeap.enabled", "").strip().lower() == "true":
        beyond += _mebibytes(conf.get("spark.memory.offHeap.size", "0"), unit="b")
    return beyond


def _mebibytes(text: str, unit: str = "m") -> int:
    """Return memory as Spark writes it, in whole MiB; `unit` is that of a plain number."""
    found = _MEMORY.fullmatch(text.strip().lower())
    size = _UNITS.get(found[2] or unit) if found else None
    # A number this long is no memory, and longer ones take time to read.
    if found is None or size is None or len(found[1]) > 20 or int(found[1]) * size > _MOST:
        raise NoWorkload(f'invalid Spark memory string "{text}"')
    return int(found[1]) * size // _MIB


def _conf(job: JsonObject) -> dict[str, str]:
    return texts_at(job, "spec", "sparkConf")
