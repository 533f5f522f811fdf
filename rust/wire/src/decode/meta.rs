//! `metadata`, and label selectors.

use kueuecore::objects::{LabelSelector, Meta, OwnerReference, Requirement, StringMap, Time};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::read::{list, nil, time};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct MetaWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "nil")]
    namespace: String,
    #[serde(deserialize_with = "nil")]
    uid: String,
    #[serde(deserialize_with = "time")]
    creation_timestamp: Time,
    #[serde(deserialize_with = "nil")]
    generation: i64,
    #[serde(deserialize_with = "nil")]
    labels: StringMap,
    #[serde(deserialize_with = "nil")]
    annotations: StringMap,
    #[serde(deserialize_with = "list::<_, OwnerWire, _>")]
    owner_references: Vec<OwnerReference>,
    deletion_timestamp: Option<IgnoredAny>,
}

impl From<MetaWire> for Meta {
    fn from(wire: MetaWire) -> Self {
        Meta {
            name: wire.name,
            namespace: wire.namespace,
            uid: wire.uid,
            created: wire.creation_timestamp,
            generation: wire.generation,
            labels: wire.labels,
            annotations: wire.annotations,
            owners: wire.owner_references,
            deleting: wire.deletion_timestamp.is_some(),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct OwnerWire {
    #[serde(deserialize_with = "nil")]
    api_version: String,
    #[serde(deserialize_with = "nil")]
    kind: String,
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "nil")]
    uid: String,
    #[serde(deserialize_with = "nil")]
    controller: bool,
}

impl From<OwnerWire> for OwnerReference {
    fn from(wire: OwnerWire) -> Self {
        OwnerReference {
            api_version: wire.api_version,
            kind: wire.kind,
            name: wire.name,
            uid: wire.uid,
            controller: wire.controller,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SelectorWire {
    #[serde(deserialize_with = "nil")]
    match_labels: StringMap,
    #[serde(deserialize_with = "list::<_, RequirementWire, _>")]
    match_expressions: Vec<Requirement>,
}

impl From<SelectorWire> for LabelSelector {
    fn from(wire: SelectorWire) -> Self {
        LabelSelector { match_labels: wire.match_labels, match_expressions: wire.match_expressions }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RequirementWire {
    #[serde(deserialize_with = "nil")]
    key: String,
    #[serde(deserialize_with = "nil")]
    operator: String,
    #[serde(deserialize_with = "nil")]
    values: Vec<String>,
}

impl From<RequirementWire> for Requirement {
    fn from(wire: RequirementWire) -> Self {
        Requirement { key: wire.key, operator: wire.operator, values: wire.values }
    }
}
