//! Basic types: amounts, quantities, names and their ids, sorted lists, releases with their gates and changes.

pub mod amount;
pub(crate) mod appended;
mod bits;
pub mod changes;
pub mod gates;
pub mod ids;
pub mod key;
pub mod names;
pub(crate) mod pair;
pub mod quantity;
pub mod releases;
pub mod shared;
pub mod sorted;
pub mod text;
pub mod when_read;
