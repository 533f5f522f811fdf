//! The objects of an engine as they were applied, for callers to read.

use crate::objects::{
    AdmissionCheck, ClusterQueue, Cohort, LocalQueue, PriorityClass, ResourceFlavor, StringMap, Topology, Workload,
};
use crate::state::{Objects, State};

impl Objects {
    /// The ResourceFlavors, in no order.
    pub fn held_flavors(&self) -> impl Iterator<Item = &ResourceFlavor> {
        self.flavors.iter().filter_map(Option::as_deref)
    }

    /// The Topologies, by name.
    pub fn held_topologies(&self) -> impl Iterator<Item = &Topology> {
        self.topologies.values().map(|it| &**it)
    }

    /// The AdmissionChecks, by name.
    pub fn held_checks(&self) -> impl Iterator<Item = &AdmissionCheck> {
        self.checks.values()
    }

    /// The WorkloadPriorityClasses, by name.
    pub fn held_priority_classes(&self) -> impl Iterator<Item = &PriorityClass> {
        self.workload_priority_classes.values()
    }
}

impl State {
    /// Name and labels of the namespaces, in no order.
    pub fn held_namespaces(&self) -> impl Iterator<Item = (&str, &StringMap)> {
        let names = self.names.namespaces.iter().map(String::as_str);
        names.zip(self.objects.namespaces.iter()).filter_map(|(name, labels)| Some((name, &**labels.as_ref()?)))
    }

    /// The declared Cohorts, in no order.
    pub fn held_cohorts(&self) -> impl Iterator<Item = &Cohort> {
        self.cohorts.iter().filter_map(|it| it.object.as_deref())
    }

    /// The ClusterQueues, in no order.
    pub fn held_cluster_queues(&self) -> impl Iterator<Item = &ClusterQueue> {
        self.queues.iter().filter_map(|it| it.object.as_deref())
    }

    /// The LocalQueues, in no order.
    pub fn held_local_queues(&self) -> impl Iterator<Item = &LocalQueue> {
        self.local_queues.iter().filter_map(|it| it.object.as_deref())
    }

    /// The Workloads, in no order.
    pub fn held_workloads(&self) -> impl Iterator<Item = Workload> {
        self.workloads.iter().map(|(id, _)| self.workload_object(id))
    }

    /// The Workload with this name.
    pub fn held_workload(&self, namespace: &str, name: &str) -> Option<Workload> {
        self.workloads.find(namespace, name).map(|id| self.workload_object(id))
    }
}
