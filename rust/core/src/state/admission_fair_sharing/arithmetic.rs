//! The arithmetic of LocalQueue usage: decay, entry penalty, weighted sum (rules/09 §1.2).

use std::collections::BTreeMap;

use crate::base::changes::{Change, Changes};
use crate::base::quantity::Quantity;
use crate::objects::ResourceList;

const SECOND_NS: i64 = 1_000_000_000;

/// α(t): the share of current usage that enters the history after `elapsed_ns`. In [0, 1]; 0 without a half-life.
#[must_use]
pub(crate) fn alpha(elapsed_ns: i64, half_life_ns: i64) -> f64 {
    if half_life_ns == 0 {
        return 0.0;
    }
    1.0 - half_to_the(seconds(elapsed_ns.max(0)) / seconds(half_life_ns))
}

/// Whole seconds and the rest are rounded separately, as in Go.
#[allow(clippy::cast_precision_loss)] // both are far below 2^53
fn seconds(ns: i64) -> f64 {
    (ns / SECOND_NS) as f64 + (ns % SECOND_NS) as f64 / 1e9
}

/// 0.5^`exponent` for `exponent` >= 0, bit for bit as in Go on a machine with fused multiply-add: an error in the last
/// place would be thousands of nano-bytes of a few gibibytes.
fn half_to_the(exponent: f64) -> f64 {
    if exponent == 0.5 {
        return exponent.sqrt();
    }
    let mut whole = exponent.trunc();
    let mut part = exponent - whole;
    if part > 0.5 {
        part -= 1.0;
        whole += 1.0;
    }
    // Anything smaller vanishes next to 1.
    if whole > 1000.0 {
        return 0.0;
    }
    exp_small(part * -std::f64::consts::LN_2) * 2f64.powf(-whole)
}

/// e^`x` for |x| <= 0.35 after Shibata (2010): the Taylor series of e^t - 1 at t = x/16, doubled four times by
/// e^2t - 1 = (e^t - 1)(e^t + 1).
fn exp_small(x: f64) -> f64 {
    /// 1/n! for n = 8, 7, ..., 1.
    const COEFFICIENTS: [f64; 8] = [
        2.480_158_730_158_73e-5,
        1.984_126_984_126_984e-4,
        1.388_888_888_888_889e-3,
        8.333_333_333_333_333e-3,
        4.166_666_666_666_666_4e-2,
        1.666_666_666_666_666_6e-1,
        0.5,
        1.0,
    ];
    let t = x * 0.0625;
    let series = COEFFICIENTS[1..].iter().fold(COEFFICIENTS[0], |sum, &c| sum.mul_add(t, c));
    let mut less_one = t * series;
    for _ in 0..3 {
        less_one *= less_one + 2.0;
    }
    less_one.mul_add(less_one + 2.0, 1.0)
}

/// Every quantity times a factor, truncated to nano-units.
fn scaled(resources: &ResourceList, factor: f64, changes: Changes) -> ResourceList {
    let product = |quantity: &Quantity| {
        if changes.has(Change::SmallUsageCounts) {
            quantity.times_f64_toward_zero(factor)
        } else {
            quantity.times_f64_to_milli(factor)
        }
    };
    resources.iter().map(|(name, quantity)| (name.clone(), product(quantity))).collect()
}

/// Adds one list to another.
pub(super) fn add(total: &mut ResourceList, more: &ResourceList) {
    for (name, quantity) in more {
        match total.get_mut(name) {
            Some(sum) => *sum = sum.plus(quantity),
            None => {
                total.insert(name.clone(), quantity.clone());
            }
        }
    }
}

/// Subtracts one list from another, which is empty if nothing is left of any resource.
pub(super) fn subtract(total: &mut ResourceList, less: &ResourceList) {
    for (name, quantity) in less {
        let left = total.entry(name.clone()).or_default();
        *left = left.minus(quantity);
    }
    if total.values().all(Quantity::is_zero) {
        total.clear();
    }
}

/// The history after `elapsed_ns` with `admitted` in use.
#[must_use]
pub fn decayed(
    consumed: &ResourceList,
    admitted: &ResourceList,
    elapsed_ns: i64,
    half_life_ns: i64,
    changes: Changes,
) -> ResourceList {
    let alpha = alpha(elapsed_ns, half_life_ns);
    let mut result = scaled(consumed, 1.0 - alpha, changes);
    add(&mut result, &scaled(admitted, alpha, changes));
    result
}

/// The immediate cost of an admission: one sampling interval of the workload's requests.
#[must_use]
pub(crate) fn entry_penalty(
    requests: &ResourceList,
    sampling_interval_ns: i64,
    half_life_ns: i64,
    changes: Changes,
) -> ResourceList {
    scaled(requests, alpha(sampling_interval_ns, half_life_ns), changes)
}

/// Weighted usage divided by the weight of the LocalQueue; `+inf` if that is not positive.
#[must_use]
pub fn usage(
    consumed: &ResourceList,
    penalty: &ResourceList,
    weight: f64,
    resource_weights: &BTreeMap<String, f64>,
    changes: Changes,
) -> f64 {
    let mut all = consumed.clone();
    add(&mut all, penalty);
    let mut usage = 0.0;
    for (name, quantity) in &all {
        usage += resource_weights.get(name).copied().unwrap_or(1.0) * quantity.as_f64_approximate();
    }
    if weight > 0.0 {
        return usage / weight;
    }
    if changes.has(Change::WeightOfZeroGoesLast) {
        return f64::INFINITY;
    }
    let quotient = usage / weight;
    // Go puts a NaN first, as the order of all floats does with a negative one.
    if quotient.is_nan() { -f64::NAN.abs() } else { quotient }
}

/// `fairSharing.weight` of a LocalQueue as a number; 1 if absent.
#[must_use]
pub fn weight(weight: Option<&Quantity>) -> f64 {
    weight.map_or(1.0, Quantity::as_f64_approximate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK_NS: i64 = 604_800 * SECOND_NS;
    const SAMPLE_NS: i64 = 300 * SECOND_NS;

    /// Elapsed, half-life, bits of the power.
    const POWERS: [(i32, i32, u64); 7] = [
        (1, 1, 0x3fe0_0000_0000_0000),
        (43, 5, 0x3f65_1cb4_53b9_536e),
        (43, 13, 0x3fb9_da96_7535_19d5),
        (64, 29, 0x3fcb_b98a_5a1f_98b5),
        (7, 61, 0x3fed_8da3_26e8_5845),
        (301, 1021, 0x3fea_15f4_dfda_ba43),
        (1000, 4093, 0x3feb_03cc_cc01_25e1),
    ];

    fn list(entries: &[(&str, &str)]) -> ResourceList {
        entries.iter().map(|(name, text)| ((*name).to_owned(), text.parse().expect("a quantity"))).collect()
    }

    fn texts(list: &ResourceList) -> Vec<String> {
        list.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect()
    }

    #[test]
    fn powers_of_one_half_match_go() {
        for (elapsed, half_life, bits) in POWERS {
            let power = half_to_the(f64::from(elapsed) / f64::from(half_life));
            assert_eq!(power.to_bits(), bits, "0.5^({elapsed}/{half_life}): {power:e}");
        }
    }

    #[test]
    fn the_rate_stays_between_zero_and_one() {
        for (elapsed_ns, half_life_ns, expected) in [
            (SAMPLE_NS, WEEK_NS, 0.000_343_763_905_873_872_84),
            (SAMPLE_NS, SAMPLE_NS, 0.5),
            (SAMPLE_NS, 0, 0.0),
            (0, WEEK_NS, 0.0),
            (-5, WEEK_NS, 0.0),
            (i64::MAX, 1, 1.0),
        ] {
            assert_eq!(
                alpha(elapsed_ns, half_life_ns).to_bits(),
                f64::to_bits(expected),
                "{elapsed_ns} {half_life_ns}"
            );
        }
    }

    #[test]
    fn history_keeps_fractions_of_a_milli_and_large_byte_counts() {
        for (admitted, n_samples, expected) in [
            (list(&[("cpu", "2"), ("nvidia.com/gpu", "1")]), 1, ["cpu=687527n", "nvidia.com/gpu=343763n"].as_slice()),
            (list(&[("cpu", "2"), ("nvidia.com/gpu", "1")]), 2, &["cpu=1374817n", "nvidia.com/gpu=687407n"]),
            (list(&[("cpu", "2")]), 6048, &["cpu=1749996663n"]),
            (list(&[("memory", "16Gi")]), 1, &["memory=5905818933094024n"]),
            (list(&[("memory", "64Ti")]), 1, &["memory=24190234349953124739n"]),
        ] {
            let mut consumed = ResourceList::new();
            for _ in 0..n_samples {
                consumed = decayed(&consumed, &admitted, SAMPLE_NS, WEEK_NS, Changes::default());
            }
            assert_eq!(texts(&consumed), expected);
        }
    }

    #[test]
    fn history_decays_to_nothing() {
        let mut consumed = list(&[("cpu", "1")]);
        for _ in 0..40 {
            consumed = decayed(&consumed, &ResourceList::new(), SAMPLE_NS, SAMPLE_NS, Changes::default());
        }
        assert_eq!(texts(&consumed), ["cpu=0"]);
    }

    #[test]
    fn a_penalty_is_one_interval_of_use() {
        let requests = list(&[("cpu", "8")]);
        assert_eq!(texts(&entry_penalty(&requests, SECOND_NS, 10 * SECOND_NS, Changes::default())), ["cpu=535736067n"]);
        assert_eq!(texts(&entry_penalty(&requests, SECOND_NS, 0, Changes::default())), ["cpu=0"]);
    }

    #[test]
    fn usage_is_weighted_by_resource_and_queue() {
        let weights = |entries: &[(&str, f64)]| entries.iter().map(|(n, w)| ((*n).to_owned(), *w)).collect();
        for (consumed, penalty, weight, resource_weights, expected) in [
            (&[("gpu", "2")][..], &[("gpu", "1")][..], 2.0, &[("gpu", 4.0)][..], 6.0),
            (&[], &[("gpu", "3")], 1.0, &[], 3.0),
            (&[("gpu", "10")], &[], 1.0, &[("gpu", 0.0)], 0.0),
            (&[("cpu", "4"), ("gpu", "2")], &[], 1.0, &[("cpu", 1.0), ("gpu", 5.0)], 14.0),
            (&[("cpu", "4")], &[], 0.0, &[], f64::INFINITY),
            (&[("cpu", "4")], &[], -1.0, &[], f64::INFINITY),
            (&[], &[], 0.0, &[], f64::INFINITY),
        ] {
            let found = usage(&list(consumed), &list(penalty), weight, &weights(resource_weights), Changes::default());
            assert_eq!(found.to_bits(), f64::to_bits(expected), "{consumed:?} {penalty:?} {weight}");
        }
        assert_eq!(
            [weight(None), weight(Some(&"2".parse().expect("a quantity")))].map(f64::to_bits),
            [1f64.to_bits(), 2f64.to_bits()]
        );
    }
}
