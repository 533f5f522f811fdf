//! "Did you mean": the nearest of some known names.

/// The known name with the smallest edit distance, if that is small enough to be a slip. Case does not count.
#[must_use]
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let n_chars = name.chars().count();
    let allowed = (n_chars / 3).clamp(1, 4);
    known
        .map(|candidate| (candidate, candidate.to_lowercase()))
        .map(|(candidate, lower)| {
            // Leaving out one end of a name is likelier than other slips of the same distance.
            let is_part = n_chars >= 4 && (lower.starts_with(&name) || name.starts_with(&lower));
            (if is_part { 1 } else { distance(&name, &lower) }, candidate)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours between two texts.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(100).collect();
    let b: Vec<char> = b.chars().take(100).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let replaced = row[j] + usize::from(a[i] != b[j]);
            let mut best = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_name_and_strangers_do_not() {
        let known = ["cohortName", "resourceGroups", "preemption", "stopPolicy", "nominalQuota"];
        let table = [
            ("cohort", Some("cohortName")),
            ("resourceGroup", Some("resourceGroups")),
            ("resuorceGroups", Some("resourceGroups")),
            ("nominalquota", Some("nominalQuota")),
            ("preemtion", Some("preemption")),
            ("policy", None),
            ("x", None),
            ("", None),
        ];
        for (name, meant) in table {
            assert_eq!(nearest(name, known.into_iter()), meant, "{name}");
        }
    }

    #[test]
    fn the_distance_counts_single_slips() {
        for (a, b, expected) in
            [("", "", 0), ("ab", "ba", 1), ("abc", "axc", 1), ("abc", "", 3), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
