//! The search for reduced counts (rules/03 §9.1).

use crate::objects::PodSet;

/// Finds the largest counts that work: fewest pods removed, spread over the pod sets in proportion to what each can
/// spare. `works` evaluates given counts; returns the result of the last success.
pub fn search_counts<R>(pod_sets: &[PodSet], mut works: impl FnMut(&[i32]) -> Option<R>) -> Option<R> {
    let deltas: Vec<i32> =
        pod_sets.iter().map(|ps| ps.count.saturating_sub(ps.min_count.unwrap_or(ps.count))).collect();
    let total = deltas.iter().fold(0i32, |sum, d| sum.wrapping_add(*d));
    if total == 0 {
        return None;
    }
    let counts_at = |index: i64| -> Vec<i32> {
        pod_sets
            .iter()
            .zip(&deltas)
            .map(|(ps, &delta)| ps.count.wrapping_sub((i64::from(delta) * index / i64::from(total)) as i32))
            .collect()
    };
    let (mut low, mut high) = (0i64, i64::from(total) + 1);
    let mut last_success = None;
    while low < high {
        let middle = (low + high) / 2;
        match works(&counts_at(middle)) {
            Some(result) => {
                last_success = Some((middle, result));
                high = middle;
            }
            None => low = middle + 1,
        }
    }
    last_success.filter(|(index, _)| *index == low).map(|(_, result)| result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod_set(count: i32, min_count: Option<i32>) -> PodSet {
        PodSet { count, min_count, ..PodSet::default() }
    }

    fn largest_within(limit: i32, pod_sets: &[PodSet]) -> Option<Vec<i32>> {
        search_counts(pod_sets, |counts| (counts.iter().sum::<i32>() <= limit).then(|| counts.to_vec()))
    }

    #[test]
    fn as_few_pods_as_possible_are_removed_in_proportion() {
        let sets = [pod_set(4, Some(2)), pod_set(10, Some(4)), pod_set(3, None)];
        assert_eq!(largest_within(17, &sets), Some(vec![4, 10, 3]));
        assert_eq!(largest_within(13, &sets), Some(vec![3, 7, 3]));
        assert_eq!(largest_within(9, &sets), Some(vec![2, 4, 3]));
        assert_eq!(largest_within(8, &sets), None);
    }

    #[test]
    fn nothing_is_found_where_no_count_can_shrink() {
        assert_eq!(largest_within(1, &[pod_set(1, None)]), None);
    }
}
