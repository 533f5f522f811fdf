//! Saves and loads an engine: a snapshot as large as its current state, whatever its history.
//!
//! Its parts: a note, the state, and a waiting cycle.

use crate::assign::{Mode, Possibility};
use crate::engine::Engine;
use crate::schedule::waiting::Waiting;
pub use crate::snapshot::LoadError;
use crate::snapshot::{Damage, Format, Reader, Stored, Writer};
use crate::state::State;
use crate::status::{activeness, reasons};

static FORMAT: Format = Format {
    kind: "kueuecore.engine/",
    line: "kueuecore.engine/8\n",
    what: "a saved engine: give load() the bytes that save() returned",
};

/// The fixed words of the program that may occur in a save.
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

impl Engine {
    /// The whole state as bytes, with a note of the caller. Equal states give equal bytes.
    pub fn save(&mut self, note: &[u8]) -> Vec<u8> {
        self.save_with(&FORMAT, note, |_| ())
    }

    /// The same with additional parts.
    pub(crate) fn save_with(&mut self, format: &Format, note: &[u8], more: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        self.settle();
        let mut out = Writer::new(&self.state.names);
        self.state.store(&mut out);
        self.waiting.as_ref().map(|waiting| waiting.shapes()).unwrap_or_default().write_to(&mut out);
        more(&mut out);
        let state = out.finish();
        let waiting = self.waiting.as_ref().map(|waiting| waiting.store(&self.state)).unwrap_or_default();
        format.seal(&[note, &state, &waiting])
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
        let (engine, note, ()) = Self::load_with(&FORMAT, bytes, |_| Ok(()))?;
        Ok((engine, note))
    }

    /// The same, with the additional parts.
    pub(crate) fn load_with<T>(
        format: &Format,
        bytes: &[u8],
        more: impl FnOnce(&mut Reader<'_>) -> Result<T, Damage>,
    ) -> Result<(Self, Vec<u8>, T), LoadError> {
        let mut parts = format.open(bytes)?;
        let note = parts.next()?.0.to_vec();
        let (state_bytes, state_at) = parts.next()?;
        let (waiting_bytes, waiting_at) = parts.next()?;
        parts.end()?;
        let mut from = Reader::new(state_bytes, state_at, &WORDS)?;
        let state = State::restore(&mut from)?;
        let shapes = Vec::read_from(&mut from)?;
        let more = more(&mut from)?;
        from.end()?;
        let waiting = if waiting_bytes.is_empty() {
            None
        } else {
            let mut from = Reader::new(waiting_bytes, waiting_at, &WORDS)?;
            let waiting = Waiting::restore(&state, shapes, &mut from)?;
            from.end()?;
            Some(Box::new(waiting))
        };
        if state.pending.has_waiting_cycle != waiting.is_some() {
            return Err(
                Damage { at: waiting_at, what: "a cycle that waits is missing, or is too much".to_owned() }.into()
            );
        }
        Ok((Self { state, waiting }, note, more))
    }
}

#[cfg(test)]
mod tests;
