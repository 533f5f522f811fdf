//! Kubernetes quantities (rules/01 §7).
/// placeholder
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Quantity;
