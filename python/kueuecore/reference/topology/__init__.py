"""Topology-aware scheduling: on which nodes, racks and blocks the pods of a workload run (rules/08).

A good reading order: `request` (what a pod set asks for), `assignment`, `encoding` (what it gets); `nodes`, `capacity`
(what is available); `domains`, `order`, `placement`, `balanced` (how one pod set and its leader are placed);
`replacement`, `elastic`, `flavors` (all that a workload asks for); `phase` (what that means for its flavors).

Everything is recomputed from nodes, pods and workloads, for each snapshot and each placement.
"""
