//! A request with a list of alternatives, of which Kubernetes takes the first one that there are devices for (rules/09
//! §8).

use crate::base::gates::Gate;
use crate::objects::DeviceRequest;

use super::{DeviceRules, Uncounted, invalid, sources};

impl DeviceRules<'_> {
    /// The resource and the number of devices that a request is charged, whichever alternative is taken.
    pub(super) fn charge_alternatives(&self, request: &DeviceRequest, path: &str) -> Result<(&str, i64), Uncounted> {
        if !self.gates.enabled(Gate::KueueDRAIntegrationPrioritizedList) {
            return Err(invalid(path, "null", "FirstAvailable device selection is not supported"));
        }
        if request.exactly.is_some() {
            return Err(invalid(path, "null", "exactly one of exactly or firstAvailable must be set"));
        }
        let mut charge: Option<(&str, i64)> = None;
        for (i, alternative) in request.first_available.iter().enumerate() {
            let field = |name: &str| format!("{path}.firstAvailable[{i}].{name}");
            let refused = |name: &str, what: String, detail: &str| Uncounted::Refused {
                field: field(name),
                what,
                detail: detail.to_owned(),
            };
            let (mode, class, count) =
                (&alternative.allocation_mode, alternative.device_class_name.as_str(), alternative.count);
            if mode != "ExactCount" {
                let what = format!("Unsupported value: {mode:?}");
                return Err(refused("allocationMode", what, "supported values: \"ExactCount\""));
            }
            if count < 0 {
                return Err(invalid(field("count"), &count.to_string(), "must not be negative"));
            }
            if class.is_empty() {
                return Err(refused("deviceClassName", "Required value".to_owned(), ""));
            }
            let Some(resource) = self.resources.device_classes.get(class) else {
                return Err(refused("deviceClassName", format!("Not found: {class:?}"), ""));
            };
            if sources(self.resources, self.gates, class).is_some() {
                let detail = "a counter-backed or capacity-backed DeviceClass is not supported for firstAvailable";
                return Err(invalid(field("deviceClassName"), &format!("{class:?}"), detail));
            }
            let (first, asked) = *charge.get_or_insert((resource, count));
            if resource != first {
                let detail = format!("every alternative must map to {first:?}, this one maps to {resource:?}");
                return Err(invalid(field("deviceClassName"), &format!("{class:?}"), detail));
            }
            if count != asked {
                let detail = format!("every alternative must have count {asked}, this one has {count}");
                return Err(invalid(field("count"), &count.to_string(), detail));
            }
        }
        charge.ok_or_else(|| invalid(path, "null", "Exactly must be set if FirstAvailable is nil"))
    }
}
