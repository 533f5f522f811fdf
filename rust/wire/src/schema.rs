//! What an API server knows of a kind: fields, shapes, bounds, defaults and rules over several fields.
//!
//! [`Schema::prepare`] does what happens before validation (unknown fields and nulls go, defaults come),
//! [`Schema::check`] is the validation itself, in the API server's words.

mod check;
mod devices;
mod kubernetes;
mod kueue;
mod patterns;
mod prepare;
mod status;
mod workload;

use serde_json::Value;

pub(crate) use check::blocks_rules;
pub(crate) use patterns::Pattern;

use crate::kinds::Kind;

/// A rule over a part: true when it holds.
pub(crate) type Rule = fn(&Value) -> bool;

/// The shape of a value, and what must hold for it.
pub(crate) struct Schema {
    shape: Shape,
    /// Message and rule, as CEL rules of the CustomResourceDefinition.
    rules: Vec<(&'static str, Rule)>,
}

/// A field of an object.
pub(crate) struct Field {
    name: &'static str,
    schema: Schema,
    required: bool,
    default: Option<Value>,
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
        unique: Unique,
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
    Time,
    /// Not looked into.
    Any,
}

/// What tells the entries of a list apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unique {
    No,
    Whole,
    By(&'static [&'static str]),
}

/// The schema of a kind. `old` asks for v1beta1 of Kueue's own kinds.
pub(crate) fn of(kind: Kind, old: bool) -> Schema {
    match kind {
        Kind::ClusterQueue => kueue::cluster_queue(old),
        Kind::Cohort => kueue::cohort(),
        Kind::LocalQueue => kueue::local_queue(),
        Kind::ResourceFlavor => kueue::resource_flavor(),
        Kind::Topology => kueue::topology(),
        Kind::AdmissionCheck => kueue::admission_check(old),
        Kind::WorkloadPriorityClass => kueue::workload_priority_class(),
        Kind::MultiKueueConfig => kueue::multikueue_config(old),
        Kind::MultiKueueCluster => kueue::multikueue_cluster(old),
        Kind::ProvisioningRequestConfig => kueue::provisioning_request_config(),
        Kind::Workload => workload::workload(old),
        Kind::LimitRange => kubernetes::limit_range(),
        Kind::RuntimeClass => kubernetes::runtime_class(),
        Kind::PriorityClass => kubernetes::priority_class(),
        Kind::ResourceClaimTemplate => devices::claim_template(),
        Kind::DeviceClass => devices::device_class(),
        Kind::Namespace | Kind::Node | Kind::Pod => kubernetes::with_spec(any()),
    }
}

impl Schema {
    fn new(shape: Shape) -> Self {
        Self { shape, rules: Vec::new() }
    }

    /// Adds a rule with its message.
    fn rule(mut self, message: &'static str, rule: Rule) -> Self {
        self.rules.push((message, rule));
        self
    }

    /// At least so many entries or characters.
    fn at_least(mut self, n: usize) -> Self {
        if let Shape::List { min, .. } | Shape::Text { min, .. } = &mut self.shape {
            *min = n;
        }
        self
    }

    /// At most so many entries or characters.
    fn at_most(mut self, n: usize) -> Self {
        if let Shape::List { max, .. } | Shape::Text { max, .. } | Shape::Map { max, .. } = &mut self.shape {
            *max = n;
        }
        self
    }

    /// No entry twice.
    fn unique(mut self) -> Self {
        if let Shape::List { unique, .. } = &mut self.shape {
            *unique = Unique::Whole;
        }
        self
    }

    /// No two entries with the same values of these fields.
    fn unique_by(mut self, keys: &'static [&'static str]) -> Self {
        if let Shape::List { unique, .. } = &mut self.shape {
            *unique = Unique::By(keys);
        }
        self
    }

    /// Text of this pattern.
    fn like(mut self, wanted: Pattern) -> Self {
        if let Shape::Text { pattern, .. } = &mut self.shape {
            *pattern = Some(wanted);
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
        self.default = Some(value.into());
        self
    }
}

fn field(name: &'static str, schema: Schema) -> Field {
    Field { name, schema, required: false, default: None }
}

fn object(fields: impl Into<Vec<Field>>) -> Schema {
    Schema::new(Shape::Object(fields.into()))
}

/// An object with these known fields, none of which is looked into.
fn known(names: &[&'static str]) -> Vec<Field> {
    names.iter().map(|name| field(name, any())).collect()
}

fn map(value: Schema) -> Schema {
    Schema::new(Shape::Map { value: Box::new(value), max: usize::MAX })
}

fn list(item: Schema) -> Schema {
    Schema::new(Shape::List { item: Box::new(item), min: 0, max: usize::MAX, unique: Unique::No })
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
    Schema::new(Shape::Integer { bits: 64, min: i64::MIN })
}

fn boolean() -> Schema {
    Schema::new(Shape::Boolean)
}

fn quantity() -> Schema {
    Schema::new(Shape::Quantity)
}

fn time() -> Schema {
    Schema::new(Shape::Time)
}

fn any() -> Schema {
    Schema::new(Shape::Any)
}

/// The fields of every object, then those of the kind.
fn kind(fields: impl Into<Vec<Field>>) -> Schema {
    let mut all = vec![field("apiVersion", text()), field("kind", text()), field("metadata", kubernetes::metadata())];
    all.extend(fields.into());
    object(all)
}

/// Is the field there?
fn has(value: &Value, name: &str) -> bool {
    value.get(name).is_some()
}

/// The text of a field, empty when it is not there.
fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

/// The entries of a list field, none when it is not there.
fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
