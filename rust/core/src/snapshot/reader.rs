//! Reads values from bytes.

use std::any::Any;
use std::sync::Arc;

use super::{Damage, Pool, Pooled, Stored};
use crate::base::ids::{Id, IdSet, WorkloadId};
use crate::base::names::{Lexicon, Names};

/// At most this much room is allocated in advance for announced items.
const ROOM: usize = 1024;

/// Bytes being read, and what is known from them so far.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of these bytes in the whole save.
    begins_at: usize,
    pools: Vec<Option<Box<dyn Any>>>,
    /// The fixed words of the program that may occur.
    words: &'a [&'a [&'static str]],
    /// The names to which ids refer.
    pub names: Names,
    pub lexicon: Arc<Lexicon>,
    /// The existing workloads.
    pub live: IdSet<WorkloadId>,
}

impl<'a> Reader<'a> {
    /// Starts reading, with the names.
    pub fn new(bytes: &'a [u8], begins_at: usize, words: &'a [&'a [&'static str]]) -> Result<Self, Damage> {
        let pools = std::iter::repeat_with(|| None).take(Pool::COUNT).collect();
        let names = Names::default();
        let lexicon = names.lexicon();
        let mut reader = Self { bytes, at: 0, begins_at, pools, words, names, lexicon, live: IdSet::default() };
        reader.names = Names::read_from(&mut reader)?;
        reader.lexicon = reader.names.lexicon();
        Ok(reader)
    }

    /// An error at the current position.
    pub fn damage(&self, what: impl Into<String>) -> Damage {
        Damage { at: self.begins_at + self.at, what: what.into() }
    }

    /// An error at the current position, unless this holds.
    pub fn check(&self, holds: bool, what: &str) -> Result<(), Damage> {
        if holds { Ok(()) } else { Err(self.damage(what)) }
    }

    /// Checks that everything was read.
    pub fn end(&self) -> Result<(), Damage> {
        self.check(self.n_left() == 0, "more follows")
    }

    /// Number of remaining bytes.
    pub fn n_left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn byte(&mut self) -> Result<u8, Damage> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| self.damage("it ends here"))?;
        self.at += 1;
        Ok(byte)
    }

    /// Raw bytes.
    pub fn raw(&mut self, n: usize) -> Result<&'a [u8], Damage> {
        if n > self.n_left() {
            return Err(self.damage(format!("{n} bytes should follow, and {} do", self.n_left())));
        }
        let raw = &self.bytes[self.at..self.at + n];
        self.at += n;
        Ok(raw)
    }

    /// See [`super::Writer::number`].
    pub fn number(&mut self) -> Result<u128, Damage> {
        let mut number = 0u128;
        for shift in (0..).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if shift >= 128 || (bits << shift) >> shift != bits {
                return Err(self.damage("a number of more than 128 bits"));
            }
            number |= bits << shift;
            if byte < 0x80 {
                // Only one encoding per number, so that equal values give equal bytes.
                self.check(byte != 0 || shift == 0, "a number with needless digits")?;
                break;
            }
        }
        Ok(number)
    }

    /// See [`super::Writer::signed`].
    pub fn signed(&mut self) -> Result<i128, Damage> {
        let number = self.number()?;
        Ok((number >> 1) as i128 ^ -((number & 1) as i128))
    }

    /// Number of items that follow, with at least a byte each.
    pub fn count(&mut self) -> Result<usize, Damage> {
        let n = self.number()?;
        match usize::try_from(n).ok().filter(|&n| n <= self.n_left()) {
            Some(n) => Ok(n),
            None => Err(self.damage(format!("{n} items should follow in {} bytes", self.n_left()))),
        }
    }

    /// A list with its length.
    pub fn list<T>(&mut self, read: impl Fn(&mut Self) -> Result<T, Damage>) -> Result<Vec<T>, Damage> {
        let n = self.count()?;
        let mut items = Vec::with_capacity(n.min(ROOM));
        for _ in 0..n {
            items.push(read(self)?);
        }
        items.shrink_to_fit();
        Ok(items)
    }

    /// An index below `n`.
    pub fn index(&mut self, n: usize, of: &str) -> Result<usize, Damage> {
        let index = self.number()?;
        let found = usize::try_from(index).ok().filter(|&index| index < n);
        found.ok_or_else(|| self.damage(format!("{of} {index} of {n}")))
    }

    /// An id below `n`.
    pub fn id<I: Id>(&mut self, n: usize, of: &str) -> Result<I, Damage> {
        Ok(I::from_index(self.index(n, of)?))
    }

    /// Existing workloads.
    pub fn live_workloads(&mut self) -> Result<IdSet<WorkloadId>, Damage> {
        let ids = IdSet::read_from(self)?;
        self.check(ids.iter().all(|id| self.live.contains(id)), "an unknown workload")?;
        Ok(ids)
    }

    /// A fixed word of the program.
    pub fn word(&mut self) -> Result<&'static str, Damage> {
        let text: Arc<str> = self.pooled(Pool::Texts)?;
        let known = self.words.iter().flat_map(|words| words.iter()).find(|word| ***word == *text);
        known.copied().ok_or_else(|| self.damage(format!("an unknown word: {:?}", shortened(&text))))
    }

    /// A part of a pool.
    pub fn pooled<H: Clone + 'static>(&mut self, pool: Pool) -> Result<H, Damage> {
        let index = self.number()?;
        let part = usize::try_from(index).ok().and_then(|index| self.part(pool, index));
        part.ok_or_else(|| self.damage(format!("part {index} of {pool:?}")))
    }

    /// The part at an index of a pool, if it was read already.
    pub fn part<H: Clone + 'static>(&self, pool: Pool, index: usize) -> Option<H> {
        self.pools[pool as usize].as_ref()?.downcast_ref::<Vec<H>>()?.get(index).cloned()
    }

    /// Reads the parts of a pool.
    pub fn fill<H: Pooled>(&mut self) -> Result<(), Damage> {
        let parts = self.list(H::read_part)?;
        self.set(H::POOL, parts);
        Ok(())
    }

    /// Sets the parts of a pool.
    pub fn set<H: 'static>(&mut self, pool: Pool, parts: Vec<H>) {
        self.pools[pool as usize] = Some(Box::new(parts));
    }
}

/// The start of a text, for messages.
fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}
