//! ResourceClaimTemplate and DeviceClass of `resource.k8s.io`, with the defaults that an API server fills in.

use kueuecore::objects::{DeviceRequest, ExactDeviceRequest, Object, ResourceClaimTemplate};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct TemplateSpec {
    spec: ClaimSpec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ClaimSpec {
    devices: Devices,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Devices {
    requests: Vec<RequestWire>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RequestWire {
    exactly: Option<ExactWire>,
    #[serde(deserialize_with = "nil")]
    first_available: Vec<Value>,
    /// v1beta1 has these fields here; later versions moved them into `exactly`.
    #[serde(flatten)]
    of_v1beta1: ExactWire,
}

#[derive(Deserialize, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct ExactWire {
    #[serde(deserialize_with = "nil")]
    device_class_name: String,
    #[serde(deserialize_with = "nil")]
    selectors: Vec<Value>,
    #[serde(deserialize_with = "nil")]
    allocation_mode: String,
    #[serde(deserialize_with = "nil")]
    count: i64,
    admin_access: Option<bool>,
}

impl From<RequestWire> for DeviceRequest {
    fn from(wire: RequestWire) -> Self {
        let of_v1beta1 = Some(wire.of_v1beta1).filter(|exact| *exact != ExactWire::default());
        DeviceRequest {
            first_available: wire.first_available.iter().map(alternative).collect(),
            exactly: wire.exactly.or(of_v1beta1).map(Into::into),
        }
    }
}

/// Reads an alternative. Fields of another type count as absent: until they could be charged, nobody looked at them.
fn alternative(value: &Value) -> ExactDeviceRequest {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let wire = ExactWire {
        device_class_name: text("deviceClassName"),
        selectors: value.get("selectors").and_then(Value::as_array).cloned().unwrap_or_default(),
        allocation_mode: text("allocationMode"),
        count: value.get("count").and_then(Value::as_i64).unwrap_or_default(),
        admin_access: None,
    };
    wire.into()
}

impl From<ExactWire> for ExactDeviceRequest {
    fn from(wire: ExactWire) -> Self {
        let is_counted = matches!(wire.allocation_mode.as_str(), "" | "ExactCount");
        ExactDeviceRequest {
            device_class_name: wire.device_class_name,
            has_expressions: wire
                .selectors
                .iter()
                .any(|selector| selector.get("cel").is_some_and(|cel| !cel.is_null())),
            allocation_mode: if is_counted { "ExactCount".to_owned() } else { wire.allocation_mode },
            count: if is_counted && wire.count == 0 { 1 } else { wire.count },
            admin_access: wire.admin_access.unwrap_or(false),
        }
    }
}

/// A template, from its spec.
pub(super) fn claim_template(read: TemplateSpec) -> Object {
    let requests = read.spec.devices.requests.into_iter().map(DeviceRequest::from).collect();
    Object::ResourceClaimTemplate(ResourceClaimTemplate { requests, ..ResourceClaimTemplate::default() })
}

/// A value whose null means its default: readers of structs with flattened parts do not know what is a field.
fn nil<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use kueuecore::objects::{DeviceRequest, ExactDeviceRequest, Object};
    use serde_json::{Value, json};

    use crate::decode::{Door, decode, decode_value};

    fn requests(version: &str, requests: Value) -> Vec<DeviceRequest> {
        let template = json!({
            "apiVersion": format!("resource.k8s.io/{version}"), "kind": "ResourceClaimTemplate",
            "metadata": {"name": "t", "namespace": "ns"}, "spec": {"spec": {"devices": {"requests": requests}}},
        });
        let Ok(Object::ResourceClaimTemplate(template)) = decode_value(&template) else { panic!("a template") };
        template.requests
    }

    fn exactly(count: i64) -> ExactDeviceRequest {
        ExactDeviceRequest {
            device_class_name: "gpu".to_owned(),
            allocation_mode: "ExactCount".to_owned(),
            count,
            ..ExactDeviceRequest::default()
        }
    }

    #[test]
    fn a_request_is_for_one_device_unless_it_says_more() {
        let read = requests(
            "v1",
            json!([
                {"name": "a", "exactly": {"deviceClassName": "gpu"}},
                {"name": "b", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3}},
                {"name": "c", "exactly": {"deviceClassName": "gpu", "allocationMode": "All", "adminAccess": true}},
                {"name": "d", "exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "true"}}]}},
                {"name": "e", "exactly": {"deviceClassName": "gpu", "selectors": [{}]}},
                {"name": "f", "firstAvailable": [
                    {"name": "g", "deviceClassName": "gpu"}, {"name": "h", "deviceClassName": 7, "allocationMode": "All"},
                ]},
            ]),
        );
        let exact = |exactly| DeviceRequest { first_available: vec![], exactly: Some(exactly) };
        let unnamed = ExactDeviceRequest { allocation_mode: "All".to_owned(), ..ExactDeviceRequest::default() };
        let all = ExactDeviceRequest { allocation_mode: "All".to_owned(), admin_access: true, ..exactly(0) };
        assert_eq!(
            read,
            [
                exact(exactly(1)),
                exact(exactly(3)),
                exact(all),
                exact(ExactDeviceRequest { has_expressions: true, ..exactly(1) }),
                exact(exactly(1)),
                DeviceRequest { first_available: vec![exactly(1), unnamed], exactly: None },
            ]
        );
    }

    #[test]
    fn v1beta1_has_the_fields_in_the_request_itself() {
        let read = requests("v1beta1", json!([{"name": "a", "deviceClassName": "gpu", "count": 2}, {"name": "b"}]));
        let exact = DeviceRequest { first_available: vec![], exactly: Some(exactly(2)) };
        assert_eq!(read, [exact, DeviceRequest::default()]);
    }

    #[test]
    fn a_device_class_names_its_extended_resource() {
        let class = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "c"},
            "spec": {"extendedResourceName": "example.com/gpu"},
        });
        let Ok(Object::DeviceClass(class)) = decode_value(&class) else { panic!("a class") };
        assert_eq!((class.meta.name.as_str(), class.extended_resource_name.as_str()), ("c", "example.com/gpu"));
    }

    #[test]
    fn a_template_needs_a_namespace_and_numbers_where_numbers_belong() {
        let refusal = |metadata: Value, count: Value| {
            let template = json!({
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata,
                "spec": {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"count": count}}]}}},
            });
            let refused = decode(template.to_string().as_bytes(), Door::People).expect_err("must be refused");
            refused.iter().map(ToString::to_string).collect::<String>()
        };
        let named = json!({"name": "t", "namespace": "ns"});
        assert!(refusal(named, json!("2")).contains("spec.spec.devices.requests[0].exactly.count"));
        assert!(refusal(json!({"name": "t", "namespace": "a_b"}), json!(2)).contains("metadata.namespace"));
    }
}
