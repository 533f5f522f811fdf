//! Why pods have no place, in Kueue's words (rules/08 §10).

use crate::topology::capacity::Row;
use crate::topology::counts::Levels;
use crate::topology::filter::Refusals;
use crate::topology::request::Request;
use crate::topology::search::Lack;
use crate::topology::tree::Tree;

/// The message of a failed placement.
pub fn message(
    topology: &str,
    tree: &Tree,
    request: &Request,
    levels: &Levels,
    refusals: &Refusals,
    (lack, n_pods): (&Lack, i64),
) -> String {
    let (shown, level) = match *lack {
        Lack::NoDomains(level) => return format!("no topology domains at level: {}", tree.keys[level]),
        Lack::Fits { shown, level } => (shown, level),
    };
    let mut text = if request.layers.len() > 1 {
        by_layers(topology, tree, request, levels, (level, n_pods))
    } else {
        let unit = if request.slice_size == 1 { "pod" } else { "slice" };
        let n = n_pods / request.slice_size + i64::from(request.tail > 0);
        if shown == 0 {
            format!("topology \"{topology}\" doesn't allow to fit any of {n} {unit}(s)")
        } else {
            format!("topology \"{topology}\" allows to fit only {shown} out of {n} {unit}(s)")
        }
    };
    text.push_str(&refusals.text(tree.n_leaves()));
    text
}

/// How much of each layer fits into the largest domain.
fn by_layers(topology: &str, tree: &Tree, request: &Request, levels: &Levels, (level, n_pods): (usize, i64)) -> String {
    let mut text = format!("topology \"{topology}\" doesn't allow to fit");
    let most = |a: &Row, b: &Row| levels[level][*a].slices.cmp(&levels[level][*b].slices).then(b.cmp(a));
    let Some(best) = (0..tree.n_domains(level)).max_by(most) else { return text };
    for &(lower, size) in &request.layers {
        let fit: i64 = tree.below(level, best, lower).map(|row| levels[lower][row].pods / size).sum();
        text.push_str(&format!("; {fit}/{} slice(s) fit on level {}", n_pods / size, tree.keys[lower]));
    }
    text
}
