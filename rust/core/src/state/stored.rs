//! Objects as they are stored.

use crate::objects::Object;
use crate::state::State;

impl State {
    /// The stored version of the object with the same kind and name.
    pub(crate) fn stored(&self, object: &Object) -> Option<Object> {
        match object {
            Object::ResourceFlavor(o) => {
                let id = self.names.flavors.find(&o.meta.name)?;
                self.flavors.get(id)?.as_deref().cloned().map(Object::ResourceFlavor)
            }
            Object::Topology(o) => self.topologies.get(&o.meta.name).map(|it| Object::Topology((**it).clone())),
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
            Object::AdmissionCheck(o) => self.checks.get(&o.meta.name).cloned().map(Object::AdmissionCheck),
            Object::WorkloadPriorityClass(o) => {
                self.workload_priority_classes.get(&o.meta.name).cloned().map(Object::WorkloadPriorityClass)
            }
            Object::LimitRange(o) => {
                self.limit_ranges.get(&o.meta.namespace)?.get(&o.meta.name).cloned().map(Object::LimitRange)
            }
            Object::RuntimeClass(o) => self.runtime_classes.get(&o.meta.name).cloned().map(Object::RuntimeClass),
            Object::ResourceClaimTemplate(o) => {
                let templates = self.claim_templates.get(&o.meta.namespace)?;
                templates.get(&o.meta.name).cloned().map(Object::ResourceClaimTemplate)
            }
            Object::Node(o) => self.cluster.node(&o.meta.name).map(|it| Object::Node((**it).clone())),
            Object::Pod(o) => {
                let pod = self.cluster.pod(&o.meta.namespace, &o.meta.name)?;
                Some(Object::Pod(Box::new((**pod).clone())))
            }
            Object::DeviceClass(o) => self.device_classes.get(&o.meta.name).cloned().map(Object::DeviceClass),
            Object::Workload(o) => {
                let id = self.workloads.find(o.meta.key.namespace(), o.meta.key.name())?;
                Some(Object::Workload(Box::new(self.workload_object(id))))
            }
            Object::Namespace(_) | Object::PriorityClass(_) | Object::Other { .. } => None,
        }
    }
}
