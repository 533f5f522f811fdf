//! Changes of ResourceClaimTemplates and DeviceClasses, and their effect on workloads that request devices.

use std::sync::Arc;

use crate::base::ids::WorkloadId;
use crate::objects::{DeviceClass, PodSet, ResourceClaimTemplate};
use crate::pods::devices::{DeviceRules, Devices, asks_for};
use crate::state::State;
use crate::status::stage::Stage;

impl State {
    /// The device charges of a workload; `None` if it requests none.
    pub(crate) fn resolve_devices(&self, id: WorkloadId) -> Option<Arc<Devices>> {
        let record = self.workloads.get(id);
        let rules = DeviceRules {
            templates: self.objects.claim_templates.get(record.key().namespace()),
            classes: &self.objects.device_classes,
            resources: &self.config.resources,
            gates: self.config.gates,
            changes: self.config.changes,
        };
        rules.resolve(&record.spec.original, &record.spec.adjusted).map(Arc::new)
    }

    /// Is the workload kept out of the queue because of its devices?
    pub(crate) fn is_refused(&self, id: WorkloadId) -> bool {
        matches!(self.workloads.get(id).devices.as_deref(), Some(Devices::Refused(_)))
    }

    pub(crate) fn put_claim_template(&mut self, template: ResourceClaimTemplate) {
        let (namespace, name) = (template.meta.namespace.clone(), template.meta.name.clone());
        self.objects.claim_templates.entry(namespace.clone()).or_default().insert(name.clone(), template);
        self.resolve_again(|record_namespace, pod_set| record_namespace == namespace && claims(pod_set, &name));
    }

    /// Removes a ResourceClaimTemplate.
    pub(crate) fn remove_claim_template(&mut self, namespace: &str, name: &str) -> bool {
        let templates = self.objects.claim_templates.get_mut(namespace);
        if templates.and_then(|templates| templates.remove(name)).is_none() {
            return false;
        }
        self.resolve_again(|record_namespace, pod_set| record_namespace == namespace && claims(pod_set, name));
        true
    }

    pub(crate) fn put_device_class(&mut self, class: DeviceClass) {
        let new = class.extended_resource_name.clone();
        let old = self.objects.device_classes.insert(class.meta.name.clone(), class);
        let old = old.map(|class| class.extended_resource_name).unwrap_or_default();
        self.resolve_again(|_, pod_set| asks_for(pod_set, &new) || asks_for(pod_set, &old));
    }

    /// Removes a DeviceClass.
    pub(crate) fn remove_device_class(&mut self, name: &str) -> bool {
        let Some(class) = self.objects.device_classes.remove(name) else { return false };
        self.resolve_again(|_, pod_set| asks_for(pod_set, &class.extended_resource_name));
        true
    }

    /// Recomputes the pending workloads with such a pod set.
    fn resolve_again(&mut self, concerns: impl Fn(&str, &PodSet) -> bool) {
        let pending: Vec<WorkloadId> = self
            .workloads
            .iter()
            .filter(|(_, record)| record.spec.original.iter().any(|set| concerns(record.key().namespace(), set)))
            .filter(|(_, record)| Stage::of(&record.workload) == Stage::Pending)
            .map(|(id, _)| id)
            .collect();
        for id in pending {
            let workload = self.workload_object(id);
            self.apply_workload(workload);
        }
    }
}

/// Does a pod set claim devices through this template?
fn claims(pod_set: &PodSet, template: &str) -> bool {
    pod_set.template.spec.resource_claims.iter().any(|claim| claim.template_name.as_deref() == Some(template))
}
