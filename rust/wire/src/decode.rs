//! JSON bytes to objects of the core.
//!
//! Two doors: [`Door::Trusted`] takes what an API server has already checked, [`Door::People`] does the API
//! server's work first: shapes, defaults, validation, and a warning for every field that nobody knows.

mod meta;
mod others;
mod pod;
mod quotas;
mod status;
mod workload;

use std::borrow::Cow;
use std::collections::BTreeMap;

use kueuecore::gates::Gates;
use kueuecore::objects::{
    Admission, LimitRangeItem, Meta, Object, OtherKind, PodSet, PodSpec, ResourceList, WorkloadStatus,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::field_error::{FieldError, ObjectRef, Rejection, quoted, rendered};
use crate::kinds::{KUEUE_GROUP, Kind, group_of};
use crate::schema::{self, Schema};
use crate::{convert, defaults, read, validate};

/// How much the sender is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Manifests: strict shapes, defaults, validation for create, warnings for unknown fields.
    People,
    /// What an API server stored: taken as it is, nothing defaulted, absent is empty.
    Trusted,
}

/// What came out of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The objects, each with its position in the batch (lists flattened).
    pub objects: Vec<(Object, usize)>,
    /// Fields that were ignored.
    pub warnings: Vec<Warning>,
    /// Objects of kinds that are not read.
    pub foreign: Vec<Foreign>,
}

/// A field that was ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The object.
    pub object: ObjectRef,
    /// Position of the object in the batch.
    pub index: usize,
    /// Path of the field.
    pub field: String,
    /// What is odd about it, and what may have been meant.
    pub message: String,
}

/// An object of a kind that is not read, such as a Deployment: for the caller to convert or to warn about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foreign {
    /// Position in the batch.
    pub index: usize,
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

/// Decodes one object, a `List` (of any kind), a JSON array of objects, or several objects one after another
/// (newline-delimited JSON).
/// Feature gates are at their defaults; [`decode_with`] takes others.
///
/// # Errors
/// Every object that is refused, with all that is wrong with it; nothing is taken from a batch with a refused object.
pub fn decode(data: &[u8], door: Door) -> Result<Decoded, Vec<Rejection>> {
    decode_with(data, door, &Gates::default())
}

/// [`decode`] with other feature gates; they only count at [`Door::People`].
///
/// # Errors
/// As [`decode`].
pub fn decode_with(data: &[u8], door: Door, gates: &Gates) -> Result<Decoded, Vec<Rejection>> {
    let mut batch = Batch {
        door,
        gates,
        schemas: BTreeMap::new(),
        next_index: 0,
        decoded: Decoded::default(),
        rejections: Vec::new(),
    };
    for item in serde_json::Deserializer::from_slice(data).into_iter::<&RawValue>() {
        match item {
            Ok(raw) => batch.take(raw.get(), None, 0),
            Err(error) => {
                batch.reject(ObjectRef::default(), vec![FieldError::invalid("", "", format!("not JSON: {error}"))]);
                break;
            }
        }
    }
    if batch.rejections.is_empty() { Ok(batch.decoded) } else { Err(batch.rejections) }
}

/// Decodes one object that is already a JSON value, as [`Door::Trusted`] does.
///
/// # Errors
/// What is wrong with its shape, or with its kind.
pub fn decode_value(value: &Value) -> Result<Object, Box<Rejection>> {
    let text = |value: &Value, name| value.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let (api_version, kind) = (text(value, "apiVersion"), text(value, "kind"));
    let decoded = match find_kind(&api_version, &kind) {
        Ok(Some(found)) => preferred(found, &api_version, &Source::Value(value)),
        Ok(None) => Err(FieldError::invalid("kind", quoted(&kind), "is not a kind that is read")),
        Err(error) => Err(error),
    };
    decoded.map_err(|error| {
        let metadata = value.get("metadata").unwrap_or(&Value::Null);
        let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
        Box::new(Rejection { index: 0, object: ObjectRef { api_version, kind, namespace, name }, errors: vec![error] })
    })
}

/// Decodes a resource list.
///
/// # Errors
/// The first entry that is no quantity; its path is the resource.
pub fn resource_list(value: &Value) -> Result<ResourceList, FieldError> {
    typed_value::<read::Resources>(value).map(|resources| resources.0)
}

/// Decodes a pod's `spec`, nothing defaulted.
///
/// # Errors
/// The first field with a wrong shape; its path starts at the spec.
pub fn pod_spec(value: &Value) -> Result<PodSpec, FieldError> {
    typed_value::<pod::PodSpecWire>(value).map(Into::into)
}

/// Decodes one entry of a Workload's `spec.podSets`, nothing defaulted.
///
/// # Errors
/// The first field with a wrong shape; its path starts at the pod set.
pub fn pod_set(value: &Value) -> Result<PodSet, FieldError> {
    typed_value::<workload::PodSetWire>(value).map(Into::into)
}

/// Decodes one entry of a LimitRange's `spec.limits`, nothing defaulted.
///
/// # Errors
/// The first field with a wrong shape; its path starts at the entry.
pub fn limit_range_item(value: &Value) -> Result<LimitRangeItem, FieldError> {
    typed_value::<others::LimitWire>(value).map(Into::into)
}

/// Decodes a Workload's `status`, nothing defaulted.
///
/// # Errors
/// The first field with a wrong shape; its path starts at the status.
pub fn workload_status(value: &Value) -> Result<WorkloadStatus, FieldError> {
    typed_value::<status::StatusWire>(value).map(Into::into)
}

/// Decodes a Workload's `status.admission`.
///
/// # Errors
/// The first field with a wrong shape; its path starts at the admission.
pub fn admission(value: &Value) -> Result<Admission, FieldError> {
    typed_value::<status::AdmissionWire>(value).map(Into::into)
}

/// One of the `podSetUpdates` of an admission check, kept as text in the status.
pub(crate) fn pod_set_updates(text: &str) -> Vec<status::PodSetUpdate> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The kind of a decoded object.
#[must_use]
pub fn kind_of(object: &Object) -> Kind {
    match object {
        Object::Namespace(_) => Kind::Namespace,
        Object::ResourceFlavor(_) => Kind::ResourceFlavor,
        Object::Topology(_) => Kind::Topology,
        Object::Cohort(_) => Kind::Cohort,
        Object::ClusterQueue(_) => Kind::ClusterQueue,
        Object::LocalQueue(_) => Kind::LocalQueue,
        Object::AdmissionCheck(_) => Kind::AdmissionCheck,
        Object::WorkloadPriorityClass(_) => Kind::WorkloadPriorityClass,
        Object::PriorityClass(_) => Kind::PriorityClass,
        Object::LimitRange(_) => Kind::LimitRange,
        Object::RuntimeClass(_) => Kind::RuntimeClass,
        Object::Workload(_) => Kind::Workload,
        Object::Other { kind, .. } => match kind {
            OtherKind::ProvisioningRequestConfig => Kind::ProvisioningRequestConfig,
            OtherKind::MultiKueueConfig => Kind::MultiKueueConfig,
            OtherKind::MultiKueueCluster => Kind::MultiKueueCluster,
            OtherKind::Node => Kind::Node,
            OtherKind::Pod => Kind::Pod,
        },
    }
}

/// The metadata of a decoded object.
#[must_use]
pub fn meta_of(object: &Object) -> &Meta {
    match object {
        Object::Namespace(meta) | Object::Other { meta, .. } => meta,
        Object::ResourceFlavor(o) => &o.meta,
        Object::Topology(o) => &o.meta,
        Object::Cohort(o) => &o.meta,
        Object::ClusterQueue(o) => &o.meta,
        Object::LocalQueue(o) => &o.meta,
        Object::AdmissionCheck(o) => &o.meta,
        Object::WorkloadPriorityClass(o) | Object::PriorityClass(o) => &o.meta,
        Object::LimitRange(o) => &o.meta,
        Object::RuntimeClass(o) => &o.meta,
        Object::Workload(o) => &o.meta,
    }
}

/// What must be known of an object before it can be read.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Head<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct HeadMeta {
    name: Option<String>,
    namespace: Option<String>,
}

/// Lists may stand in lists; the bound keeps hostile input from exhausting the stack.
const MAX_LIST_DEPTH: usize = 16;

struct Batch<'g> {
    door: Door,
    gates: &'g Gates,
    /// By kind and whether it is an old version; built when first met.
    schemas: BTreeMap<(Kind, bool), Schema>,
    next_index: usize,
    decoded: Decoded,
    rejections: Vec<Rejection>,
}

impl Batch<'_> {
    /// Takes an object, or a list of objects. `inherited` is the version and kind of the list around it, which
    /// its entries need not repeat.
    fn take(&mut self, raw: &str, inherited: Option<(&str, &str)>, depth: usize) {
        if depth > MAX_LIST_DEPTH {
            let detail = format!("must not be nested in more than {MAX_LIST_DEPTH} lists");
            return self.reject(ObjectRef::default(), vec![FieldError::invalid("", "", detail)]);
        }
        if raw.starts_with('[') {
            return self.take_all(raw, "", inherited, depth);
        }
        let head: Head<'_> = match serde_json::from_str(raw) {
            Ok(head) => head,
            Err(_) if !raw.starts_with('{') => return self.reject_shape(raw, "", "must be an object".to_owned()),
            Err(error) => return self.reject_shape(raw, "", without_position(&error.to_string())),
        };
        let api_version = head.api_version.as_deref().or(inherited.map(|(version, _)| version)).unwrap_or("");
        let kind = head.kind.as_deref().or(inherited.map(|(_, kind)| kind)).unwrap_or("");
        if let (Some(items), Some(item_kind)) = (head.items, kind.strip_suffix("List")) {
            let inherited = if item_kind.is_empty() { None } else { Some((api_version, item_kind)) };
            return self.take_all(items.get(), "items", inherited, depth);
        }
        self.take_object(raw, api_version, kind, &head);
    }

    fn take_all(&mut self, raw: &str, path: &str, inherited: Option<(&str, &str)>, depth: usize) {
        match serde_json::from_str::<Option<Vec<&RawValue>>>(raw) {
            Ok(items) => {
                for item in items.unwrap_or_default() {
                    self.take(item.get(), inherited, depth + 1);
                }
            }
            Err(error) => self.reject_shape(raw, path, without_position(&error.to_string())),
        }
    }

    fn take_object(&mut self, raw: &str, api_version: &str, kind: &str, head: &Head<'_>) {
        let found = match find_kind(api_version, kind) {
            Ok(found) => found,
            Err(error) => return self.reject(reference(api_version, kind, head), vec![error]),
        };
        let Some(found) = found else {
            let of = reference(api_version, kind, head);
            self.decoded.foreign.push(Foreign {
                index: self.next_index,
                api_version: of.api_version,
                kind: of.kind,
                namespace: of.namespace,
                name: of.name,
            });
            self.next_index += 1;
            return;
        };
        let result = match self.door {
            Door::Trusted => preferred(found, api_version, &Source::Text(raw)).map_err(|error| vec![error]),
            Door::People => self.manifest(raw, found, api_version, &reference(api_version, kind, head)),
        };
        match result {
            Ok(object) => {
                self.decoded.objects.push((object, self.next_index));
                self.next_index += 1;
            }
            Err(errors) => self.reject(reference(api_version, kind, head), errors),
        }
    }

    /// What an API server does with a new manifest: defaults, the schema, conversion, the webhooks.
    fn manifest(
        &mut self,
        raw: &str,
        kind: Kind,
        api_version: &str,
        reference: &ObjectRef,
    ) -> Result<Object, Vec<FieldError>> {
        let mut value: Value = serde_json::from_str(raw).map_err(|error| vec![not_json(&error)])?;
        defaults::namespace(kind, &mut value);
        // v1alpha1 is no longer served anywhere: it is read as what it became.
        let old = kind.is_kueue() && api_version.ends_with("/v1beta1");
        if !old {
            convert::to_preferred(kind, api_version, &mut value);
        }
        let schema = self.schemas.entry((kind, old)).or_insert_with(|| schema::of(kind, old));
        let unknown = schema.prepare(&mut value);
        let index = self.next_index;
        self.decoded.warnings.extend(unknown.into_iter().map(|unknown| Warning {
            object: reference.clone(),
            index,
            message: match unknown.meant {
                Some(meant) => format!("unknown field {}, did you mean {}?", quoted(&unknown.path), quoted(meant)),
                None => format!("unknown field {}", quoted(&unknown.path)),
            },
            field: unknown.path,
        }));
        let errors = validate::manifest(kind, schema, &value);
        if !errors.is_empty() {
            return Err(errors);
        }
        if old {
            convert::to_preferred(kind, api_version, &mut value);
            self.schemas.entry((kind, false)).or_insert_with(|| schema::of(kind, false)).prepare(&mut value);
        }
        let mut object = object(kind, &Source::Value(&value)).map_err(|error| vec![error])?;
        defaults::webhooks(&mut object, self.gates);
        let errors = validate::create(&object, self.gates);
        if errors.is_empty() { Ok(object) } else { Err(errors) }
    }

    fn reject_shape(&mut self, raw: &str, path: &str, detail: String) {
        let value = serde_json::from_str::<Value>(raw).unwrap_or_default();
        self.reject(ObjectRef::default(), vec![FieldError::invalid(path, rendered(&value), detail)]);
    }

    fn reject(&mut self, object: ObjectRef, errors: Vec<FieldError>) {
        self.rejections.push(Rejection { index: self.next_index, object, errors });
        self.next_index += 1;
    }
}

/// The kind to read; `None` for one that is not ours.
fn find_kind(api_version: &str, kind: &str) -> Result<Option<Kind>, FieldError> {
    if kind.is_empty() {
        return Err(FieldError::required("kind", ""));
    }
    if api_version.is_empty() {
        return Err(FieldError::required("apiVersion", ""));
    }
    let group = group_of(api_version);
    match Kind::find(group, kind) {
        Some(found) if found.api_versions().contains(&api_version) => Ok(Some(found)),
        Some(found) => Err(FieldError::unsupported("apiVersion", quoted(api_version), found.api_versions())),
        None if group == KUEUE_GROUP => {
            let ours: Vec<&str> = Kind::ALL.into_iter().filter(|k| k.is_kueue()).map(Kind::name).collect();
            Err(FieldError::unsupported("kind", quoted(kind), &ours))
        }
        None => Ok(None),
    }
}

fn reference(api_version: &str, kind: &str, head: &Head<'_>) -> ObjectRef {
    let meta: HeadMeta = head.metadata.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    ObjectRef {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: meta.namespace.unwrap_or_default(),
        name: meta.name.unwrap_or_default(),
    }
}

/// Reads an object of any version, as it is.
fn preferred(kind: Kind, api_version: &str, source: &Source<'_>) -> Result<Object, FieldError> {
    if !kind.is_kueue() || api_version == kind.preferred_version() {
        return object(kind, source);
    }
    let mut value = match source {
        Source::Text(raw) => serde_json::from_str(raw).map_err(|error| not_json(&error))?,
        Source::Value(value) => (*value).clone(),
    };
    convert::to_preferred(kind, api_version, &mut value);
    object(kind, &Source::Value(&value))
}

/// Where an object is read from.
pub(crate) enum Source<'a> {
    Text(&'a str),
    Value(&'a Value),
}

impl Source<'_> {
    fn read<W: DeserializeOwned>(&self) -> Result<W, FieldError> {
        match self {
            Source::Text(raw) => typed(raw),
            Source::Value(value) => typed_value(value),
        }
    }
}

/// Reads an object of the preferred version.
pub(crate) fn object(kind: Kind, source: &Source<'_>) -> Result<Object, FieldError> {
    let other = |kind| Ok(Object::Other { kind, meta: source.read::<others::MetaOnly>()?.metadata });
    Ok(match kind {
        Kind::Workload => Object::Workload(Box::new(source.read::<workload::WorkloadWire>()?.into())),
        Kind::ClusterQueue => Object::ClusterQueue(source.read::<quotas::ClusterQueueWire>()?.into()),
        Kind::Cohort => Object::Cohort(source.read::<quotas::CohortWire>()?.into()),
        Kind::LocalQueue => Object::LocalQueue(source.read::<quotas::LocalQueueWire>()?.into()),
        Kind::ResourceFlavor => Object::ResourceFlavor(source.read::<others::FlavorWire>()?.into()),
        Kind::Topology => Object::Topology(source.read::<others::TopologyWire>()?.into()),
        Kind::AdmissionCheck => Object::AdmissionCheck(source.read::<others::CheckWire>()?.into()),
        Kind::WorkloadPriorityClass => {
            Object::WorkloadPriorityClass(source.read::<others::PriorityClassWire>()?.into())
        }
        Kind::PriorityClass => Object::PriorityClass(source.read::<others::PriorityClassWire>()?.into()),
        Kind::Namespace => Object::Namespace(source.read::<others::MetaOnly>()?.metadata),
        Kind::LimitRange => Object::LimitRange(source.read::<others::LimitRangeWire>()?.into()),
        Kind::RuntimeClass => Object::RuntimeClass(source.read::<others::RuntimeClassWire>()?.into()),
        Kind::ProvisioningRequestConfig => return other(OtherKind::ProvisioningRequestConfig),
        Kind::MultiKueueConfig => return other(OtherKind::MultiKueueConfig),
        Kind::MultiKueueCluster => return other(OtherKind::MultiKueueCluster),
        Kind::Node => return other(OtherKind::Node),
        Kind::Pod => return other(OtherKind::Pod),
    })
}

/// Reads text; only when that fails, again with the path tracked and the offending value looked up.
fn typed<W: DeserializeOwned>(raw: &str) -> Result<W, FieldError> {
    serde_json::from_str(raw).map_err(|error| {
        match serde_json::from_str::<Value>(raw) {
            // A duplicate key is an error of the text alone: a value keeps only the last one.
            Ok(value) => typed_value::<W>(&value)
                .err()
                .unwrap_or_else(|| FieldError::invalid("", "", without_position(&error.to_string()))),
            Err(error) => not_json(&error),
        }
    })
}

fn typed_value<W: DeserializeOwned>(value: &Value) -> Result<W, FieldError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let offending = at_path(value, error.path()).map_or_else(String::new, rendered);
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        FieldError::invalid(path, offending, without_position(&error.inner().to_string()))
    })
}

fn at_path<'a>(value: &'a Value, path: &serde_path_to_error::Path) -> Option<&'a Value> {
    use serde_path_to_error::Segment;
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Seq { index } => value.get(index),
        Segment::Map { key } => value.get(key),
        Segment::Enum { .. } | Segment::Unknown => None,
    })
}

/// JSON that is well-formed at a glance and yet cannot be read: nested too deep, or text that is no Unicode.
fn not_json(error: &serde_json::Error) -> FieldError {
    FieldError::invalid("", "", without_position(&error.to_string()))
}

/// The message without serde_json's line and column, which count from the start of the object.
fn without_position(message: &str) -> String {
    message.find(" at line ").map_or(message, |end| &message[..end]).to_owned()
}

#[cfg(test)]
mod tests;
