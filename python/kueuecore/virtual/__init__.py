"""A cluster in virtual time: workloads come, their checks are decided on, jobs run, are evicted and end.

What `kueuecore.simulate` does with workloads by the million, this does step by step, with check controllers, and with
several clusters side by side.
"""

from kueuecore.virtual.cluster import VirtualCluster

__all__ = ["VirtualCluster"]
