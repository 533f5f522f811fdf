//! Writes values to bytes.

use std::collections::hash_map::Entry;
use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

use super::{Pool, Stored};
use crate::base::ids::{Id, ShapeId};
use crate::base::names::Names;

/// Bytes being written, with the pools to which they refer.
pub(crate) struct Writer<'a> {
    bytes: Vec<u8>,
    /// What comes before the pools.
    head: Vec<u8>,
    pools: Vec<Parts>,
    /// The names to which ids refer.
    pub names: &'a Names,
    /// The shapes, by id.
    pub shapes: Vec<Option<&'a dyn Stored>>,
    /// The forms, by id.
    pub forms: Vec<Option<&'a dyn Stored>>,
    /// The first spec of a form among those written, by the form's id.
    pub spec_of_form: FxHashMap<u32, u32>,
    /// The numbers under which trees are written, by id.
    pub trees: FxHashMap<u32, u32>,
}

/// The parts of a pool, concatenated.
#[derive(Default)]
struct Parts {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// By memory address. All of them outlive the writer.
    by_address: FxHashMap<usize, u32>,
    /// By a hash of their bytes; on a collision, under the next free hash.
    by_hash: FxHashMap<u64, u32>,
    scratch: Vec<u8>,
}

impl<'a> Writer<'a> {
    /// An empty writer.
    pub fn new(names: &'a Names) -> Self {
        Self {
            bytes: Vec::new(),
            head: Vec::new(),
            pools: std::iter::repeat_with(Parts::default).take(Pool::COUNT).collect(),
            names,
            shapes: Vec::new(),
            forms: Vec::new(),
            spec_of_form: FxHashMap::default(),
            trees: FxHashMap::default(),
        }
    }

    /// Puts what has been written so far before the pools: what reads them needs it.
    pub fn end_head(&mut self) {
        self.head = std::mem::take(&mut self.bytes);
    }

    /// The result: the names, the head, the pools, and everything else.
    pub fn finish(mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.bytes);
        let names = self.names;
        names.write_to(&mut self);
        self.bytes.append(&mut self.head);
        for pool in std::mem::take(&mut self.pools) {
            self.count(pool.ends.len());
            self.bytes.extend_from_slice(&pool.bytes);
        }
        self.bytes.extend_from_slice(&rest);
        self.bytes
    }

    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Raw bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A number in as few bytes as possible, seven bits each.
    pub fn number(&mut self, number: u128) {
        put_number(&mut self.bytes, number);
    }

    /// A signed number; smaller magnitudes are shorter.
    pub fn signed(&mut self, number: i128) {
        self.number(((number << 1) ^ (number >> 127)) as u128);
    }

    /// A number of items.
    pub fn count(&mut self, n: usize) {
        self.number(n as u128);
    }

    /// Text with its length.
    pub fn string(&mut self, text: &str) {
        self.count(text.len());
        self.raw(text.as_bytes());
    }

    /// A list with its length.
    pub fn list<'b, T: Stored + 'b>(&mut self, items: impl ExactSizeIterator<Item = &'b T>) {
        self.count(items.len());
        items.for_each(|item| item.write_to(self));
    }

    /// Refers to a part of a pool, writing it there unless an equal one exists.
    pub fn put(&mut self, pool: Pool, address: usize, write: impl FnOnce(&mut Self)) -> u32 {
        let index = match self.pools[pool as usize].by_address.get(&address) {
            Some(&known) => known,
            None => {
                let bytes = self.apart(write);
                let parts = &mut self.pools[pool as usize];
                let index = parts.index_of(&bytes);
                parts.by_address.insert(address, index);
                index
            }
        };
        self.number(u128::from(index));
        index
    }

    /// The same for text, which is found by its contents.
    pub fn text(&mut self, text: &str) {
        let index = self.pools[Pool::Texts as usize].index_of_text(text);
        self.number(u128::from(index));
    }

    /// What `write` writes, separately from the rest.
    fn apart(&mut self, write: impl FnOnce(&mut Self)) -> Vec<u8> {
        let outer = std::mem::take(&mut self.bytes);
        write(self);
        std::mem::replace(&mut self.bytes, outer)
    }

    /// The contents of a shape, which give shapes an order independent of their ids. Adds nothing to a pool.
    pub fn shape(&mut self, id: ShapeId) -> Vec<u8> {
        let shape = self.shapes[id.index()].expect("a shape in use is kept");
        self.apart(|out| shape.write_to(out))
    }
}

impl Parts {
    fn index_of(&mut self, bytes: &[u8]) -> u32 {
        let mut hasher = FxHasher::default();
        hasher.write(bytes);
        let mut hash = hasher.finish();
        loop {
            match self.by_hash.entry(hash) {
                Entry::Occupied(found) => {
                    let index = *found.get() as usize;
                    let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
                    if self.bytes[start..self.ends[index]] == *bytes {
                        return index as u32;
                    }
                    hash = hash.wrapping_add(1);
                }
                Entry::Vacant(free) => {
                    let index = u32::try_from(self.ends.len()).expect("fewer than 2^32 parts");
                    free.insert(index);
                    self.bytes.extend_from_slice(bytes);
                    self.ends.push(self.bytes.len());
                    return index;
                }
            }
        }
    }

    /// Texts are preceded by their lengths.
    fn index_of_text(&mut self, text: &str) -> u32 {
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        put_number(&mut bytes, text.len() as u128);
        bytes.extend_from_slice(text.as_bytes());
        let index = self.index_of(&bytes);
        self.scratch = bytes;
        index
    }
}

fn put_number(bytes: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
