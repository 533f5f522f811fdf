//! An append-only list: others may hold it and read the items they know while its owner appends.

use std::fmt;
use std::ops::Index;
use std::sync::OnceLock;

/// Items of the first piece; each piece is twice as large as the one before.
const FIRST: usize = 8;
/// Together they hold more than 2^32 items.
const N_PIECES: usize = 30;

type Piece<T> = Box<[OnceLock<T>]>;

/// Items that never move or change once added.
pub struct Appended<T> {
    pieces: [OnceLock<Piece<T>>; N_PIECES],
}

impl<T> Appended<T> {
    /// Appends an item; `index` is the current length.
    pub(super) fn set(&self, index: usize, item: T) {
        let (piece, at) = place(index);
        let piece = self.pieces[piece].get_or_init(|| (0..FIRST << piece).map(|_| OnceLock::new()).collect());
        assert!(piece[at].set(item).is_ok(), "an item is set once");
    }

    /// The item, if there is one.
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        let (piece, at) = place(index);
        self.pieces[piece].get()?[at].get()
    }

    /// All items in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().map_while(OnceLock::get).flat_map(|piece| piece.iter().map_while(OnceLock::get))
    }
}

/// The piece of an item, and its index there.
fn place(index: usize) -> (usize, usize) {
    let piece = (index / FIRST + 1).ilog2() as usize;
    (piece, index + FIRST - (FIRST << piece))
}

impl<T> Default for Appended<T> {
    fn default() -> Self {
        Self { pieces: [const { OnceLock::new() }; N_PIECES] }
    }
}

impl<T> Index<usize> for Appended<T> {
    type Output = T;
    fn index(&self, index: usize) -> &T {
        self.get(index).expect("an item that was added")
    }
}

impl<T: fmt::Debug> fmt::Debug for Appended<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_in_every_piece() {
        let list = Appended::default();
        for n in 0..1000 {
            assert_eq!(list.get(n), None);
            list.set(n, 3 * n);
        }
        assert!((0..1000).all(|n| list[n] == 3 * n));
        assert!(list.iter().copied().eq((0..1000).map(|n| 3 * n)));
        assert_eq!(format!("{list:?}"), format!("{:?}", list.iter().collect::<Vec<_>>()));
    }

    #[test]
    fn pieces_follow_one_another() {
        let mut expected = (0, 0);
        for n in 0..FIRST << 6 {
            assert_eq!(place(n), expected, "{n}");
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(place(u32::MAX as usize).0, N_PIECES - 1);
    }
}
