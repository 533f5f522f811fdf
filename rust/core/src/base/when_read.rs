//! A value that is worked out when somebody reads it.

use std::sync::LazyLock;

/// What it is worked out from is kept until then.
pub type WhenRead<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send + Sync>>;
