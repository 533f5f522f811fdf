//! Errors in a Configuration.

use crate::field_error::{FieldError, quoted};

/// One error in a Configuration; reading reports all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigurationError {
    /// Not JSON, or a value of another type than its field.
    Malformed {
        /// Where; empty for the whole.
        path: String,
        /// What would be right.
        reason: String,
    },
    /// A kind or version that is not read.
    WrongKind {
        /// `apiVersion` as given.
        api_version: String,
        /// `kind` as given.
        kind: String,
    },
    /// A field that this version does not have.
    UnknownField {
        path: String,
        /// A suggestion.
        hint: Option<String>,
    },
    /// A field that occurs twice.
    DuplicateField { path: String },
    /// A value that Kueue rejects.
    Field(FieldError),
}

impl ConfigurationError {
    /// The path of the field; empty for the whole file.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            ConfigurationError::Malformed { path, .. }
            | ConfigurationError::UnknownField { path, .. }
            | ConfigurationError::DuplicateField { path } => path,
            ConfigurationError::WrongKind { .. } => "apiVersion",
            ConfigurationError::Field(error) => &error.path,
        }
    }
}

impl std::fmt::Display for ConfigurationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConfigurationError::Malformed { path, reason } if path.is_empty() => f.write_str(reason),
            ConfigurationError::Malformed { path, reason } => write!(f, "{path}: {reason}"),
            ConfigurationError::WrongKind { api_version, kind } => write!(
                f,
                "no kind {} is registered for version {}: must be a Configuration of config.kueue.x-k8s.io/v1beta2 or \
                 config.kueue.x-k8s.io/v1beta1",
                quoted(kind),
                quoted(api_version)
            ),
            ConfigurationError::UnknownField { path, hint } => {
                write!(f, "unknown field {}", quoted(path))?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
            }
            ConfigurationError::DuplicateField { path } => write!(f, "duplicate field {}", quoted(path)),
            ConfigurationError::Field(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConfigurationError {}

impl From<FieldError> for ConfigurationError {
    fn from(error: FieldError) -> Self {
        ConfigurationError::Field(error)
    }
}
