//! The identity of a workload: namespace, name and UID, stored once and shared.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::base::pair::Pair;

/// A workload by namespace and name, with its UID. Copies share one text.
///
/// Equality and order use namespace and name, which are unique at any time; [`Key::is_same`] compares the UID, too.
///
/// ```
/// use kueuecore::base::key::Key;
///
/// let key = Key::new("team-a", "job-1", "0a1b");
/// assert_eq!((key.namespace(), key.name(), key.uid()), ("team-a", "job-1", "0a1b"));
/// let again = Key::new("team-a", "job-1", "2c3d");
/// assert!(key == again && !key.is_same(&again));
/// ```
#[derive(Clone)]
pub struct Key(Arc<Identity>);

struct Identity {
    /// Namespace, name and UID, concatenated; a UID equal to the name is not repeated.
    text: Box<str>,
    name_at: u32,
    name_end: u32,
    uid_at: u32,
}

impl Key {
    /// The workload of this namespace and name, with this UID, which is empty if the object has none.
    pub fn new(namespace: &str, name: &str, uid: &str) -> Self {
        let at = |index: usize| u32::try_from(index).expect("names of less than 4 GiB");
        let (name_at, name_end) = (namespace.len(), namespace.len() + name.len());
        let (uid_at, uid) = if uid == name { (name_at, "") } else { (name_end, uid) };
        let mut text = String::with_capacity(name_end + uid.len());
        text.extend([namespace, name, uid]);
        let text = text.into_boxed_str();
        Self(Arc::new(Identity { text, name_at: at(name_at), name_end: at(name_end), uid_at: at(uid_at) }))
    }

    /// `metadata.namespace`.
    pub fn namespace(&self) -> &str {
        &self.0.text[..self.0.name_at as usize]
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        &self.0.text[self.0.name_at as usize..self.0.name_end as usize]
    }

    /// `metadata.uid`; empty if it is not known.
    pub fn uid(&self) -> &str {
        &self.0.text[self.0.uid_at as usize..]
    }

    /// Orders by UID, then by namespace and name, for objects without a UID.
    pub(crate) fn cmp_by_uid(&self, other: &Self) -> Ordering {
        if self.is_copy(other) {
            return Ordering::Equal;
        }
        self.uid().cmp(other.uid()).then_with(|| self.cmp(other))
    }

    /// The first bytes of the UID as a number. If two UIDs differ there, the smaller one has the smaller number.
    pub(crate) fn uid_prefix(&self) -> u64 {
        let mut prefix = [0; 8];
        prefix.iter_mut().zip(self.uid().bytes()).for_each(|(to, from)| *to = from);
        u64::from_be_bytes(prefix)
    }

    /// Is the UID the same, too?
    pub fn is_same(&self, other: &Self) -> bool {
        self.is_copy(other) || (self == other && self.uid() == other.uid())
    }

    /// Do both share one text because one is a copy of the other?
    pub(crate) fn is_copy(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for Key {
    fn default() -> Self {
        Self::new("", "", "")
    }
}

impl Pair for Key {
    fn pair(&self) -> (&str, &str) {
        (self.namespace(), self.name())
    }
}

impl<'a> Borrow<dyn Pair + 'a> for Key {
    fn borrow(&self) -> &(dyn Pair + 'a) {
        self
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.is_copy(other) || self.pair() == other.pair()
    }
}

impl Eq for Key {}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.is_copy(other) { Ordering::Equal } else { self.pair().cmp(&other.pair()) }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// Hashes like two texts, by which it is looked up.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pair().hash(state);
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace(), self.name())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.uid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_that_is_the_name_is_read_as_any_other() {
        for (namespace, name, uid) in [("ns", "name", "name"), ("ns", "name", ""), ("", "", ""), ("ns", "", "uid")] {
            let key = Key::new(namespace, name, uid);
            assert_eq!((key.namespace(), key.name(), key.uid()), (namespace, name, uid));
        }
    }

    #[test]
    fn prefixes_of_uids_are_in_the_order_of_these_where_they_differ() {
        let uids = ["", "\0", "0a1b2c3", "0a1b2c3d", "0a1b2c3d-4e", "0a1b2c3d-5f", "0a1b2c4", "1", "\u{e9}"];
        let keys = uids.map(|uid| Key::new("ns", "name", uid));
        for (a, b) in keys.iter().flat_map(|a| keys.iter().map(move |b| (a, b))) {
            let by_prefix = a.uid_prefix().cmp(&b.uid_prefix());
            assert_eq!(by_prefix.then_with(|| a.cmp_by_uid(b)), a.uid().cmp(b.uid()), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn the_namespace_counts_before_the_name() {
        let mut keys = [("b", "a"), ("a", "b"), ("ab", ""), ("a", "a")].map(|(ns, name)| Key::new(ns, name, "uid"));
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), ["a/a", "a/b", "ab/", "b/a"]);
    }
}
