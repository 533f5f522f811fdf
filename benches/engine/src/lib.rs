//! States of a known size, and how long the engine takes with them, without Python.
//!
//! | read | for |
//! |---|---|
//! | [`rows`] | what a row of a table is, and how it is measured |
//! | [`objects`] | the objects that states are made of |
//! | [`cycles`], [`assignments`], [`victims`], [`placements`], [`views`], [`passing`] | states of a known size; Kueue was measured with some |
//! | [`kernels`] | all rows, and those that are asked for by name |
//! | [`memory`] | what the process takes |
//! | [`footprint`] | what nodes and places take, to the byte |
#![forbid(unsafe_code)]

pub mod assignments;
pub mod cycles;
pub mod footprint;
mod head;
pub mod kernels;
pub mod memory;
pub mod objects;
pub mod passing;
pub mod placements;
pub mod rows;
pub mod victims;
pub mod views;
