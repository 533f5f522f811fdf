//! What an API server knows about a kind: fields, shapes, bounds, defaults and rules across fields.
//!
//! [`Schema::prepare`] does what happens before validation (drops unknown fields and nulls, fills in defaults),
//! [`Schema::check`] validates with the API server's messages.

mod check;
mod container;
mod devices;
mod export;
mod flavor;
mod kubernetes;
mod kueue;
mod patterns;
mod place;
mod pod;
mod prepare;
mod queue_statuses;
mod rule;
mod status;
mod volume;
mod workload;

use std::collections::BTreeMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use kueuecore::base::changes::{Change, Changes};
use serde_json::{Number, Value, json};

pub(crate) use check::blocks_rules;
pub use export::open_api;
pub(crate) use patterns::Pattern;
use rule::{Outcome, Rule};

use crate::field_error::FieldError;
use crate::kinds::Kind;

/// The shape of a value, and what must hold for it.
pub(crate) struct Schema {
    shape: Shape,
    /// Replaces null, and a field that is absent.
    default: Option<Value>,
    rules: Vec<Rule>,
}

/// A field of an object.
pub(crate) struct Field {
    name: &'static str,
    schema: Schema,
    required: bool,
}

enum Shape {
    Object(Vec<Field>),
    Map {
        value: Box<Schema>,
        max: usize,
    },
    List {
        item: Box<Schema>,
        min: usize,
        max: usize,
        kind: ListKind,
    },
    Text {
        min: usize,
        max: usize,
        pattern: Option<Pattern>,
        one_of: &'static [&'static str],
    },
    Integer {
        bits: u32,
        min: i64,
    },
    Boolean,
    Quantity,
    IntOrText,
    Time,
    /// Anything is accepted.
    Any,
    /// Anything is accepted; a CustomResourceDefinition does not know the field.
    Unknown,
    /// What a CustomResourceDefinition knows, and how deep this schema checks it.
    Partly {
        known: Box<Schema>,
        checked: Box<Schema>,
    },
}

/// What makes the entries of a list unique (`x-kubernetes-list-type`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListKind {
    Atomic,
    /// No entry may occur twice.
    Set,
    /// No two entries may have the same values of these fields.
    Map(&'static [&'static str]),
}

/// How Kueue serves a kind: in which version, and with which of its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Served {
    /// Is it v1beta1 of one of Kueue's own kinds?
    pub(crate) old: bool,
    changes: Changes,
}

/// The changes of Kueue in its CustomResourceDefinitions.
const CHANGES: [Change; 13] = [
    Change::PodSetsUpToTen,
    Change::PodSetsUpToEighteen,
    Change::LocalQueueStatusLimit64,
    Change::QueueNameFixedWhileReserved,
    Change::PodSetSliceSizeMinimum,
    Change::SubGroupCountMinimum,
    Change::TopologyLevelsMutable,
    Change::TopologyFlavorLabelsMutable,
    Change::TopologyFlavorTaintsMutable,
    Change::SchemaFieldsOf017,
    Change::SchemaFieldsOf018,
    Change::MinCountMayBeZero,
    Change::SchemaFieldsOf020,
];

impl Served {
    /// A kind in v1beta1, if it has it, or in the preferred version.
    pub(crate) fn of(kind: Kind, old: bool, changes: Changes) -> Self {
        let some: &[Change] = if kind.is_kueue() { &CHANGES } else { &[] };
        Self { old: old && kind.is_kueue(), changes: changes.among(some) }
    }

    /// The same kind in the preferred version.
    pub(crate) fn preferred(self) -> Self {
        Self { old: false, ..self }
    }

    fn has(self, change: Change) -> bool {
        self.changes.has(change)
    }

    /// The most pod sets of a Workload.
    fn most_pod_sets(self) -> usize {
        match (self.has(Change::PodSetsUpToTen), self.has(Change::PodSetsUpToEighteen)) {
            (false, _) => 8,
            (true, false) => 10,
            (true, true) => 18,
        }
    }
}

/// The schema of a kind.
pub(crate) fn of(kind: Kind, served: Served) -> &'static Schema {
    static SCHEMAS: RwLock<BTreeMap<(Kind, Served), &'static Schema>> = RwLock::new(BTreeMap::new());
    let made = SCHEMAS.read().unwrap_or_else(PoisonError::into_inner).get(&(kind, served)).copied();
    made.unwrap_or_else(|| {
        // They stay for ever: releases of Kueue are few.
        let schema: &'static Schema = Box::leak(Box::new(make(kind, served)));
        *SCHEMAS.write().unwrap_or_else(PoisonError::into_inner).entry((kind, served)).or_insert(schema)
    })
}

/// Errors in the shape of an object's `metadata`.
pub(crate) fn metadata_errors(metadata: &Value) -> Vec<FieldError> {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| object([field("metadata", kubernetes::metadata())]));
    let mut object = json!({"metadata": metadata});
    SCHEMA.prepare(&mut object);
    SCHEMA.check(&object)
}

fn make(kind: Kind, served: Served) -> Schema {
    let old = served.old;
    match kind {
        Kind::ClusterQueue => kueue::cluster_queue(served),
        Kind::Cohort => kueue::cohort(served),
        Kind::LocalQueue => kueue::local_queue(served),
        Kind::ResourceFlavor => kueue::resource_flavor(served),
        Kind::Topology => kueue::topology(served),
        Kind::AdmissionCheck => kueue::admission_check(old),
        Kind::WorkloadPriorityClass => kueue::workload_priority_class(old),
        Kind::MultiKueueConfig => kueue::multikueue_config(served),
        Kind::MultiKueueCluster => kueue::multikueue_cluster(old),
        Kind::ProvisioningRequestConfig => kueue::provisioning_request_config(old),
        // Its rules are not read.
        Kind::PreemptionConfig => kubernetes::with_spec(any()),
        Kind::Workload => workload::workload(served),
        Kind::LimitRange => kubernetes::limit_range(),
        Kind::RuntimeClass => kubernetes::runtime_class(),
        Kind::PriorityClass => kubernetes::priority_class(),
        Kind::ResourceClaimTemplate => devices::claim_template(),
        Kind::DeviceClass => devices::device_class(),
        Kind::Node => kubernetes::node(),
        // What is read of a pod is checked on reading; unknown fields are reported for the Workload built from it.
        Kind::Namespace | Kind::Pod => kubernetes::with_spec(any()),
    }
}

impl Schema {
    /// Are there rules across fields, including those for updates?
    pub(crate) fn has_rules(&self) -> bool {
        let of_parts = || match &self.shape {
            Shape::Object(fields) => fields.iter().any(|field| field.schema.has_rules()),
            Shape::Map { value, .. } => value.has_rules(),
            Shape::List { item, .. } => item.has_rules(),
            Shape::Partly { known, .. } => known.has_rules(),
            _ => false,
        };
        !self.rules.is_empty() || of_parts()
    }

    fn new(shape: Shape) -> Self {
        Self { shape, default: None, rules: Vec::new() }
    }

    /// Adds a rule with its message, in CEL and as it is checked here.
    fn rule<O: Into<Outcome>>(
        mut self,
        message: &'static str,
        expression: &'static str,
        rule: impl Fn(&Value) -> O + Send + Sync + 'static,
    ) -> Self {
        self.rules.push(Rule::new(message, expression, rule));
        self
    }

    /// Adds a rule for updates, in CEL: `validate::update` checks it on objects.
    fn on_update(mut self, message: &'static str, expression: &'static str) -> Self {
        self.rules.push(Rule::on_update(message, expression));
        self
    }

    fn default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// At least `n` entries or characters.
    fn at_least(mut self, n: usize) -> Self {
        if let Shape::List { min, .. } | Shape::Text { min, .. } = &mut self.shape {
            *min = n;
        }
        self
    }

    /// At most `n` entries or characters.
    fn at_most(mut self, n: usize) -> Self {
        if let Shape::List { max, .. } | Shape::Text { max, .. } | Shape::Map { max, .. } = &mut self.shape {
            *max = n;
        }
        self
    }

    /// No duplicate entries.
    fn unique(mut self) -> Self {
        if let Shape::List { kind, .. } = &mut self.shape {
            *kind = ListKind::Set;
        }
        self
    }

    /// No two entries with the same values in these fields.
    fn unique_by(mut self, keys: &'static [&'static str]) -> Self {
        if let Shape::List { kind, .. } = &mut self.shape {
            *kind = ListKind::Map(keys);
        }
        self
    }

    /// Text that matches this pattern.
    fn like(mut self, wanted: Pattern) -> Self {
        if let Shape::Text { pattern, .. } = &mut self.shape {
            *pattern = Some(wanted);
        }
        self
    }

    /// Checks only lists, and of those only the length: callers leave out much of a status.
    fn lists_alone(self) -> Self {
        let checked = match &self.shape {
            Shape::Object(fields) => object(fields.iter().map(|it| field(it.name, it.schema.of_lists()))),
            _ => self.of_lists(),
        };
        Schema::new(Shape::Partly { known: Box::new(self), checked: Box::new(checked) })
    }

    fn of_lists(&self) -> Self {
        let has_lists = |field: &Field| matches!(field.schema.of_lists().shape, Shape::List { .. } | Shape::Object(_));
        match &self.shape {
            Shape::Object(fields) if fields.iter().any(has_lists) => {
                object(fields.iter().map(|it| field(it.name, it.schema.of_lists())))
            }
            Shape::List { item, min, max, .. } => list(item.of_lists()).at_least(*min).at_most(*max),
            _ => any(),
        }
    }

    /// Adds fields to an object.
    fn with(mut self, more: impl IntoIterator<Item = Field>) -> Self {
        if let Shape::Object(fields) = &mut self.shape {
            fields.extend(more);
        }
        self
    }

    /// Requires fields of an object.
    fn needs(mut self, names: &[&str]) -> Self {
        if let Shape::Object(fields) = &mut self.shape {
            let named = fields.iter_mut().filter(|field| names.contains(&field.name));
            named.for_each(|field| field.required = true);
        }
        self
    }
}

impl Field {
    fn required(mut self) -> Self {
        self.required = true;
        self
    }

    fn default(mut self, value: impl Into<Value>) -> Self {
        self.schema = self.schema.default(value);
        self
    }
}

fn field(name: &'static str, schema: Schema) -> Field {
    Field { name, schema, required: false }
}

/// Several fields of one shape.
fn fields<'a>(names: &'a [&'static str], shape: fn() -> Schema) -> impl Iterator<Item = Field> + 'a {
    names.iter().map(move |name| field(name, shape()))
}

fn object(fields: impl IntoIterator<Item = Field>) -> Schema {
    Schema::new(Shape::Object(fields.into_iter().collect()))
}

fn map(value: Schema) -> Schema {
    Schema::new(Shape::Map { value: Box::new(value), max: usize::MAX })
}

fn list(item: Schema) -> Schema {
    Schema::new(Shape::List { item: Box::new(item), min: 0, max: usize::MAX, kind: ListKind::Atomic })
}

fn text() -> Schema {
    Schema::new(Shape::Text { min: 0, max: usize::MAX, pattern: None, one_of: &[] })
}

fn one_of(values: &'static [&'static str]) -> Schema {
    Schema::new(Shape::Text { min: 0, max: usize::MAX, pattern: None, one_of: values })
}

/// The name of another object: a DNS subdomain.
fn reference() -> Schema {
    text().at_most(253).like(Pattern::Subdomain)
}

fn int32() -> Schema {
    Schema::new(Shape::Integer { bits: 32, min: i64::MIN })
}

fn int32_from(min: i64) -> Schema {
    Schema::new(Shape::Integer { bits: 32, min })
}

fn int64() -> Schema {
    int64_from(i64::MIN)
}

fn int64_from(min: i64) -> Schema {
    Schema::new(Shape::Integer { bits: 64, min })
}

fn boolean() -> Schema {
    Schema::new(Shape::Boolean)
}

fn quantity() -> Schema {
    Schema::new(Shape::Quantity)
}

fn texts() -> Schema {
    list(text())
}

fn int_or_text() -> Schema {
    Schema::new(Shape::IntOrText)
}

fn time() -> Schema {
    Schema::new(Shape::Time)
}

fn any() -> Schema {
    Schema::new(Shape::Any)
}

fn unknown() -> Schema {
    Schema::new(Shape::Unknown)
}

/// The fields of every object, followed by those of the kind.
fn kind(fields: impl IntoIterator<Item = Field>) -> Schema {
    object([field("apiVersion", text()), field("kind", text()), field("metadata", kubernetes::metadata())]).with(fields)
}

/// `1.0` is an integer in JSON schemas, up to where all integers are exact.
#[allow(clippy::float_cmp)]
fn is_whole(number: &Number) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |float: f64| float.trunc() == float && (-EXACT..EXACT).contains(&float);
    number.is_i64() || number.as_f64().is_some_and(whole)
}

/// Writes `1.0` and the like as an integer, so that readers of the value accept it.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn write_integers(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_i64() && is_whole(number) => {
            *value = Value::from(number.as_f64().unwrap_or_default() as i64);
        }
        Value::Array(items) => items.iter_mut().for_each(write_integers),
        Value::Object(fields) => fields.values_mut().for_each(write_integers),
        _ => {}
    }
}

/// Is the field there?
fn has(value: &Value, name: &str) -> bool {
    value.get(name).is_some()
}

/// The text of a field; empty if absent.
fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

/// The entries of a list field; none if absent.
fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The entries of a list.
fn entries(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
