//! The usage of an assignment, per flavor-resource (rules/03 §8).

use std::ops::Deref;

use smallvec::SmallVec;

use crate::base::amount::Amount;
use crate::base::ids::FlavorResourceId;

/// Amounts by flavor-resource, each once, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage(SmallVec<[(FlavorResourceId, Amount); 4]>);

impl Usage {
    /// The amount of one pair; zero if absent.
    pub fn get(&self, pair: FlavorResourceId) -> Amount {
        self.0.iter().find(|(known, _)| *known == pair).map_or(Amount::ZERO, |(_, amount)| *amount)
    }

    /// Adds to the amount of a pair.
    pub fn add(&mut self, pair: FlavorResourceId, units: i64) {
        self.change(pair, |amount| amount.plus_units(units));
    }

    /// Changes the amount of a pair; an absent one counts as zero.
    pub fn change(&mut self, pair: FlavorResourceId, changed: impl FnOnce(Amount) -> Amount) {
        let at = self.0.iter().position(|(known, _)| *known >= pair).unwrap_or(self.0.len());
        match self.0.get_mut(at) {
            Some((known, amount)) if *known == pair => *amount = changed(*amount),
            Some(_) => self.0.insert(at, (pair, changed(Amount::ZERO))),
            None => self.0.push((pair, changed(Amount::ZERO))),
        }
    }
}

impl Deref for Usage {
    type Target = [(FlavorResourceId, Amount)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_summed_per_pair_in_id_order() {
        let mut usage = Usage::default();
        for (pair, units) in [(5, 1), (2, 7), (5, 2), (9, 0), (2, -3)] {
            usage.add(FlavorResourceId(pair), units);
        }
        let expected = [(2, 4), (5, 3), (9, 0)].map(|(pair, units)| (FlavorResourceId(pair), Amount::new(units)));
        assert_eq!(*usage, expected);
        assert_eq!(usage.get(FlavorResourceId(5)), Amount::new(3));
        assert_eq!(usage.get(FlavorResourceId(6)), Amount::ZERO);
    }
}
