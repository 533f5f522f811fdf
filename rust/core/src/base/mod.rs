//! Basic types: amounts, quantities, names and their ids, sorted lists, feature gates.

pub mod amount;
pub(crate) mod appended;
pub mod gates;
pub mod ids;
pub mod key;
pub mod names;
pub(crate) mod pair;
pub mod quantity;
pub mod shared;
pub mod sorted;
pub mod text;
