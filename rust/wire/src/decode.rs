//! Decodes JSON bytes into objects of the core.
//!
//! [`Door::Trusted`] takes objects that an API server has checked. [`Door::People`] first does the API server's work:
//! shapes, defaults, validation, and a warning for every unknown field.

mod batch;
mod devices;
mod direct;
mod effective;
mod manifest;
mod objects;
mod outline;

pub(crate) use batch::add_warnings;
use kueuecore::base::changes::Changes;
use kueuecore::objects::config::Config;
use kueuecore::objects::fields::maybe_resources;
use kueuecore::objects::{Admission, LimitRangeItem, Object, PodSet, PodSpec, ResourceList, WorkloadStatus};
pub(crate) use manifest::Manifest;
pub(crate) use objects::object;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::field_error::{ErrorKind, FieldError, ObjectRef, Rejection, Warning, quoted, rendered};
use crate::kinds::{KUEUE_GROUP, Kind, group_of, is_known, is_read_as_it_is};
use crate::shaped::Shaped;
use crate::{convert, duplicates};

/// How much the sender is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Manifests: strict shapes, defaults, validation for create, warnings for unknown fields.
    People,
    /// Objects that an API server stored: taken as they are, nothing is defaulted, absent means empty.
    Trusted,
}

/// The result of decoding a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The objects, each with its position in the batch (lists flattened).
    pub objects: Vec<(Object, usize)>,
    /// Fields that were ignored.
    pub warnings: Vec<Warning>,
    /// Objects of other kinds.
    pub foreign: Vec<Foreign>,
}

/// An object of a kind that is not read, such as a Deployment: the caller converts it or warns about it.
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
/// (newline-delimited JSON), as the newest Kueue with its default settings; [`decode_with`] takes others.
///
/// # Errors
/// Every rejected object with all its errors; if one is rejected, nothing of the batch is taken.
pub fn decode(data: &[u8], door: Door) -> Result<Decoded, Vec<Rejection>> {
    decode_with(data, door, &Config::default())
}

/// [`decode`] with the gates and changes of other settings; they matter at [`Door::People`], and where a status gives
/// effective quotas.
///
/// # Errors
/// As [`decode`].
pub fn decode_with(data: &[u8], door: Door, config: &Config) -> Result<Decoded, Vec<Rejection>> {
    batch::run(data, door, config)
}

/// Decodes one object that is already a JSON value, as [`Door::Trusted`] does.
///
/// # Errors
/// A wrong shape or kind.
pub fn decode_value(value: &Value) -> Result<Object, Box<Rejection>> {
    let text = |value: &Value, name| value.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let (api_version, kind) = (text(value, "apiVersion"), text(value, "kind"));
    let decoded = match find_kind(&api_version, &kind, Changes::default()) {
        Ok(Some(found)) if is_read_as_it_is(found, &api_version) => object(found, value),
        Ok(Some(found)) => converted(found, &api_version, value.clone()),
        Ok(None) => Err(FieldError::invalid("kind", quoted(&kind), "is not a kind that is read")),
        Err(error) => Err(error),
    };
    decoded.map_err(|error| {
        let metadata = value.get("metadata").unwrap_or(&Value::Null);
        let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
        let object = ObjectRef { api_version, kind, namespace, name };
        Box::new(Rejection { index: 0, object, errors: vec![error], warnings: Vec::new() })
    })
}

/// Decodes a resource list.
///
/// # Errors
/// The first entry that is not a quantity; its path is the resource.
pub fn resource_list(value: &Value) -> Result<ResourceList, FieldError> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Listed(#[serde(deserialize_with = "maybe_resources")] Option<ResourceList>);
    typed_value::<Listed>(value).map(|listed| listed.0.unwrap_or_default())
}

/// Decodes a pod's `spec`, nothing defaulted.
///
/// # Errors
/// The first field with a wrong shape; its path starts at the spec.
pub fn pod_spec(value: &Value) -> Result<PodSpec, FieldError> {
    typed_value(value)
}

/// Decodes one entry of a Workload's `spec.podSets`, nothing defaulted.
///
/// # Errors
/// The first field with a wrong shape; its path starts at the pod set.
pub fn pod_set(value: &Value) -> Result<PodSet, FieldError> {
    typed_value(value)
}

/// Decodes one entry of a LimitRange's `spec.limits`, nothing defaulted.
///
/// # Errors
/// The first field with a wrong shape; its path starts at the entry.
pub fn limit_range_item(value: &Value) -> Result<LimitRangeItem, FieldError> {
    typed_value(value)
}

/// Decodes a Workload's `status`, nothing defaulted.
///
/// # Errors
/// The first field with a wrong shape; its path starts at the status.
pub fn workload_status(value: &Value) -> Result<WorkloadStatus, FieldError> {
    typed_value(value).map(objects::with_updates)
}

/// Decodes a Workload's `status.admission`.
///
/// # Errors
/// The first field with a wrong shape; its path starts at the admission.
pub fn admission(value: &Value) -> Result<Admission, FieldError> {
    typed_value(value)
}

/// The kind of an object, in a Kueue with these changes; `None` for one that is not read.
fn find_kind(api_version: &str, kind: &str, changes: Changes) -> Result<Option<Kind>, FieldError> {
    if kind.is_empty() {
        return Err(FieldError::required("kind", ""));
    }
    if api_version.is_empty() {
        return Err(FieldError::required("apiVersion", ""));
    }
    let group = group_of(api_version);
    match Kind::find(group, kind).filter(|it| is_known(*it, changes)) {
        Some(found) if found.api_versions().contains(&api_version) => Ok(Some(found)),
        Some(found) => Err(FieldError::unsupported("apiVersion", quoted(api_version), found.api_versions())),
        None if group == KUEUE_GROUP => {
            let ours = Kind::ALL.iter().filter(|kind| kind.is_kueue() && is_known(**kind, changes));
            let ours: Vec<&str> = ours.map(|kind| kind.name()).collect();
            Err(FieldError::unsupported("kind", quoted(kind), &ours))
        }
        None => Ok(None),
    }
}

/// Reads an object of an older version.
fn converted(kind: Kind, api_version: &str, mut value: Value) -> Result<Object, FieldError> {
    convert::to_preferred(kind, api_version, &mut value);
    object(kind, &value)
}

/// Where an object is read from.
pub(crate) trait Source {
    type Error;

    fn read<W: DeserializeOwned>(self) -> Result<W, Self::Error>;
}

impl Source for &str {
    type Error = FieldError;

    /// Reads the value. On failure it is read again to find the path and the offending value.
    fn read<W: DeserializeOwned>(self) -> Result<W, FieldError> {
        serde_json::from_str(self).map(|shaped: Shaped<W>| shaped.0).map_err(|error| {
            match serde_json::from_str::<Value>(self) {
                // A duplicate key is an error only in the text: a value keeps just the last one.
                Ok(value) => typed_value::<W>(&value).err().unwrap_or_else(|| {
                    let twice = duplicates::read(self.as_bytes()).ok().and_then(|(_, paths)| paths.into_iter().next());
                    FieldError::unshown(twice.unwrap_or_default(), in_words(&error.to_string()))
                }),
                Err(error) => not_json(self, &error),
            }
        })
    }
}

impl Source for &Value {
    type Error = FieldError;

    fn read<W: DeserializeOwned>(self) -> Result<W, FieldError> {
        typed_value(self)
    }
}

fn typed_value<W: DeserializeOwned>(value: &Value) -> Result<W, FieldError> {
    serde_path_to_error::deserialize(value).map(|shaped: Shaped<W>| shaped.0).map_err(|error| {
        let offending = at_path(value, error.path()).map(rendered);
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        let detail = in_words(&error.inner().to_string());
        FieldError { path, kind: ErrorKind::Invalid, value: offending, detail }
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

/// The error for JSON that is well-formed but unreadable: nested too deeply, a number beyond float64, or text that is
/// not Unicode. The text is read once more to find the path.
fn not_json(text: &str, error: &serde_json::Error) -> FieldError {
    let again = serde_path_to_error::deserialize::<_, Value>(&mut serde_json::Deserializer::from_str(text));
    let path = again.err().map(|error| error.path().to_string()).filter(|path| path != ".").unwrap_or_default();
    FieldError::unshown(path, in_words(&error.to_string()))
}

/// serde's message in terms of JSON: what the value must be. The value is reported separately; line and column are
/// dropped because they would count from the start of the object.
fn in_words(message: &str) -> String {
    let is_of_type = message.starts_with("invalid type: ") || message.starts_with("invalid value: ");
    let (found, expected) = message.rsplit_once(", expected ").filter(|_| is_of_type).unwrap_or(("", message));
    let expected = expected.rfind(" at line ").map_or(expected, |end| &expected[..end]);
    match expected {
        _ if found.is_empty() => expected.to_owned(),
        "i32" => "must be an integer of 32 bits".to_owned(),
        "i64" => "must be an integer of 64 bits".to_owned(),
        "f64" => "must be a number".to_owned(),
        "a sequence" => "must be a list".to_owned(),
        "a map" => "must be an object".to_owned(),
        other => format!("must be {other}"),
    }
}

#[cfg(test)]
mod tests;
