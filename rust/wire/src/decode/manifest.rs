//! One manifest as a user writes it: prepared as an API server does before it calls a webhook, then checked.

use kueuecore::base::changes::Changes;
use serde_json::Value;

use super::{not_json, object};
use crate::field_error::{FieldError, MAX_WARNINGS, quoted, rendered};
use crate::kinds::Kind;
use crate::schema::Served;
use crate::{convert, defaults, duplicates, schema, validate};

/// A prepared manifest: without unknown fields and nulls, with defaults.
pub(crate) struct Manifest {
    pub kind: Kind,
    pub value: Value,
    /// The ignored fields and why they were ignored; an entry without a path stands for several.
    pub warnings: Vec<(String, String)>,
    api_version: String,
    served: Served,
}

impl Manifest {
    /// Prepares a manifest as a Kueue with these changes serves its kind.
    ///
    /// # Errors
    /// Invalid JSON.
    pub fn prepare(raw: &str, kind: Kind, api_version: &str, changes: Changes) -> Result<Self, FieldError> {
        let (mut value, twice) = duplicates::read(raw.as_bytes()).map_err(|error| not_json(raw, &error))?;
        let mut warnings = Vec::new();
        let n_unnamed = twice.len().saturating_sub(MAX_WARNINGS);
        warnings.extend(twice.into_iter().take(MAX_WARNINGS).map(|path| {
            let message = format!("duplicate field {}: the last one counts", quoted(&path));
            (path, message)
        }));
        if n_unnamed > 0 {
            warnings.push((String::new(), format!("{n_unnamed} more duplicate fields: the last one of each counts")));
        }
        if let Some(namespace) = defaults::namespace(kind, &mut value) {
            let message = format!("namespace {} is ignored: a {} has none", rendered(&namespace), kind.name());
            warnings.push(("metadata.namespace".to_owned(), message));
        }
        // Kueue's v1beta1 has schemas of its own; older devices are read as their successors.
        let served = Served::of(kind, api_version.ends_with("/v1beta1"), changes);
        if !served.old {
            convert::to_preferred(kind, api_version, &mut value);
        }
        let unknown = schema::of(kind, served).prepare(&mut value);
        warnings.extend(unknown.fields.into_iter().map(|unknown| {
            let message = match unknown.meant {
                Some(meant) => format!("unknown field {}, did you mean {}?", quoted(&unknown.path), quoted(meant)),
                None => format!("unknown field {}", quoted(&unknown.path)),
            };
            (unknown.path, message)
        }));
        if unknown.n_more > 0 {
            warnings.push((String::new(), format!("{} more unknown fields", unknown.n_more)));
        }
        Ok(Self { kind, value, warnings, api_version: api_version.to_owned(), served })
    }

    /// Checks it against the schema of its kind and version.
    ///
    /// # Errors
    /// All schema errors.
    pub fn check(&self) -> Result<(), Vec<FieldError>> {
        let errors = validate::manifest(self.kind, self.served, &self.value);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Converts it to the preferred version.
    pub fn convert(&mut self) {
        schema::write_integers(&mut self.value);
        if self.served.old {
            convert::to_preferred(self.kind, &self.api_version, &mut self.value);
            schema::of(self.kind, self.served.preferred()).prepare(&mut self.value);
        }
    }

    /// Reads it; it is in the preferred version.
    ///
    /// # Errors
    /// A field with a wrong shape.
    pub fn read(&self) -> Result<kueuecore::objects::Object, FieldError> {
        object(self.kind, &self.value)
    }
}
