//! Dense ids and the interners that assign them. No visible order ever depends on an id.

use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::{Deref, Index, IndexMut};
use std::sync::Arc;

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use crate::base::appended::Appended;

/// A dense index for one kind of thing.
pub trait Id: Copy + Eq {
    /// The id with this index.
    fn from_index(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);
        impl Id for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than 2^32 of a kind"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A ClusterQueue, by name; it need not exist.
    QueueId,
    /// A Cohort, by name.
    CohortId,
    /// A LocalQueue, by namespace and name.
    LocalQueueId,
    /// A ResourceFlavor, by name.
    FlavorId,
    /// A resource, by name.
    ResourceId,
    /// A (flavor, resource) pair: the unit of quota.
    FlavorResourceId,
    /// A Namespace, by name.
    NamespaceId,
    /// A slot of the workload table.
    WorkloadId,
    /// Workloads that are equivalent for scheduling (rules/05 §4).
    ShapeId,
}

/// A vector indexed by an id.
#[derive(Clone, Debug)]
pub struct IdVec<I, T> {
    items: Vec<T>,
    id: PhantomData<I>,
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self { items: Vec::new(), id: PhantomData }
    }
}

impl<I: Id, T> IdVec<I, T> {
    /// Appends an item and returns its id.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::from_index(self.items.len() - 1)
    }

    /// The item, if the id was assigned.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All items, in the order of their ids.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// All ids.
    pub fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }

    /// Grows to hold `id`, filling with defaults.
    pub(crate) fn ensure(&mut self, id: I) -> &mut T
    where
        T: Default,
    {
        if self.items.len() <= id.index() {
            self.items.resize_with(id.index() + 1, T::default);
        }
        &mut self.items[id.index()]
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

/// A table indexed by an id, in pieces: growing moves nothing and reserves little. What was [shared](IdTable::share)
/// before is copied piece by piece on write.
#[derive(Clone, Debug)]
pub struct IdTable<I, T> {
    pieces: Vec<Piece<T>>,
    id: PhantomData<I>,
}

/// Items per piece.
const PIECE: usize = 256;

/// Items that copies share until one of them writes. Without sharing there is no reference counting.
#[derive(Clone, Debug)]
enum Piece<T> {
    Own(Vec<T>),
    Shared(Arc<Vec<T>>),
}

impl<T: Clone> Piece<T> {
    fn share(&mut self) {
        if let Piece::Own(items) = self {
            *self = Piece::Shared(Arc::new(std::mem::take(items)));
        }
    }

    fn items_mut(&mut self) -> &mut Vec<T> {
        match self {
            Piece::Own(items) => items,
            Piece::Shared(items) => unshared(items),
        }
    }
}

/// The items for writing: copied first if still shared.
#[cold]
#[inline(never)]
fn unshared<T: Clone>(items: &mut Arc<Vec<T>>) -> &mut Vec<T> {
    Arc::make_mut(items)
}

impl<T> Deref for Piece<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Piece::Own(items) => items,
            Piece::Shared(items) => items,
        }
    }
}

impl<I, T> Default for IdTable<I, T> {
    fn default() -> Self {
        Self { pieces: Vec::new(), id: PhantomData }
    }
}

impl<I: Id, T: Clone> IdTable<I, T> {
    /// Lets the next copies share all current items.
    pub(crate) fn share(&mut self) {
        self.pieces.iter_mut().for_each(Piece::share);
    }

    /// Appends an item and returns its id.
    pub fn push(&mut self, item: T) -> I {
        let index = self.len();
        if index.is_multiple_of(PIECE) {
            // Keep small tables small.
            self.pieces.push(Piece::Own(Vec::with_capacity(if index == 0 { 0 } else { PIECE })));
        }
        self.pieces[index / PIECE].items_mut().push(item);
        I::from_index(index)
    }

    /// The item, if the id was assigned.
    pub fn get(&self, id: I) -> Option<&T> {
        self.pieces.get(id.index() / PIECE)?.get(id.index() % PIECE)
    }

    /// Number of items.
    fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    /// All items with their ids, in id order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.pieces.iter().flat_map(|piece| piece.iter()).enumerate().map(|(index, item)| (I::from_index(index), item))
    }

    /// Grows to hold `id`, filling with defaults.
    pub(crate) fn ensure(&mut self, id: I) -> &mut T
    where
        T: Default,
    {
        while self.len() <= id.index() {
            self.push(T::default());
        }
        &mut self[id]
    }
}

impl<I: Id, T> Index<I> for IdTable<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.pieces[id.index() / PIECE][id.index() % PIECE]
    }
}

impl<I: Id, T: Clone> IndexMut<I> for IdTable<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.pieces[id.index() / PIECE].items_mut()[id.index() % PIECE]
    }
}

/// A set of ids, iterated in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct IdSet<I> {
    indexes: RoaringBitmap,
    id: PhantomData<I>,
}

impl<I> Default for IdSet<I> {
    fn default() -> Self {
        Self { indexes: RoaringBitmap::new(), id: PhantomData }
    }
}

impl<I: Id> IdSet<I> {
    /// Adds an id; returns whether it was new.
    pub fn insert(&mut self, id: I) -> bool {
        self.indexes.insert(bit(id))
    }

    /// Removes an id; returns whether it was there.
    pub fn remove(&mut self, id: I) -> bool {
        self.indexes.remove(bit(id))
    }

    /// Is this id in the set?
    pub fn contains(&self, id: I) -> bool {
        self.indexes.contains(bit(id))
    }

    /// Number of ids.
    pub(crate) fn len(&self) -> usize {
        self.indexes.len() as usize
    }

    /// All ids, in their order.
    pub fn iter(&self) -> impl Iterator<Item = I> + '_ {
        self.indexes.iter().map(|index| I::from_index(index as usize))
    }
}

fn bit(id: impl Id) -> u32 {
    u32::try_from(id.index()).expect("ids are of 32 bits")
}

/// Assigns each distinct value an id, in order of first appearance. Copies share the values until one of them adds
/// another.
#[derive(Clone, Debug)]
pub struct Interner<I, T: Hash + Eq>(Arc<Known<I, T>>);

#[derive(Debug)]
struct Known<I, T: Hash + Eq> {
    ids: FxHashMap<T, I>,
    /// Others may hold the list, too, and read what is added.
    values: Arc<Appended<T>>,
}

impl<I, T: Hash + Eq> Default for Interner<I, T> {
    fn default() -> Self {
        Self(Arc::new(Known { ids: FxHashMap::default(), values: Arc::default() }))
    }
}

/// A copy continues with ids of its own.
impl<I: Id, T: Hash + Eq + Clone> Clone for Known<I, T> {
    fn clone(&self) -> Self {
        let values = Appended::default();
        self.values.iter().cloned().enumerate().for_each(|(index, value)| values.set(index, value));
        Self { ids: self.ids.clone(), values: Arc::new(values) }
    }
}

impl<I: Id, T: Hash + Eq + Clone> Interner<I, T> {
    /// The id of a value, assigned if it is new.
    pub(crate) fn intern<Q>(&mut self, value: &Q) -> I
    where
        Q: Hash + Eq + ToOwned<Owned = T> + ?Sized,
        T: std::borrow::Borrow<Q>,
    {
        self.intern_as(value, Q::to_owned)
    }

    /// The same if the stored value is built from the given one.
    pub(crate) fn intern_as<Q>(&mut self, value: &Q, keep: impl FnOnce(&Q) -> T) -> I
    where
        Q: Hash + Eq + ?Sized,
        T: std::borrow::Borrow<Q>,
    {
        if let Some(id) = self.find(value) {
            return id;
        }
        let Known { ids, values } = Arc::make_mut(&mut self.0);
        let (owned, id) = (keep(value), I::from_index(ids.len()));
        values.set(ids.len(), owned.clone());
        ids.insert(owned, id);
        id
    }

    /// The id of a known value.
    pub fn find<Q>(&self, value: &Q) -> Option<I>
    where
        Q: Hash + Eq + ?Sized,
        T: std::borrow::Borrow<Q>,
    {
        self.0.ids.get(value).copied()
    }

    /// All values, in order of first appearance.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.values.iter()
    }

    /// All values by index, including later ones unless copies share them by then.
    pub(super) fn values(&self) -> &Arc<Appended<T>> {
        &self.0.values
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.0.ids.len()
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.0.ids.is_empty()
    }
}

impl<I: Id, T: Hash + Eq> Index<I> for Interner<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.0.values[id.index()]
    }
}

/// Assigns each distinct value in use an id, and reuses the ids of values no longer in use. Copies share the values
/// until one of them changes.
#[derive(Clone, Debug)]
pub struct Pool<I, T: Hash + Eq> {
    ids: Arc<FxHashMap<T, I>>,
    free: Vec<I>,
    n_ids: usize,
}

impl<I, T: Hash + Eq> Default for Pool<I, T> {
    fn default() -> Self {
        Self { ids: Arc::default(), free: Vec::new(), n_ids: 0 }
    }
}

impl<I: Id + Ord, T: Hash + Eq + Clone> Pool<I, T> {
    /// The id of a value, assigned if it is new.
    pub(crate) fn id_of(&mut self, value: T) -> I {
        if let Some(&id) = self.ids.get(&value) {
            return id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.n_ids += 1;
            I::from_index(self.n_ids - 1)
        });
        Arc::make_mut(&mut self.ids).insert(value, id);
        id
    }

    /// Drops the values that are not in use.
    pub fn retain(&mut self, is_used: impl Fn(&T, I) -> bool) {
        let free = &mut self.free;
        Arc::make_mut(&mut self.ids).retain(|value, id| {
            let keeps = is_used(value, *id);
            if !keeps {
                free.push(*id);
            }
            keeps
        });
        // The next id must not depend on the order of a hash map.
        free.sort_unstable();
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// All values with their ids, in no order.
    pub fn values(&self) -> impl Iterator<Item = (&T, I)> {
        self.ids.iter().map(|(value, id)| (value, *id))
    }
}

#[cfg(test)]
mod tests;
