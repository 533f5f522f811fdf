//! How the device claims of a waiting workload are charged to its quota (rules/09 §8).
//!
//! Claims are counted and mapped to resources. What depends on the devices that drivers publish, such as a CEL
//! expression or a counter, is unknown here: such a workload stays undecided, with the responsible field.

mod alternatives;
mod extended;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub(crate) use extended::asks_for;

use crate::base::changes::Changes;
use crate::base::gates::{Gate, Gates};
use crate::base::quantity::{Family, Quantity};
use crate::objects::config::{DeviceSourceKind, Resources};
use crate::objects::{DeviceClass, PodSet, ResourceClaimTemplate, ResourceList};
use crate::pods::lists;
use crate::pods::totals::DeviceRequests;

/// Without the gate nothing is charged, so the workload is not admitted either.
const GATE_OFF: &str = "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled";
/// A claim by name may be shared by many pods, which quota cannot see.
const CLAIM_BY_NAME: &str = "KueueDRAIntegration feature does not support use of resource claims";
/// The same in condition Requeued.
const CLAIM_BY_NAME_REQUEUED: &str = "DRA resource claims not supported";

/// The device charges of a pending workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Devices {
    /// They change its requests.
    Charged(DeviceRequests),
    /// It is not queued.
    Refused(Refusal),
    /// It depends on the devices that drivers publish.
    Undecided {
        /// Path of the field that requests them.
        field: String,
        /// Why it is not decided.
        message: String,
    },
}

/// Why a workload is not queued, with Kueue's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For condition QuotaReserved.
    pub message: String,
    /// For condition Requeued.
    pub requeued_message: String,
}

impl Devices {
    /// The changes to its requests.
    #[must_use]
    pub fn charged(&self) -> Option<&DeviceRequests> {
        match self {
            Devices::Charged(requests) => Some(requests),
            Devices::Refused(_) | Devices::Undecided { .. } => None,
        }
    }

    fn refused(message: &str, requeued_message: &str) -> Self {
        Self::Refused(Refusal { message: message.to_owned(), requeued_message: requeued_message.to_owned() })
    }
}

/// The inputs for device charges.
pub struct DeviceRules<'a> {
    /// The templates of its namespace by name; `None`: it has none.
    pub templates: Option<&'a BTreeMap<String, ResourceClaimTemplate>>,
    /// DeviceClasses by name.
    pub classes: &'a BTreeMap<String, DeviceClass>,
    /// The resources to which devices are charged.
    pub resources: &'a Resources,
    /// Feature gates.
    pub gates: Gates,
    /// The changes of Kueue in effect.
    pub changes: Changes,
}

impl DeviceRules<'_> {
    /// The device charges of a workload with these pod sets, as applied and as adjusted; `None` if it requests no
    /// devices.
    #[must_use]
    pub(crate) fn resolve(&self, original: &[PodSet], adjusted: &[PodSet]) -> Option<Devices> {
        let claims = original.iter().any(|pod_set| pod_set.template.spec.claims_devices());
        if !claims && self.classes.is_empty() {
            return None;
        }
        if !self.gates.enabled(Gate::KueueDRAIntegration) {
            let refused = claims && self.gates.enabled(Gate::KueueDRARejectWorkloadsWhenDRADisabled);
            return refused.then(|| Devices::refused(GATE_OFF, GATE_OFF));
        }
        (claims || self.asks_for_backed_resources(original)).then(|| self.charge(adjusted))
    }

    fn charge(&self, pod_sets: &[PodSet]) -> Devices {
        let by_name = |pod_set: &PodSet| pod_set.template.spec.resource_claims.iter().any(|c| c.claim_name.is_some());
        if pod_sets.iter().any(by_name) {
            return Devices::refused(CLAIM_BY_NAME, CLAIM_BY_NAME_REQUEUED);
        }
        let (mut requests, mut published) = match self.charge_claims(pod_sets) {
            Ok(charged) => charged,
            Err(devices) => return devices,
        };
        if self.gates.enabled(Gate::KueueDRAIntegrationExtendedResource)
            && let Err(errors) = self.charge_extended_resources(pod_sets, &mut requests)
        {
            let message = aggregate(errors);
            return Devices::refused(&message, &message);
        }
        if self.gates.enabled(Gate::KueueDRADeviceFeasibility) {
            published.get_or_insert_with(|| Devices::Undecided {
                field: "spec.podSets".to_owned(),
                message: "claims devices, and gate KueueDRADeviceFeasibility leaves out nodes without enough of them; \
                          which those are is not known here"
                    .to_owned(),
            });
        }
        published.unwrap_or(Devices::Charged(requests))
    }
}

/// The devices of a claim.
#[derive(Default)]
struct Counts {
    by_class: BTreeMap<String, i64>,
    /// Those of lists of alternatives, by the resource that all of them are charged to.
    by_resource: BTreeMap<String, i64>,
}

/// They cannot be counted; the field is below the path of the claim.
enum Uncounted {
    /// Path and text of a field error, without its detail.
    Refused {
        field: String,
        /// The kind of error, with the value if that is shown.
        what: String,
        detail: String,
    },
    Undecided {
        field: String,
        by: &'static str,
    },
}

impl DeviceRules<'_> {
    /// The charges of all claims of a workload, and whether they depend on published devices. The first claim that
    /// cannot be charged decides.
    fn charge_claims(&self, pod_sets: &[PodSet]) -> Result<(DeviceRequests, Option<Devices>), Devices> {
        let mut requests = DeviceRequests::default();
        let mut published = None;
        for (i, pod_set) in pod_sets.iter().enumerate() {
            let mut added = ResourceList::new();
            for (j, claim) in pod_set.template.spec.resource_claims.iter().enumerate() {
                let Some(template) = &claim.template_name else { continue };
                let path = format!("spec.podSets[{i}].template.spec.resourceClaims[{j}]");
                let counts = self.count(template, &pod_set.name, &path)?;
                for (class, count) in counts.by_class {
                    let Some(resource) = self.resources.device_classes.get(&class) else {
                        let name = &pod_set.name;
                        let message = format!(
                            "{path}.resourceClaimTemplateName: Not found: \"DeviceClass {class} is not mapped in DRA \
                             configuration for podset {name}\""
                        );
                        return Err(Devices::refused(&message, &message));
                    };
                    if let Some(what) = sources(self.resources, self.gates, &class) {
                        published.get_or_insert_with(|| Devices::Undecided {
                            field: path.clone(),
                            message: format!(
                                "claims devices of DeviceClass {class}, which are charged by the {what} that drivers \
                                 publish; that is not charged here"
                            ),
                        });
                        continue;
                    }
                    add_units(&mut added, resource, count);
                }
                counts.by_resource.iter().for_each(|(resource, count)| add_units(&mut added, resource, *count));
            }
            if !added.is_empty() {
                requests.added.insert(pod_set.name.clone(), added);
            }
        }
        Ok((requests, published))
    }

    /// The devices of one claim.
    fn count(&self, template: &str, pod_set: &str, path: &str) -> Result<Counts, Devices> {
        let Some(object) = self.templates.and_then(|templates| templates.get(template)) else {
            let message = format!(
                "{path}: Internal error: failed to get claim spec for ResourceClaimTemplate {template} in podset \
                 {pod_set}: ResourceClaimTemplate.resource.k8s.io \"{template}\" not found"
            );
            return Err(Devices::refused(&message, &message));
        };
        self.count_devices(object).map_err(|uncounted| match uncounted {
            Uncounted::Refused { field, what, detail } => {
                let message = format!("{path}.{field}: {what}: ResourceClaimTemplate {template}: {detail}");
                Devices::refused(&message, &message)
            }
            Uncounted::Undecided { field, by } => Devices::Undecided {
                field: path.to_owned(),
                message: format!(
                    "claims devices by {by} (ResourceClaimTemplate {template}, {field}), which are not counted here"
                ),
            },
        })
    }
}

fn add_units(list: &mut ResourceList, resource: &str, units: i64) {
    let quantity = Quantity::from_units(units, Family::DecimalSi);
    lists::add(list, &ResourceList::from([(resource.to_owned(), quantity)]));
}

fn invalid(field: impl Into<String>, value: &str, detail: impl Into<String>) -> Uncounted {
    Uncounted::Refused { field: field.into(), what: format!("Invalid value: {value}"), detail: detail.into() }
}

impl DeviceRules<'_> {
    /// The devices of a template. Devices with admin access are free.
    fn count_devices(&self, template: &ResourceClaimTemplate) -> Result<Counts, Uncounted> {
        let mut counts = Counts::default();
        for (i, request) in template.requests.iter().enumerate() {
            let path = format!("devices.requests[{i}]");
            if !request.first_available.is_empty() {
                let (resource, count) = self.charge_alternatives(request, &path)?;
                let sum = counts.by_resource.entry(resource.to_owned()).or_default();
                *sum = sum.saturating_add(count);
                continue;
            }
            let Some(exactly) = &request.exactly else {
                return Err(invalid(path, "null", "Exactly must be set if FirstAvailable is nil"));
            };
            if exactly.has_expressions {
                let field = format!("{path}.exactly.selectors");
                return Err(Uncounted::Undecided { field, by: "a CEL expression" });
            }
            if exactly.admin_access {
                continue;
            }
            let mode = &exactly.allocation_mode;
            if mode != "ExactCount" {
                let detail = match mode.as_str() {
                    "All" => "AllocationMode 'All' is not supported".to_owned(),
                    other => format!("unsupported allocation mode: {other}"),
                };
                return Err(invalid(format!("{path}.exactly.allocationMode"), &format!("{mode:?}"), detail));
            }
            if !exactly.device_class_name.is_empty() {
                let count = counts.by_class.entry(exactly.device_class_name.clone()).or_default();
                *count = count.saturating_add(exactly.count);
            }
        }
        Ok(counts)
    }
}

/// Is a device class charged by what drivers publish, and how?
fn sources(resources: &Resources, gates: Gates, class: &str) -> Option<&'static str> {
    let has = |kind: DeviceSourceKind| {
        let of_class = |mapping: &&crate::objects::config::DeviceClassMapping| {
            mapping.device_class_names.iter().any(|c| c == class)
        };
        resources.device_class_mappings.iter().filter(of_class).any(|m| m.sources.iter().any(|s| s.kind == kind))
    };
    if gates.enabled(Gate::KueueDRAIntegrationPartitionableDevices) && has(DeviceSourceKind::Counter) {
        Some("counters")
    } else if gates.enabled(Gate::KueueDRAIntegrationConsumableCapacity) && has(DeviceSourceKind::Capacity) {
        Some("capacity")
    } else {
        None
    }
}

/// Several errors as one text: a single one plain, several as a list without duplicates.
fn aggregate(errors: Vec<String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for error in errors {
        if !distinct.contains(&error) {
            distinct.push(error);
        }
    }
    match distinct.as_slice() {
        [error] => error.clone(),
        errors => format!("[{}]", errors.join(", ")),
    }
}
