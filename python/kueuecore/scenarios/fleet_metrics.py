"""Puts the metrics of several clusters on one page, with a label that says which cluster each is of."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["with_clusters"]


def with_clusters(pages: Mapping[str, str]) -> str:
    r"""Merge pages in Prometheus' text format: each family occurs once, and each series has a label `cluster`.

    Args:
        pages: The metrics of each cluster.

    Example:
        >>> page = '# HELP n Number.\n# TYPE n gauge\nn{q="a"} 1\n'
        >>> print(with_clusters({"east": page, "west": page}), end="")
        # HELP n Number.
        # TYPE n gauge
        n{cluster="east",q="a"} 1
        n{cluster="west",q="a"} 1
    """
    heads: dict[str, list[str]] = {}
    series: dict[str, list[str]] = {}
    for cluster, page in pages.items():
        family = ""
        label = cluster.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for line in page.splitlines():
            if line.startswith("# "):
                family = line.split(" ", 3)[2]
                if line not in heads.setdefault(family, []):
                    heads[family].append(line)
                continue
            name, _, rest = line.partition("{")
            series.setdefault(family, []).append(f'{name}{{cluster="{label}",{rest}')
    return "".join(f"{line}\n" for family in sorted(heads) for line in [*heads[family], *series.get(family, [])])
