//! All rows: those of the table, and the same in more sizes, to see how they grow.

use crate::rows::Row;
use crate::{assignments, cycles, passing, placements, victims, views};

/// Rows with some of these names; a name selects the row of that name, or else the rows whose names contain it. No name:
/// all rows.
pub fn select(rows: Vec<Row>, names: &[String]) -> Vec<Row> {
    let is_one: Vec<bool> = names.iter().map(|name| rows.iter().any(|row| row.name == *name)).collect();
    let is_wanted = |row: &Row| {
        let mut names = names.iter().zip(&is_one);
        names.any(|(name, is_one)| if *is_one { row.name == *name } else { row.name.contains(name.as_str()) })
    };
    rows.into_iter().filter(|row| names.is_empty() || is_wanted(row)).collect()
}

/// The rows of the table.
pub fn rows() -> Vec<Row> {
    let rows =
        [cycles::rows(), assignments::rows(), victims::rows(), placements::rows(), views::rows(), passing::rows()];
    rows.into_iter().flatten().collect()
}

/// What grows faster than the work, or might, in a series of sizes each.
pub fn growing() -> Vec<Row> {
    let rows = [
        cycles::fair_rows(&[250, 500, 1_000, 2_000, 4_000, 8_000]),
        cycles::preempting_rows(&[25, 50, 100, 200, 400]),
        victims::flavor_rows(&[2_500, 5_000, 10_000, 20_000, 40_000, 80_000]),
        placements::growing_rows(&[2_500, 5_000, 10_000, 20_000, 40_000, 80_000]),
    ];
    rows.into_iter().flatten().collect()
}
