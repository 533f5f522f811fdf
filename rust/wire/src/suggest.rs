//! "Did you mean": the nearest of some known names.

use strsim::osa_distance;

/// The known name with the smallest edit distance, if that is small enough to be a slip; the first one wins a tie. Case
/// does not count.
#[must_use]
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Distances take time by the product of both lengths, and the texts may be anybody's.
    let folded = |text: &str| text.chars().take(100).flat_map(char::to_lowercase).collect::<String>();
    let name = folded(name);
    let n_chars = name.chars().count();
    let allowed = (n_chars / 3).clamp(1, 4);
    known
        .map(|candidate| (candidate, folded(candidate)))
        .map(|(candidate, lower)| {
            // Leaving out one end of a name is likelier than other slips of the same distance.
            let is_part = n_chars >= 4 && (lower.starts_with(&name) || name.starts_with(&lower));
            (if is_part { 1 } else { osa_distance(&name, &lower) }, candidate)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
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
            ("nominalField", None),
            ("x", None),
            ("", None),
        ];
        for (name, meant) in table {
            assert_eq!(nearest(name, known.into_iter()), meant, "{name}");
        }
    }
}
