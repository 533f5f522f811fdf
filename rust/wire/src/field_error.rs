//! field_error
