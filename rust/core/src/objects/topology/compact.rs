//! The compact form of topology assignments in v1beta2 (rules/08 §15).

use std::iter::repeat_n;
use std::sync::Arc;

use serde::Deserialize;

use super::{TopologyAssignment, TopologyDomain};

/// How often a slice that lists nothing may repeat its only domain: a few bytes must not become gigabytes.
pub const MAX_REPEATED: usize = 16;

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct CompactAssignment {
    levels: Vec<String>,
    slices: Vec<Slice>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Slice {
    domain_count: i32,
    pod_counts: Counts,
    values_per_level: Vec<Values>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    universal: Option<i32>,
    individual: Option<Vec<i32>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Values {
    universal: Option<String>,
    individual: Option<Individual>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Individual {
    prefix: String,
    suffix: String,
    roots: Vec<String>,
}

impl TryFrom<CompactAssignment> for TopologyAssignment {
    type Error = String;

    fn try_from(compact: CompactAssignment) -> Result<Self, String> {
        let mut domains = Vec::new();
        for slice in compact.slices {
            slice.add_to(&mut domains, compact.levels.len())?;
        }
        Ok(TopologyAssignment { levels: compact.levels, domains })
    }
}

impl Slice {
    /// Adds its domains. Rejected if its lists do not have the lengths that an API server enforces (rules/08 §16).
    fn add_to(self, domains: &mut Vec<TopologyDomain>, n_levels: usize) -> Result<(), String> {
        let n = usize::try_from(self.domain_count).unwrap_or(0);
        if self.values_per_level.len() != n_levels {
            return Err("valuesPerLevel must have the same length as the number of levels".to_owned());
        }
        let roots = self.values_per_level.iter().filter_map(|values| values.individual.as_ref());
        if roots.clone().any(|individual| individual.roots.len() != n) {
            return Err(format!("valuesPerLevel.individual must have {n} roots, as domainCount says"));
        }
        if self.pod_counts.individual.as_ref().is_some_and(|counts| counts.len() != n) {
            return Err(format!("podCounts.individual must have {n} entries, as domainCount says"));
        }
        if n > MAX_REPEATED && roots.count() == 0 && self.pod_counts.individual.is_none() {
            return Err(format!("domainCount must be at most {MAX_REPEATED} where all domains are the same"));
        }
        let counts = self.pod_counts.individual.unwrap_or_default();
        let all_alike = self.pod_counts.universal.unwrap_or(0);
        let first = domains.len();
        let count = |i: usize| counts.get(i).copied().unwrap_or(all_alike);
        domains.extend((0..n).map(|i| TopologyDomain { count: count(i), ..TopologyDomain::default() }));
        for values in self.values_per_level {
            let new = domains[first..].iter_mut().map(|domain| &mut domain.values);
            match values.individual {
                Some(Individual { prefix, suffix, roots }) => {
                    new.zip(roots).for_each(|(values, root)| values.push(format!("{prefix}{root}{suffix}").into()));
                }
                None => {
                    let universal = repeat_n(Arc::from(values.universal.unwrap_or_default()), n);
                    new.zip(universal).for_each(|(values, value)| values.push(value));
                }
            }
        }
        Ok(())
    }
}
