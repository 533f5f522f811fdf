//! A small set of numbers as bits: of gates, or of changes.

/// How many there may be.
pub(super) const CAPACITY: usize = 64 * WORDS;
const WORDS: usize = 3;

/// A set of numbers below [`CAPACITY`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Bits([u64; WORDS]);

impl Bits {
    pub const EMPTY: Bits = Bits([0; WORDS]);

    /// Is the number in the set?
    pub const fn has(&self, number: usize) -> bool {
        self.0[number / 64] & (1 << (number % 64)) != 0
    }

    /// A copy with the number, or without it.
    pub const fn with(mut self, number: usize, is_in: bool) -> Self {
        let bit = 1 << (number % 64);
        if is_in {
            self.0[number / 64] |= bit;
        } else {
            self.0[number / 64] &= !bit;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_word_come_and_go() {
        for number in [0, 63, 64, 127, 128, CAPACITY - 1] {
            let with = Bits::EMPTY.with(number, true);
            assert!(with.has(number) && !Bits::EMPTY.has(number));
            assert!((0..CAPACITY).all(|it| with.has(it) == (it == number)));
            assert!(with.with(number, true) == with && with.with(number, false) == Bits::EMPTY);
        }
    }
}
