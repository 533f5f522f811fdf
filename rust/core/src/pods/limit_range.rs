//! Many LimitRanges as one (rules/01 §7.3 step 1b).

use std::collections::BTreeMap;

use crate::objects::{LimitRange, LimitRangeItem};

use super::lists::{keep_first, keep_max, keep_min};

/// The LimitRanges of a namespace, merged: one item for each type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitRangeSummary {
    /// By type: `Container`, `Pod`, `PersistentVolumeClaim`.
    pub by_type: BTreeMap<String, LimitRangeItem>,
}

impl LimitRangeSummary {
    /// The limits for each container.
    #[must_use]
    pub fn container(&self) -> Option<&LimitRangeItem> {
        self.by_type.get("Container")
    }

    /// The limits for a pod as a whole.
    #[must_use]
    pub fn pod(&self) -> Option<&LimitRangeItem> {
        self.by_type.get("Pod")
    }
}

/// Merges LimitRanges in the order given: the first default wins, the lowest maximum and ratio, the highest minimum.
#[must_use]
pub fn summarize(ranges: &[&LimitRange]) -> LimitRangeSummary {
    let mut by_type = BTreeMap::<String, LimitRangeItem>::new();
    for item in ranges.iter().flat_map(|range| &range.limits) {
        let merged = by_type
            .entry(item.kind.clone())
            .or_insert_with(|| LimitRangeItem { kind: item.kind.clone(), ..Default::default() });
        keep_min(&mut merged.max, &item.max);
        keep_max(&mut merged.min, &item.min);
        keep_first(&mut merged.default, &item.default);
        keep_first(&mut merged.default_request, &item.default_request);
        keep_min(&mut merged.max_limit_request_ratio, &item.max_limit_request_ratio);
    }
    LimitRangeSummary { by_type }
}
