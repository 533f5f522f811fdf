//! A value that copies share until one of them changes.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Cheap to copy and to compare with its copies. `DerefMut` copies a shared value first, so use it only to change
/// something.
#[derive(Debug)]
pub struct Shared<T>(Arc<T>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Shared<T> {
    /// Is it the same shared value, not just an equal one?
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Default + Eq> Shared<T>
where
    Self: Default,
{
    /// The value, or the shared default if it is equal.
    pub fn of(value: T) -> Self {
        if value == T::default() { Self::default() } else { value.into() }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T: Eq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<T: Eq> Eq for Shared<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_does_not_reach_the_copies() {
        let mut a = Shared::from(vec![1]);
        let b = a.clone();
        a.push(2);
        assert_eq!((&*a, &*b), (&vec![1, 2], &vec![1]));
        assert_ne!(a, b);
        a.pop();
        assert_eq!(a, b);
    }
}
