//! Decoding a batch: lists are unpacked, every object is read and, at [`Door::People`], checked.

use std::collections::BTreeMap;

use kueuecore::objects::Object;
use kueuecore::objects::config::Config;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::direct::Direct;
use super::effective;
use super::manifest::Manifest;
use super::outline::{Item, Outline};
use super::{Decoded, Door, Foreign, converted, find_kind, in_words, not_json, object};
use crate::field_error::{FieldError, ObjectRef, Rejection, Warning, rendered};
use crate::kinds::{Kind, is_read_as_it_is, is_served};
use crate::shaped::Shaped;
use crate::{defaults, validate};

/// Reads everything in `data`, one JSON value after another.
pub(super) fn run(data: &[u8], door: Door, config: &Config) -> Result<Decoded, Vec<Rejection>> {
    let mut batch = Batch { door, config, next_index: 0, decoded: Decoded::default(), rejections: Vec::new() };
    let (text, stray) = text_of(data);
    let mut rest = text;
    loop {
        let read = batch.take_direct(rest);
        if read > 0 {
            rest = &rest[read..];
            continue;
        }
        let mut items = serde_json::Deserializer::from_str(rest).into_iter();
        let wrong = match items.next() {
            Some(Ok(item)) => {
                let (raw, behind) = rest.split_at(items.byte_offset());
                batch.take(raw.trim_ascii_start(), &item, None, 0);
                rest = behind;
                continue;
            }
            Some(Err(error)) => stray.or_else(|| first_error(text)).or_else(|| Some(error.to_string())),
            None => stray,
        };
        if let Some(wrong) = wrong {
            batch.reject(ObjectRef::default(), vec![FieldError::unshown("", format!("not JSON: {wrong}"))]);
        }
        break;
    }
    if batch.rejections.is_empty() {
        return Ok(batch.decoded);
    }
    add_warnings(&mut batch.rejections, &batch.decoded.warnings);
    Err(batch.rejections)
}

/// The first error in a stream of JSON values, with its position in the whole stream.
fn first_error(text: &str) -> Option<String> {
    let mut items = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    items.find_map(Result::err).map(|error| error.to_string())
}

/// The valid text at the start of the data, and what is wrong with the rest.
fn text_of(data: &[u8]) -> (&str, Option<String>) {
    match std::str::from_utf8(data) {
        Ok(text) => (text, None),
        Err(error) => {
            let text = std::str::from_utf8(&data[..error.valid_up_to()]).expect("valid up to there");
            let (line, column) = (text.matches('\n').count() + 1, text.len() - text.rfind('\n').map_or(0, |at| at + 1));
            (text, Some(format!("invalid unicode code point at line {line} column {}", column + 1)))
        }
    }
}

/// Adds the warnings about its object to each rejection.
pub(crate) fn add_warnings(rejections: &mut [Rejection], warnings: &[Warning]) {
    let mut of_object: BTreeMap<usize, Vec<&Warning>> = BTreeMap::new();
    for warning in warnings {
        of_object.entry(warning.index).or_default().push(warning);
    }
    for rejection in rejections {
        let found = of_object.get(&rejection.index).into_iter().flatten();
        rejection.warnings = found.map(|&warning| warning.clone()).collect();
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Names {
    name: Option<String>,
    namespace: Option<String>,
}

/// Lists may be nested; the bound keeps hostile input from exhausting the stack.
const MAX_LIST_DEPTH: usize = 16;

struct Batch<'c> {
    door: Door,
    config: &'c Config,
    next_index: usize,
    decoded: Decoded,
    rejections: Vec<Rejection>,
}

impl Batch<'_> {
    /// Takes the object at the start of the text if it can be read directly; returns its length.
    fn take_direct(&mut self, text: &str) -> usize {
        if self.door == Door::People {
            return 0;
        }
        let mut items = serde_json::Deserializer::from_str(text).into_iter();
        let Some(Ok(Direct(mut object))) = items.next() else { return 0 };
        let n_read = items.byte_offset();
        if effective::apply(&mut object, &text[..n_read], self.config).is_err() {
            return 0;
        }
        self.keep(object);
        n_read
    }

    fn keep(&mut self, object: Object) {
        self.decoded.objects.push((object, self.next_index));
        self.next_index += 1;
    }

    /// Takes an object, or a list of objects. `inherited` is the version and kind of the enclosing list, which its
    /// entries need not repeat.
    fn take(&mut self, raw: &str, item: &Item<'_>, inherited: Option<(&str, &str)>, depth: usize) {
        if depth > MAX_LIST_DEPTH {
            let detail = format!("must not be nested in more than {MAX_LIST_DEPTH} lists");
            return self.reject(ObjectRef::default(), vec![FieldError::unshown("", detail)]);
        }
        let outline = match item {
            Item::Object(outline) => outline,
            Item::List => return self.take_all(raw, "", inherited, depth),
            Item::Other => return self.reject_shape(raw, "", "must be an object".to_owned()),
        };
        let (api_version, kind) = match outline.identity() {
            Ok(identity) => identity,
            Err(error) => return self.reject_shape(raw, "", in_words(&error)),
        };
        let api_version = api_version.as_deref().or(inherited.map(|(version, _)| version)).unwrap_or("");
        let kind = kind.as_deref().or(inherited.map(|(_, kind)| kind)).unwrap_or("");
        if let (Some(items), Some(item_kind)) = (outline.items, kind.strip_suffix("List")) {
            let inherited = if item_kind.is_empty() { None } else { Some((api_version, item_kind)) };
            return self.take_all(items.get(), "items", inherited, depth);
        }
        self.take_object(raw, api_version, kind, outline);
    }

    fn take_all(&mut self, raw: &str, path: &str, inherited: Option<(&str, &str)>, depth: usize) {
        match serde_json::from_str::<Option<Vec<&RawValue>>>(raw) {
            Ok(items) => {
                for item in items.unwrap_or_default() {
                    if self.take_direct(item.get()) > 0 {
                        continue;
                    }
                    match serde_json::from_str(item.get()) {
                        Ok(shape) => self.take(item.get(), &shape, inherited, depth + 1),
                        Err(error) => self.reject_shape(item.get(), "", in_words(&error.to_string())),
                    }
                }
            }
            Err(error) => self.reject_shape(raw, path, in_words(&error.to_string())),
        }
    }

    fn take_object(&mut self, raw: &str, api_version: &str, kind: &str, outline: &Outline<'_>) {
        let found = match find_kind(api_version, kind, self.config.changes) {
            Ok(found) => found,
            Err(error) => return self.reject(reference(api_version, kind, outline), vec![error]),
        };
        let Some(found) = found else {
            let of = reference(api_version, kind, outline);
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
        if self.door == Door::People && !is_served(found, api_version, self.config.changes) {
            let detail = format!("no matches for kind \"{}\" in version \"{api_version}\"", found.name());
            let error = FieldError::unshown("apiVersion", detail);
            return self.reject(reference(api_version, kind, outline), vec![error]);
        }
        let result = match self.door {
            Door::Trusted if is_read_as_it_is(found, api_version) => object(found, raw).map_err(|error| vec![error]),
            Door::Trusted => match serde_json::from_str(raw) {
                Ok(value) => converted(found, api_version, value).map_err(|error| vec![error]),
                Err(error) => Err(vec![not_json(raw, &error)]),
            },
            Door::People => self.manifest(raw, found, api_version, &reference(api_version, kind, outline)),
        };
        let result = result.and_then(|mut object| match effective::apply(&mut object, raw, self.config) {
            Ok(()) => Ok(object),
            Err(error) => Err(vec![FieldError::unshown("status.effectiveQuotas", in_words(&error))]),
        });
        match result {
            Ok(object) => self.keep(object),
            Err(errors) => self.reject(reference(api_version, kind, outline), errors),
        }
    }

    /// What an API server does with a new manifest: defaults, schema, conversion, webhooks.
    fn manifest(
        &mut self,
        raw: &str,
        kind: Kind,
        api_version: &str,
        reference: &ObjectRef,
    ) -> Result<Object, Vec<FieldError>> {
        let mut manifest =
            Manifest::prepare(raw, kind, api_version, self.config.changes).map_err(|error| vec![error])?;
        let index = self.next_index;
        let warnings = std::mem::take(&mut manifest.warnings).into_iter();
        self.decoded.warnings.extend(warnings.map(|(field, message)| Warning {
            object: reference.clone(),
            index,
            field,
            message,
        }));
        defaults::webhooks(kind, &mut manifest.value, &self.config.gates);
        manifest.check()?;
        manifest.convert();
        let mut object = manifest.read().map_err(|error| vec![error])?;
        defaults::complete(&mut object);
        let errors = validate::create(&object, self.config);
        if errors.is_empty() { Ok(object) } else { Err(errors) }
    }

    fn reject_shape(&mut self, raw: &str, path: &str, detail: String) {
        let error = match serde_json::from_str::<Value>(raw) {
            Ok(value) => FieldError::invalid(path, rendered(&value), detail),
            Err(error) => not_json(raw, &error),
        };
        self.reject(ObjectRef::default(), vec![error]);
    }

    fn reject(&mut self, object: ObjectRef, errors: Vec<FieldError>) {
        self.rejections.push(Rejection { index: self.next_index, object, errors, warnings: Vec::new() });
        self.next_index += 1;
    }
}

fn reference(api_version: &str, kind: &str, outline: &Outline<'_>) -> ObjectRef {
    let meta = outline.metadata.and_then(|raw| serde_json::from_str::<Shaped<Names>>(raw.get()).ok());
    let meta = meta.map(|shaped| shaped.0).unwrap_or_default();
    ObjectRef {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: meta.namespace.unwrap_or_default(),
        name: meta.name.unwrap_or_default(),
    }
}
