"""Topology-aware scheduling: on which nodes, racks and blocks the pods of a workload run (rules/08).

A good order to read it: `request` (what a pod set asks for), `assignment`, `encoding` (what it gets); `nodes`,
`capacity` (what there is); `domains`, `order`, `placement`, `balanced` (how one pod set and its leader are placed);
`replacement`, `elastic`, `flavors` (all that a workload asks for); `phase` (what that means for its flavors).

Everything is worked out anew from nodes, pods and workloads, snapshot by snapshot and placement by placement.
"""
