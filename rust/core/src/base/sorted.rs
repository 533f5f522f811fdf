//! Sorted entries in a few large blocks: neighbours are close in memory, and adding or removing one entry rarely
//! allocates.

use std::cmp::Ordering;
use std::collections::{VecDeque, vec_deque};
use std::sync::Arc;

/// Most entries per block.
const BLOCK: usize = 128;

/// Sorted unique entries. Copies of long lists share the blocks that neither has changed.
#[derive(Clone, Debug)]
pub struct Sorted<T>(Layout<T>);

#[derive(Clone, Debug)]
enum Layout<T> {
    One(VecDeque<T>),
    Many(Box<Many<T>>),
}

/// At least one block, none of them empty.
#[derive(Clone, Debug)]
struct Many<T> {
    blocks: Vec<Arc<VecDeque<T>>>,
    len: usize,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self(Layout::One(VecDeque::new()))
    }
}

impl<T> Sorted<T> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match &self.0 {
            Layout::One(block) => block.len(),
            Layout::Many(many) => many.len,
        }
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first entry.
    pub fn first(&self) -> Option<&T> {
        match &self.0 {
            Layout::One(block) => block.front(),
            Layout::Many(many) => many.blocks.first()?.front(),
        }
    }

    /// All entries, in order.
    pub fn iter(&self) -> Iter<'_, T> {
        match &self.0 {
            Layout::One(block) => Iter { block: block.iter(), rest: [].iter() },
            Layout::Many(many) => Iter { block: vec_deque::Iter::default(), rest: many.blocks.iter() },
        }
    }

    /// All entries from a position on: `is_before` holds for the entries before it, and for no others.
    pub fn iter_from(&self, is_before: impl Fn(&T) -> bool) -> Iter<'_, T> {
        match &self.0 {
            Layout::One(block) => Iter { block: block.range(block.partition_point(is_before)..), rest: [].iter() },
            Layout::Many(many) => {
                let at = many.block_at(&is_before);
                let block = &many.blocks[at];
                Iter { block: block.range(block.partition_point(is_before)..), rest: many.blocks[at + 1..].iter() }
            }
        }
    }

    /// Number of entries before a position.
    pub fn count_before(&self, is_before: impl Fn(&T) -> bool) -> usize {
        match &self.0 {
            Layout::One(block) => block.partition_point(is_before),
            Layout::Many(many) => {
                let at = many.block_at(&is_before);
                let in_full: usize = many.blocks[..at].iter().map(|block| block.len()).sum();
                in_full + many.blocks[at].partition_point(is_before)
            }
        }
    }

    /// Finds an entry by binary search: `order` compares an entry with the one to find.
    pub fn find(&self, order: impl Fn(&T) -> Ordering) -> Option<&T> {
        let block = match &self.0 {
            Layout::One(block) => block,
            Layout::Many(many) => &many.blocks[many.block_of(&order)],
        };
        block.get(seek(block, order).ok()?)
    }
}

impl<T: Clone> Sorted<T> {
    /// The same for changes that do not affect the order.
    pub fn find_mut(&mut self, order: impl Fn(&T) -> Ordering) -> Option<&mut T> {
        match &mut self.0 {
            Layout::One(block) => {
                let at = seek(block, order).ok()?;
                block.get_mut(at)
            }
            Layout::Many(many) => {
                let block = many.block_of(&order);
                let block = &mut many.blocks[block];
                let at = seek(block, order).ok()?;
                Arc::make_mut(block).get_mut(at)
            }
        }
    }

    /// Removes and returns an entry; see [`Sorted::find`].
    pub fn take(&mut self, order: impl Fn(&T) -> Ordering) -> Option<T> {
        let many = match &mut self.0 {
            Layout::One(block) => {
                let at = seek(block, order).ok()?;
                return block.remove(at);
            }
            Layout::Many(many) => many,
        };
        let taken = many.take(order);
        if many.len <= BLOCK / 2 {
            let rest = std::mem::take(&mut many.blocks);
            self.0 = Layout::One(rest.into_iter().flat_map(Arc::unwrap_or_clone).collect());
        }
        taken
    }

    /// Keeps only the entries for which this holds.
    pub fn retain(&mut self, holds: impl FnMut(&T) -> bool) {
        match &mut self.0 {
            Layout::One(block) => block.retain(holds),
            Layout::Many(_) => {
                let mut holds = holds;
                *self = Self::from_sorted(self.iter().filter(|it| holds(it)).cloned().collect());
            }
        }
    }

    /// A list of entries that are already sorted and unique.
    pub fn from_sorted(entries: Vec<T>) -> Self {
        if entries.len() <= BLOCK {
            return Self(Layout::One(entries.into()));
        }
        let len = entries.len();
        let mut entries = entries.into_iter();
        let blocks = (0..len.div_ceil(BLOCK)).map(|_| Arc::new(entries.by_ref().take(BLOCK).collect()));
        Self(Layout::Many(Box::new(Many { blocks: blocks.collect(), len })))
    }
}

impl<T: Clone> Sorted<T> {
    /// Adds an entry in a custom order, which must always be the same; returns whether it was new.
    pub fn insert_by(&mut self, entry: T, order: impl Fn(&T, &T) -> Ordering) -> bool {
        match &mut self.0 {
            Layout::One(block) => {
                let Err(at) = seek(block, |it| order(it, &entry)) else { return false };
                if block.len() < BLOCK {
                    if block.len() == block.capacity() {
                        // There are many short lists: grow by a quarter instead of doubling.
                        block.reserve_exact(block.len() / 4 + 1);
                    }
                    block.insert(at, entry);
                    return true;
                }
                let mut many = Many { blocks: vec![Arc::new(std::mem::take(block))], len: BLOCK };
                many.insert_by(entry, order);
                self.0 = Layout::Many(Box::new(many));
                true
            }
            Layout::Many(many) => many.insert_by(entry, order),
        }
    }
}

impl<T: Ord + Clone> Sorted<T> {
    /// Removes and returns the first entry.
    pub fn pop_first(&mut self) -> Option<T> {
        match &mut self.0 {
            Layout::One(block) => block.pop_front(),
            Layout::Many(_) => {
                let first = self.first()?.clone();
                self.take(|it| it.cmp(&first))
            }
        }
    }

    /// Adds an entry; returns whether it was new.
    pub fn insert(&mut self, entry: T) -> bool {
        self.insert_by(entry, T::cmp)
    }

    /// Removes an entry; returns whether it was there.
    pub fn remove(&mut self, entry: &T) -> bool {
        self.take(|it| it.cmp(entry)).is_some()
    }

    /// Is the entry in the list?
    pub fn contains(&self, entry: &T) -> bool {
        self.find(|it| it.cmp(entry)).is_some()
    }

    /// Adds many entries, in any order.
    pub fn extend(&mut self, mut entries: Vec<T>) {
        // A few entries are inserted one by one.
        if entries.len() < self.len() / 8 {
            entries.into_iter().for_each(|entry| _ = self.insert(entry));
            return;
        }
        entries.extend(self.iter().cloned());
        entries.sort();
        entries.dedup_by(|a, b| (*a).cmp(b).is_eq());
        *self = Self::from_sorted(entries);
    }

    /// Moves all entries of another list here: the smaller list into the larger.
    pub fn append(&mut self, other: &mut Self) {
        if self.len() < other.len() {
            std::mem::swap(self, other);
        }
        if !other.is_empty() {
            self.extend(std::mem::take(other).iter().cloned().collect());
        }
    }
}

impl<T> Many<T> {
    /// The block of the first entry that is not before a position, or the one after which it would be.
    fn block_at(&self, is_before: impl Fn(&T) -> bool) -> usize {
        self.blocks.partition_point(|block| block.front().is_some_and(&is_before)).saturating_sub(1)
    }

    /// The block in which an entry is, or would be.
    fn block_of(&self, order: impl Fn(&T) -> Ordering) -> usize {
        self.block_at(|it| order(it).is_le())
    }
}

impl<T: Clone> Many<T> {
    fn take(&mut self, order: impl Fn(&T) -> Ordering) -> Option<T> {
        let at = self.block_of(&order);
        let place = seek(&self.blocks[at], order).ok()?;
        let block = Arc::make_mut(&mut self.blocks[at]);
        let taken = block.remove(place);
        self.len -= 1;
        if block.is_empty() {
            self.blocks.remove(at);
        } else if block.len() < BLOCK / 4
            && let Some(next) = self.blocks.get(at + 1).filter(|next| next.len() < BLOCK / 4)
        {
            let next = Arc::clone(next);
            Arc::make_mut(&mut self.blocks[at]).extend(next.iter().cloned());
            self.blocks.remove(at + 1);
        }
        taken
    }

    fn insert_by(&mut self, entry: T, order: impl Fn(&T, &T) -> Ordering) -> bool {
        let at = self.block_of(|it| order(it, &entry));
        let is_last = at + 1 == self.blocks.len();
        let Err(place) = seek(&self.blocks[at], |it| order(it, &entry)) else { return false };
        let block = Arc::make_mut(&mut self.blocks[at]);
        self.len += 1;
        if block.len() < BLOCK {
            block.insert(place, entry);
        } else if is_last && place == BLOCK {
            // Entries added in order leave full blocks behind.
            self.blocks.push(Arc::new([entry].into()));
        } else {
            let mut upper = block.split_off(BLOCK / 2);
            match place.checked_sub(BLOCK / 2) {
                Some(place) => upper.insert(place, entry),
                None => block.insert(place, entry),
            }
            self.blocks.insert(at + 1, Arc::new(upper));
        }
        true
    }
}

/// Position of an entry in a block, or where it would be. Most are added at the end and removed at the front.
fn seek<T>(block: &VecDeque<T>, order: impl Fn(&T) -> Ordering) -> Result<usize, usize> {
    match block.back().map(&order) {
        None => return Err(0),
        Some(Ordering::Less) => return Err(block.len()),
        Some(Ordering::Equal) => return Ok(block.len() - 1),
        Some(Ordering::Greater) => {}
    }
    if block.front().is_some_and(|first| order(first).is_eq()) {
        return Ok(0);
    }
    block.binary_search_by(order)
}

impl<'a, T> IntoIterator for &'a Sorted<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The entries of a [`Sorted`], in order.
#[derive(Clone, Debug)]
pub struct Iter<'a, T> {
    block: vec_deque::Iter<'a, T>,
    rest: std::slice::Iter<'a, Arc<VecDeque<T>>>,
}

impl<T> Default for Iter<'_, T> {
    fn default() -> Self {
        Self { block: vec_deque::Iter::default(), rest: [].iter() }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;
    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(entry) = self.block.next() {
                return Some(entry);
            }
            self.block = self.rest.next()?.iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::Dice;

    fn agrees(list: &Sorted<usize>, set: &BTreeSet<usize>, dice: &mut Dice, range: usize) {
        assert_eq!((list.len(), list.is_empty(), list.first()), (set.len(), set.is_empty(), set.first()));
        assert!(list.iter().eq(set));
        for _ in 0..3 {
            let sought = dice.below(range);
            assert_eq!(list.contains(&sought), set.contains(&sought));
            assert_eq!(list.find(|it| it.cmp(&sought)), set.get(&sought));
            assert_eq!(list.count_before(|it| *it < sought), set.range(..sought).count());
            assert!(list.iter_from(|it| *it < sought).eq(set.range(sought..)));
        }
        if let Layout::Many(many) = &list.0 {
            assert!(many.blocks.iter().all(|block| !block.is_empty() && block.len() <= BLOCK));
            assert!(many.len > BLOCK / 2, "few entries fit in one block");
        }
    }

    /// Grows and shrinks, so that blocks are split, joined and dropped.
    #[test]
    fn a_list_behaves_like_a_set() {
        for seed in 0..24 {
            let mut dice = Dice(seed as u64);
            let range = [40, 300, 3_000, 100_000][seed % 4];
            let (mut list, mut set) = (Sorted::default(), BTreeSet::new());
            let mut next = 0;
            for round in 0..60 {
                let kept = (list.clone(), set.clone());
                let mode = dice.below(8);
                for _ in 0..dice.below(200) {
                    let random = dice.below(range);
                    match mode {
                        0 | 1 => assert_eq!(list.insert(random), set.insert(random)),
                        2 => {
                            next += 1;
                            assert_eq!(list.insert(next), set.insert(next));
                        }
                        3 | 4 => assert_eq!(list.remove(&random), set.remove(&random)),
                        5 => assert_eq!(set.pop_first(), list.pop_first()),
                        6 => {
                            let near = set.range(random..).next().copied();
                            near.into_iter().for_each(|it| assert!(list.remove(&it) && set.remove(&it)));
                        }
                        _ => {
                            let last = set.last().copied();
                            last.into_iter().for_each(|it| assert!(list.remove(&it) && set.remove(&it)));
                        }
                    }
                }
                if round % 5 == 0 {
                    let n = [3, 500][dice.below(2)];
                    let many: Vec<usize> = (0..dice.below(n)).map(|_| dice.below(range)).collect();
                    set.extend(&many);
                    if round % 10 == 0 {
                        list.extend(many);
                    } else {
                        let mut other = Sorted::default();
                        other.extend(many);
                        list.append(&mut other);
                        assert!(other.is_empty());
                    }
                }
                if round % 7 == 0 {
                    list.retain(|it| it % 5 != 0);
                    set.retain(|it| it % 5 != 0);
                }
                agrees(&list, &set, &mut dice, range);
                assert!(kept.0.iter().eq(&kept.1), "a copy stays as it was");
            }
        }
    }

    #[test]
    fn found_items_can_be_changed_except_for_their_key() {
        for n in [3, 1_000] {
            let mut list = Sorted::from_sorted((0..n).map(|number| (number, 0)).collect());
            let copy = list.clone();
            list.find_mut(|it| it.0.cmp(&2)).expect("it is there").1 = 7;
            assert_eq!(list.find_mut(|it| it.0.cmp(&n)), None);
            assert_eq!((list.find(|it| it.0.cmp(&2)), copy.find(|it| it.0.cmp(&2))), (Some(&(2, 7)), Some(&(2, 0))));
        }
    }

    #[test]
    fn entries_added_in_order_fill_their_blocks() {
        let mut list = Sorted::default();
        (0..10 * BLOCK).for_each(|n| assert!(list.insert(n)));
        let Layout::Many(many) = &list.0 else { panic!("many entries need several blocks") };
        assert_eq!(many.blocks.len(), 10);
    }
}
