//! Looks up `(String, Text)` keys, such as namespace and name, by `(&str, &str)` without allocating.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};

use crate::base::text::Text;

/// Two texts, owned or borrowed. A lookup by `&("ns", "name") as &dyn Pair` allocates nothing.
pub(crate) trait Pair {
    fn pair(&self) -> (&str, &str);
}

impl Pair for (&str, &str) {
    fn pair(&self) -> (&str, &str) {
        *self
    }
}

impl Pair for (String, Text) {
    fn pair(&self) -> (&str, &str) {
        (&self.0, &self.1)
    }
}

// Hashes like a pair of owned texts.
impl Hash for dyn Pair + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pair().hash(state);
    }
}

impl PartialEq for dyn Pair + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.pair() == other.pair()
    }
}

impl Eq for dyn Pair + '_ {}

impl<'a> Borrow<dyn Pair + 'a> for (String, Text) {
    fn borrow(&self) -> &(dyn Pair + 'a) {
        self
    }
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashMap;

    use super::*;
    use crate::base::key::Key;

    #[test]
    fn owned_pairs_are_found_by_borrowed_ones() {
        let owned = ("ns".to_owned(), Text::from("name"));
        let pairs = FxHashMap::from_iter([(owned, 1)]);
        let keys = FxHashMap::from_iter([(Key::new("ns", "name", "uid"), 2)]);
        let borrowed: &dyn Pair = &("ns", "name");
        assert_eq!((pairs.get(borrowed), keys.get(borrowed)), (Some(&1), Some(&2)));
        let other: &dyn Pair = &("nsn", "ame");
        assert_eq!((pairs.get(other), keys.get(other)), (None, None));
    }
}
