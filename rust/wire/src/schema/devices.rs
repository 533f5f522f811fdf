//! The kinds of `resource.k8s.io` that are charged to quota (rules/09 §8).

use super::{Schema, any, boolean, field, int64, kind, kubernetes, list, object, text};

// In v1beta1 the fields of `exactly` were in the request itself; they are still accepted there.
pub(super) fn claim_template() -> Schema {
    let selector = || object([field("cel", object([field("expression", text()).required()]))]);
    let exact_fields = || {
        vec![
            field("deviceClassName", text()),
            field("selectors", list(selector())),
            field("allocationMode", text()),
            field("count", int64()),
            field("adminAccess", boolean()),
            field("tolerations", any()),
            field("capacity", any()),
        ]
    };
    let mut request = vec![
        field("name", text()).required(),
        field("exactly", object(exact_fields())),
        field("firstAvailable", list(any())),
    ];
    request.extend(exact_fields());
    let devices =
        object([field("requests", list(object(request))), field("constraints", any()), field("config", any())]);
    let claim = object([field("devices", devices)]);
    kind([
        field("spec", object([field("metadata", kubernetes::metadata()), field("spec", claim).required()])).required()
    ])
}

pub(super) fn device_class() -> Schema {
    let spec = object([
        field("selectors", any()),
        field("config", any()),
        field("extendedResourceName", text()),
        field("suitableNodes", any()),
        field("managementMode", any()),
    ]);
    kind([field("spec", spec).required()])
}
