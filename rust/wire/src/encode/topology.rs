//! Topology assignments in the compact form of v1beta2 (rules/08 §15).

use std::collections::BTreeMap;

use kueuecore::objects::{MAX_REPEATED, TopologyAssignment, TopologyDomain};
use serde_json::{Map, Value, json};

/// The level of hostnames: assignments of topologies that end with nodes have no other level.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Limits on slices per assignment and domains per slice.
const MAX_SLICES: usize = 1000;
const MAX_DOMAINS: usize = 100_000;

/// An assignment as Kueue writes it (rules/08 §15.5). `by_prefix`: may domains be grouped by hostname prefix?
#[must_use]
pub fn assignment(assignment: &TopologyAssignment, by_prefix: bool) -> Value {
    let as_one = || slices(assignment, &[assignment.domains.as_slice()]);
    if !by_prefix {
        return as_one();
    }
    let in_runs = in_prefix_runs(assignment);
    let is_parted = in_runs["slices"].as_array().is_some_and(|slices| slices.len() > 1);
    if !is_parted || assignment.domains.len() > MAX_DOMAINS {
        return in_runs;
    }
    let single = as_one();
    if single.to_string().len() < in_runs.to_string().len() { single } else { in_runs }
}

/// An assignment with one slice per run of hostnames with a common prefix (rules/08 §15.4).
#[must_use]
pub fn in_prefix_runs(assignment: &TopologyAssignment) -> Value {
    slices(assignment, &runs(assignment))
}

/// Encodes the domains, slice by slice.
fn slices(assignment: &TopologyAssignment, slices: &[&[TopologyDomain]]) -> Value {
    let slices = slices.iter().filter(|domains| !domains.is_empty());
    let slices: Vec<Value> = slices.map(|domains| slice(domains, assignment.levels.len())).collect();
    let mut out = Map::new();
    out.insert("levels".to_owned(), json!(assignment.levels));
    if !slices.is_empty() {
        out.insert("slices".to_owned(), Value::Array(slices));
    }
    Value::Object(out)
}

/// The domains in runs of hostnames with a common prefix, as long a prefix as the limit on slices allows (rules/08
/// §15.4).
fn runs(assignment: &TopologyAssignment) -> Vec<&[TopologyDomain]> {
    let domains = assignment.domains.as_slice();
    let prefixes = if assignment.levels.last().is_some_and(|level| level == HOSTNAME) {
        shared_prefixes(domains)
    } else {
        Vec::new()
    };
    let deepest = prefixes.iter().flatten().map(|prefix| prefix.n_parts).max().unwrap_or(0);
    for depth in (1..=deepest).rev() {
        let key = |i: usize| prefixes[i].iter().rev().find(|prefix| prefix.n_parts <= depth).map(|prefix| prefix.text);
        let mut ends: Vec<usize> = (1..domains.len()).filter(|&i| key(i - 1) != key(i)).collect();
        ends.push(domains.len());
        let mut found = Vec::new();
        let mut start = 0;
        for end in ends {
            found.extend(domains[start..end].chunks(MAX_DOMAINS));
            start = end;
        }
        if found.len() <= MAX_SLICES {
            return found;
        }
    }
    domains.chunks(MAX_DOMAINS).collect()
}

/// The first `n` parts of a hostname, which dashes separate.
#[derive(Clone, Copy)]
struct Prefix<'a> {
    text: &'a str,
    n_parts: usize,
}

/// For each hostname the prefixes that it shares with another one, from short to long.
fn shared_prefixes(domains: &[TopologyDomain]) -> Vec<Vec<Prefix<'_>>> {
    let mut prefixes: Vec<Vec<Prefix<'_>>> = domains
        .iter()
        .map(|domain| {
            let name = domain.values.last().map_or("", |value| &**value);
            let ends = name.match_indices('-').map(|(at, dash)| at + dash.len()).filter(|&end| end < name.len());
            ends.zip(1..).map(|(end, n_parts)| Prefix { text: &name[..end], n_parts }).collect()
        })
        .collect();
    let mut n_uses: BTreeMap<&str, usize> = BTreeMap::new();
    prefixes.iter().flatten().for_each(|prefix| *n_uses.entry(prefix.text).or_default() += 1);
    prefixes.iter_mut().for_each(|of_name| of_name.retain(|prefix| n_uses[prefix.text] > 1));
    prefixes
}

/// Domains as one slice: what all have in common is written once.
fn slice(domains: &[TopologyDomain], n_levels: usize) -> Value {
    let of_level = |level: usize| -> Vec<&str> {
        domains.iter().map(|domain| domain.values.get(level).map_or("", |value| &**value)).collect()
    };
    let values: Vec<Value> = (0..n_levels).map(|level| values(&of_level(level))).collect();
    // Kueue would write a single count here, too; but decoding refuses so many copies of one domain, which make no
    // sense.
    let is_repeated = domains.len() > MAX_REPEATED && domains.iter().all(|domain| domain.values == domains[0].values);
    let counts = pod_counts(domains, is_repeated);
    json!({"domainCount": domains.len(), "podCounts": counts, "valuesPerLevel": values})
}

fn pod_counts(domains: &[TopologyDomain], one_by_one: bool) -> Value {
    let first = domains[0].count;
    if !one_by_one && domains.iter().all(|domain| domain.count == first) {
        return json!({"universal": first});
    }
    json!({"individual": domains.iter().map(|domain| domain.count).collect::<Vec<_>>()})
}

/// The values of a level: one for all, or the parts between the longest common prefix and suffix.
fn values(values: &[&str]) -> Value {
    let first = values[0];
    if values.iter().all(|value| *value == first) {
        return json!({"universal": first});
    }
    let (prefix, suffix) = common(values);
    let roots: Vec<&str> = values.iter().map(|value| &value[prefix.len()..value.len() - suffix.len()]).collect();
    let mut individual = Map::new();
    for (name, part) in [("prefix", prefix), ("suffix", suffix)] {
        if !part.is_empty() {
            individual.insert(name.to_owned(), Value::from(part));
        }
    }
    individual.insert("roots".to_owned(), json!(roots));
    json!({"individual": individual})
}

/// The longest common prefix and suffix. If they overlap in the shortest value, the prefix is shortened.
fn common<'a>(values: &[&'a str]) -> (&'a str, &'a str) {
    let first = values[0];
    let (mut n_prefix, mut n_suffix, mut shortest) = (first.len(), first.len(), first.len());
    for value in &values[1..] {
        let same = |(a, b): &(u8, u8)| a == b;
        n_prefix = first.bytes().zip(value.bytes()).take(n_prefix).take_while(same).count();
        n_suffix = first.bytes().rev().zip(value.bytes().rev()).take(n_suffix).take_while(same).count();
        shortest = shortest.min(value.len());
    }
    n_prefix = n_prefix.min(shortest - n_suffix);
    // Label values are ASCII; in bad input, do not cut within a character.
    let prefix = (0..=n_prefix).rev().find(|&at| first.is_char_boundary(at)).unwrap_or(0);
    let suffix = (first.len() - n_suffix..=first.len()).find(|&at| first.is_char_boundary(at)).unwrap_or(first.len());
    (&first[..prefix], &first[suffix..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An assignment to nodes, by their hostnames.
    fn nodes<'a>(domains: impl IntoIterator<Item = (&'a str, i32)>) -> TopologyAssignment {
        let domains = domains.into_iter().map(|(name, count)| TopologyDomain::new([name], count));
        TopologyAssignment { levels: vec![HOSTNAME.to_owned()], domains: domains.collect() }
    }

    fn slices_of(encoded: &Value) -> Vec<Value> {
        encoded["slices"].as_array().cloned().unwrap_or_default()
    }

    fn in_runs(assignment: &TopologyAssignment) -> Vec<usize> {
        runs(assignment).into_iter().map(<[TopologyDomain]>::len).collect()
    }

    #[test]
    fn values_are_written_without_what_they_share() {
        for (given, expected) in [
            (vec!["r1", "r1"], json!({"universal": "r1"})),
            (vec!["r1"], json!({"universal": "r1"})),
            (vec!["x", "y"], json!({"individual": {"roots": ["x", "y"]}})),
            (
                vec!["row-1.eu", "row-23.eu"],
                json!({"individual": {"prefix": "row-", "roots": ["1", "23"], "suffix": ".eu"}}),
            ),
            (vec!["z", "zz9", "z4"], json!({"individual": {"prefix": "z", "roots": ["", "z9", "4"]}})),
            // Prefix and suffix overlap: the suffix stays whole.
            (vec!["xyx", "xyxyx"], json!({"individual": {"roots": ["", "xy"], "suffix": "xyx"}})),
            (vec!["ab1b1bc", "ab1bc"], json!({"individual": {"prefix": "a", "roots": ["b1", ""], "suffix": "b1bc"}})),
            // A two-byte character is not cut, though its first byte is shared.
            (vec!["é1", "è1"], json!({"individual": {"roots": ["é", "è"], "suffix": "1"}})),
        ] {
            assert_eq!(values(&given), expected, "{given:?}");
        }
    }

    #[test]
    fn an_assignment_to_nothing_has_no_slices() {
        for by_prefix in [false, true] {
            assert_eq!(assignment(&nodes([]), by_prefix), json!({"levels": [HOSTNAME]}));
        }
    }

    #[test]
    fn counts_are_written_once_if_they_are_equal() {
        let counts = |domains: [(&str, i32); 2]| assignment(&nodes(domains), false)["slices"][0]["podCounts"].clone();
        assert_eq!(counts([("a", 2), ("b", 2)]), json!({"universal": 2}));
        assert_eq!(counts([("a", 2), ("b", 3)]), json!({"individual": [2, 3]}));
    }

    #[test]
    fn each_level_is_written_by_itself() {
        let domain = |values: [&str; 2]| TopologyDomain::new(values, 1);
        let levels = vec!["block".to_owned(), "rack".to_owned()];
        let racks = TopologyAssignment { levels, domains: vec![domain(["b1", "r1"]), domain(["b1", "r2"])] };
        let values = json!([{"universal": "b1"}, {"individual": {"prefix": "r", "roots": ["1", "2"]}}]);
        assert_eq!(assignment(&racks, true)["slices"][0]["valuesPerLevel"], values);
        assert_eq!(assignment(&racks, true), assignment(&racks, false));
    }

    #[test]
    fn hostnames_are_split_by_their_longest_common_prefix() {
        // (hostnames, lengths of the runs)
        for (names, expected) in [
            (vec!["a-x-1", "a-x-2", "a-y-1", "a-y-2"], vec![2, 2]),
            // A prefix that only one name has does not count, and a trailing dash starts no part.
            (vec!["a-x-1", "a-y-1", "b-1", "a-z-", "c"], vec![2, 1, 1, 1]),
            (vec!["a-1", "b-1", "a-2"], vec![1, 1, 1]),
            (vec!["a", "b", "c"], vec![3]),
            (vec!["a-1"], vec![1]),
        ] {
            let given: Vec<(&str, i32)> = names.iter().map(|name| (*name, 1)).collect();
            assert_eq!(in_runs(&nodes(given)), expected, "{names:?}");
        }
    }

    #[test]
    fn only_hostnames_are_split() {
        let mut racks = nodes([("a-x-1", 1), ("a-x-2", 1), ("a-y-1", 1), ("a-y-2", 1)]);
        racks.levels = vec!["rack".to_owned()];
        assert_eq!(in_runs(&racks), [4]);
    }

    #[test]
    fn the_shorter_form_is_written_and_runs_if_both_are_as_long() {
        // Four names in two pools: a second slice costs more than two short roots save.
        let near = nodes([("n-a-1", 1), ("n-a-2", 1), ("n-b-1", 1), ("n-b-2", 1)]);
        assert_eq!(slices_of(&assignment(&near, true)).len(), 1);
        let names = |pool: &str| (0..20).map(|i| format!("n-{pool}-long-name-of-a-pool-{i}")).collect::<Vec<_>>();
        let (a, b) = (names("a"), names("b"));
        let far = nodes(a.iter().chain(&b).map(|name| (name.as_str(), 1)));
        let written = assignment(&far, true);
        assert_eq!(slices_of(&written).len(), 2);
        assert_eq!(written["slices"][1]["valuesPerLevel"][0]["individual"]["prefix"], "n-b-long-name-of-a-pool-");
        assert_eq!(slices_of(&assignment(&far, false)).len(), 1);
    }

    #[test]
    fn runs_are_written_if_both_forms_have_the_same_length() {
        let pools = |n_a: usize, n_b: usize| {
            let pools = [("a", n_a), ("b", n_b)].map(|(pool, n)| [1, 2].map(|i| format!("{}-{i}", pool.repeat(n))));
            nodes(pools.iter().flatten().map(|name| (name.as_str(), 1)))
        };
        let lengths = |given: &TopologyAssignment| {
            let in_runs = slices(given, &runs(given));
            (slices(given, &[&given.domains]).to_string().len(), in_runs.to_string().len())
        };
        let is_tie = |given: &TopologyAssignment| lengths(given).0 == lengths(given).1;
        let mut candidates = (1..200).flat_map(|n| [pools(n, n), pools(n, n + 1)]);
        let tie = candidates.find(is_tie).expect("each byte of a name makes runs a byte shorter");
        assert_eq!(slices_of(&assignment(&tie, true)).len(), 2);
    }

    #[test]
    fn there_are_at_most_a_thousand_slices_of_a_hundred_thousand_domains() {
        // 600 pools of two names each, alternating between two regions: 600 runs by region, 1200 by pool.
        let names: Vec<String> =
            (0..600).flat_map(|pool| [0, 1, 0, 1].map(|half| format!("r{}-p{pool}{half}-x", pool % 2))).collect();
        let given = nodes(names.iter().map(|name| (name.as_str(), 1)));
        assert_eq!(runs(&given).len(), 600);
        let names: Vec<String> = (0..MAX_DOMAINS + 1).map(|i| format!("n{i}")).collect();
        let given = nodes(names.iter().map(|name| (name.as_str(), 1)));
        assert_eq!(in_runs(&given), [MAX_DOMAINS, 1]);
        assert_eq!(slices_of(&assignment(&given, true)).len(), 2);
        assert_eq!(slices_of(&assignment(&given, false)).len(), 1);
        // Names that alternate one by one: no prefix gives few enough runs.
        let names: Vec<String> = (0..2000).map(|i| format!("r{}-{i}", i % 2)).collect();
        let given = nodes(names.iter().map(|name| (name.as_str(), 1)));
        assert_eq!(in_runs(&given), [2000]);
    }
}
