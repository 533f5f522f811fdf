//! Feature gates (rules/11 §4).
/// placeholder
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates;
