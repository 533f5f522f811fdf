//! An engine as bytes and back: a snapshot, as large as what it holds now, whatever has happened before.
//!
//! ```text
//! kueuecore.engine/4\n | length, version | length, CRC-32 | payload
//! payload: note, state, and the cycle that waits; each behind its length
//! ```

use thiserror::Error;

use crate::assign::{Mode, Possibility};
use crate::engine::Engine;
use crate::schedule::waiting::Waiting;
use crate::snapshot::{Damage, Reader, Stored, Writer};
use crate::state::State;
use crate::status::{activeness, reasons};

/// What each save begins with, up to the number of the format.
const KIND: &str = "kueuecore.engine/";
/// The format. Another one for whatever reads differently.
const FORMAT: &str = "kueuecore.engine/4\n";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The words of the program that may stand in a save.
const WORDS: [&[&str]; 3] = [
    &reasons::OF_DECISIONS,
    &activeness::REASONS,
    &[
        Mode::NoFit.as_str(),
        Mode::Preempt.as_str(),
        Mode::DeferredFit.as_str(),
        Mode::Fit.as_str(),
        Possibility::NoCandidates.as_str(),
        Possibility::Reclaim.as_str(),
    ],
];

/// Bytes that are no engine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// Something else.
    #[error("this is not a saved engine: give load() the bytes that save() returned")]
    Foreign,
    /// A save of another format.
    #[error("this was saved as {found:?}, and only {:?} can be read: load it with the version that saved it", FORMAT.trim_end())]
    Format {
        /// What it says.
        found: String,
    },
    /// A save of another version, which may decide otherwise.
    #[error("this was saved by kueuecore {found}, but this is {VERSION}: load it with the version that saved it")]
    Version {
        /// What it says.
        found: String,
    },
    /// The end is missing, or something follows it.
    #[error(
        "this is not a whole save: {expected} bytes follow its header, but {actual} are there; take another copy of it"
    )]
    Length {
        /// As its header says.
        expected: u64,
        /// So many there are.
        actual: usize,
    },
    /// It has changed since.
    #[error("this is a damaged save: its checksum does not match; take another copy of it")]
    Checksum,
    /// It has the right checksum, and no engine in it.
    #[error("this is not a valid save: {0}")]
    Invalid(#[from] Damage),
}

impl Engine {
    /// All that it knows as bytes, with a note of the caller's. Equal states are equal bytes.
    pub fn save(&mut self, note: &[u8]) -> Vec<u8> {
        self.settle();
        let mut out = Writer::new(&self.state.names);
        self.state.store(&mut out);
        self.waiting.as_ref().map(|waiting| waiting.shapes()).unwrap_or_default().write_to(&mut out);
        let state = out.finish();
        let waiting = self.waiting.as_ref().map(|waiting| waiting.store(&self.state)).unwrap_or_default();
        let n_bytes = note.len() + state.len() + waiting.len() + 3 * size_of::<u64>();
        let mut bytes = Vec::with_capacity(FORMAT.len() + VERSION.len() + 13 + n_bytes);
        bytes.extend_from_slice(FORMAT.as_bytes());
        bytes.push(VERSION.len() as u8);
        bytes.extend_from_slice(VERSION.as_bytes());
        bytes.extend_from_slice(&(n_bytes as u64).to_le_bytes());
        let checksum_at = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        for part in [note, &state, &waiting] {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        let checksum = crc32fast::hash(&bytes[checksum_at + 4..]);
        bytes[checksum_at..checksum_at + 4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The engine that was saved, which decides from then on as the other one does, and the note that was saved with it.
    ///
    /// ```
    /// use kueuecore::engine::Engine;
    /// use kueuecore::objects::config::Config;
    ///
    /// let mut engine = Engine::new(Config::default());
    /// let saved = engine.save(b"mine");
    /// let (mut loaded, note) = Engine::load(&saved).expect("what was saved");
    /// assert_eq!((loaded.save(&note), note.as_slice()), (saved, &b"mine"[..]));
    /// ```
    ///
    /// # Errors
    /// [`LoadError`]: these are not the bytes of an engine of this version, or they were damaged.
    pub fn load(bytes: &[u8]) -> Result<(Self, Vec<u8>), LoadError> {
        let (payload, at) = payload(bytes)?;
        let mut parts = Parts { bytes: payload, at };
        let note = parts.next()?.0.to_vec();
        let (state_bytes, state_at) = parts.next()?;
        let (waiting_bytes, waiting_at) = parts.next()?;
        parts.end()?;
        let mut from = Reader::new(state_bytes, state_at, &WORDS)?;
        let state = State::restore(&mut from)?;
        let shapes = Vec::read_from(&mut from)?;
        from.end()?;
        let waiting = if waiting_bytes.is_empty() {
            None
        } else {
            let mut from = Reader::new(waiting_bytes, waiting_at, &WORDS)?;
            let waiting = Waiting::restore(&state, shapes, &mut from)?;
            from.end()?;
            Some(Box::new(waiting))
        };
        if state.has_waiting_cycle != waiting.is_some() {
            return Err(
                Damage { at: waiting_at, what: "a cycle that waits is missing, or is too much".to_owned() }.into()
            );
        }
        Ok((Self { state, waiting }, note))
    }
}

/// What follows the header, and where.
fn payload(bytes: &[u8]) -> Result<(&[u8], usize), LoadError> {
    let Some(rest) = bytes.strip_prefix(FORMAT.as_bytes()) else {
        let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let found = std::str::from_utf8(&line[..line.len().min(64)]).ok().filter(|line| line.starts_with(KIND));
        return Err(found.map_or(LoadError::Foreign, |found| LoadError::Format { found: found.to_owned() }));
    };
    let missing = LoadError::Length { expected: 1, actual: 0 };
    let (&length, rest) = rest.split_first().ok_or(missing.clone())?;
    let (version, rest) = rest.split_at_checked(length.into()).ok_or(missing.clone())?;
    if version != VERSION.as_bytes() {
        return Err(LoadError::Version { found: String::from_utf8_lossy(version).into_owned() });
    }
    let (length, rest) = rest.split_first_chunk().ok_or(missing.clone())?;
    let (checksum, payload) = rest.split_first_chunk().ok_or(missing)?;
    let expected = u64::from_le_bytes(*length);
    if expected != payload.len() as u64 {
        return Err(LoadError::Length { expected, actual: payload.len() });
    }
    if crc32fast::hash(payload) != u32::from_le_bytes(*checksum) {
        return Err(LoadError::Checksum);
    }
    Ok((payload, bytes.len() - payload.len()))
}

/// The parts of a payload, each behind its length.
struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parts<'a> {
    /// The next part, and where it begins.
    fn next(&mut self) -> Result<(&'a [u8], usize), Damage> {
        let damage = |what: &str| Damage { at: self.at, what: what.to_owned() };
        let (length, rest) = self.bytes.split_first_chunk().ok_or_else(|| damage("a length is missing"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok();
        let parts = length.and_then(|length| rest.split_at_checked(length));
        let (part, rest) = parts.ok_or_else(|| damage("a part is missing"))?;
        let at = self.at + size_of::<u64>();
        (self.bytes, self.at) = (rest, at + part.len());
        Ok((part, at))
    }

    fn end(&self) -> Result<(), Damage> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Damage { at: self.at, what: "more follows".to_owned() }) }
    }
}

#[cfg(test)]
mod tests;
