//! Applies, removes and looks up objects of every kind.

use crate::objects::{Kind, Object};
use crate::state::State;

impl State {
    /// Applies one object: creates it, or replaces the stored version.
    pub fn apply(&mut self, object: Object) {
        self.apply_all([object]);
    }

    /// Applies objects in order. Consecutive LimitRanges and RuntimeClasses count as one change.
    pub(crate) fn apply_all(&mut self, objects: impl IntoIterator<Item = Object>) {
        for object in objects {
            if !matches!(object, Object::LimitRange(_) | Object::RuntimeClass(_)) {
                self.adjust_pending();
            }
            self.put(object);
        }
        self.adjust_pending();
    }

    fn put(&mut self, object: Object) {
        match object {
            Object::Namespace(meta) => self.put_namespace(&meta.name, meta.labels),
            Object::ResourceFlavor(flavor) => self.put_flavor(flavor),
            Object::Topology(topology) => self.put_topology(topology),
            Object::Cohort(cohort) => self.apply_cohort(cohort),
            Object::ClusterQueue(queue) => self.apply_cluster_queue(queue),
            Object::LocalQueue(queue) => self.apply_local_queue(queue),
            Object::AdmissionCheck(check) => self.put_check(check),
            Object::WorkloadPriorityClass(class) => self.put_priority_class(class),
            Object::LimitRange(range) => self.put_limit_range(range),
            Object::RuntimeClass(class) => self.objects.put_runtime_class(class),
            Object::ResourceClaimTemplate(template) => self.put_claim_template(template),
            Object::DeviceClass(class) => self.put_device_class(class),
            Object::Node(node) => {
                self.put_node(node);
            }
            // A pod without a name does not exist yet: only an API server generates names.
            Object::Pod(pod) if pod.meta.name.is_empty() => {}
            Object::Pod(pod) => {
                self.put_pod(*pod);
            }
            Object::Workload(workload) => {
                self.apply_workload(*workload);
            }
            Object::PriorityClass(_)
            | Object::ProvisioningRequestConfig(_)
            | Object::MultiKueueConfig(_)
            | Object::MultiKueueCluster(_)
            | Object::PreemptionConfig(_) => {}
        }
    }

    /// Removes an object; returns whether it existed. The caller settles the quota trees.
    pub(crate) fn remove(&mut self, kind: Kind, namespace: &str, name: &str) -> bool {
        match kind {
            Kind::Workload => self.delete_workload(namespace, name),
            Kind::ClusterQueue => self.delete_cluster_queue(name),
            Kind::LocalQueue => self.delete_local_queue(namespace, name),
            Kind::Cohort => self.delete_cohort(name),
            Kind::ResourceFlavor => self.remove_flavor(name),
            Kind::Topology => self.remove_topology(name),
            Kind::AdmissionCheck => self.remove_check(name),
            Kind::WorkloadPriorityClass => self.objects.remove_priority_class(name),
            Kind::Namespace => self.remove_namespace(name),
            Kind::LimitRange => self.remove_limit_range(namespace, name),
            Kind::RuntimeClass => self.remove_runtime_class(name),
            Kind::ResourceClaimTemplate => self.remove_claim_template(namespace, name),
            Kind::DeviceClass => self.remove_device_class(name),
            Kind::Node => self.remove_node(name).is_some(),
            Kind::Pod => self.remove_pod(namespace, name).is_some(),
            Kind::PriorityClass
            | Kind::ProvisioningRequestConfig
            | Kind::MultiKueueConfig
            | Kind::MultiKueueCluster
            | Kind::PreemptionConfig => false,
        }
    }

    /// The stored version of the object with the same kind and name.
    pub(crate) fn stored(&self, object: &Object) -> Option<Object> {
        match object {
            Object::ResourceFlavor(o) => {
                let id = self.names.flavors.find(&o.meta.name)?;
                self.objects.flavors.get(id)?.as_deref().cloned().map(Object::ResourceFlavor)
            }
            Object::Topology(o) => self.objects.topologies.get(&o.meta.name).map(|it| Object::Topology((**it).clone())),
            Object::Cohort(o) => {
                let id = self.names.cohorts.find(&o.meta.name)?;
                self.cohorts[id].object.as_deref().cloned().map(Object::Cohort)
            }
            Object::ClusterQueue(o) => {
                let id = self.names.queues.find(o.meta.name.as_str())?;
                self.queues[id].object.as_deref().cloned().map(Object::ClusterQueue)
            }
            Object::LocalQueue(o) => {
                let id = self.names.find_local_queue(&o.meta.namespace, &o.meta.name)?;
                self.local_queues[id].object.as_deref().cloned().map(Object::LocalQueue)
            }
            Object::AdmissionCheck(o) => self.objects.checks.get(&o.meta.name).cloned().map(Object::AdmissionCheck),
            Object::WorkloadPriorityClass(o) => {
                self.objects.workload_priority_classes.get(&o.meta.name).cloned().map(Object::WorkloadPriorityClass)
            }
            Object::LimitRange(o) => {
                self.objects.limit_ranges.get(&o.meta.namespace)?.get(&o.meta.name).cloned().map(Object::LimitRange)
            }
            Object::RuntimeClass(o) => {
                self.objects.runtime_classes.get(&o.meta.name).cloned().map(Object::RuntimeClass)
            }
            Object::ResourceClaimTemplate(o) => {
                let templates = self.objects.claim_templates.get(&o.meta.namespace)?;
                templates.get(&o.meta.name).cloned().map(Object::ResourceClaimTemplate)
            }
            Object::Node(o) => self.nodes.cluster.node(&o.meta.name).map(|it| Object::Node((**it).clone())),
            Object::Pod(o) => {
                let pod = self.nodes.cluster.pod(&o.meta.namespace, &o.meta.name)?;
                Some(Object::Pod(Box::new((**pod).clone())))
            }
            Object::DeviceClass(o) => self.objects.device_classes.get(&o.meta.name).cloned().map(Object::DeviceClass),
            Object::Workload(o) => {
                let id = self.workloads.find(o.meta.key.namespace(), o.meta.key.name())?;
                Some(Object::Workload(Box::new(self.workload_object(id))))
            }
            Object::Namespace(_)
            | Object::PriorityClass(_)
            | Object::ProvisioningRequestConfig(_)
            | Object::MultiKueueConfig(_)
            | Object::MultiKueueCluster(_)
            | Object::PreemptionConfig(_) => None,
        }
    }
}
