//! The envelope of saved values: kind, version, length, and a checksum.
//!
//! ```text
//! kind/format\n | length, version | length, CRC-32 | parts, each behind its length
//! ```

use thiserror::Error;

use super::Damage;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A kind of save.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// The start of its first line: kind, up to the format number.
    pub kind: &'static str,
    /// The whole line. It changes with every incompatible change of the format.
    pub line: &'static str,
    /// What the user should have given.
    pub what: &'static str,
}

/// Bytes that cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// Something else.
    #[error("this is not {0}")]
    Foreign(&'static str),
    /// A save of another format.
    #[error("this was saved as {found:?}, and only {known:?} can be read: load it with the version that saved it")]
    Format {
        /// The format found.
        found: String,
        /// The format that can be read.
        known: &'static str,
    },
    /// A save of another version, which may decide differently.
    #[error("this was saved by kueuecore {found}, but this is {VERSION}: load it with the version that saved it")]
    Version {
        /// The version found.
        found: String,
    },
    /// The end is missing, or something follows it.
    #[error(
        "this is not a whole save: {expected} bytes follow its header, but {actual} are there; take another copy of it"
    )]
    Length {
        /// The length in its header.
        expected: u64,
        /// The actual length.
        actual: usize,
    },
    /// It has changed since it was saved.
    #[error("this is a damaged save: its checksum does not match; take another copy of it")]
    Checksum,
    /// The checksum is right, but the contents are invalid.
    #[error("this is not a valid save: {0}")]
    Invalid(#[from] Damage),
}

impl Format {
    /// Length of the header.
    pub fn n_header(&self) -> usize {
        self.line.len() + VERSION.len() + 13
    }

    /// Wraps parts in an envelope.
    pub fn seal(&self, parts: &[&[u8]]) -> Vec<u8> {
        let n_bytes: usize = parts.iter().map(|part| part.len() + size_of::<u64>()).sum();
        let mut bytes = Vec::with_capacity(self.n_header() + n_bytes);
        bytes.extend_from_slice(self.line.as_bytes());
        bytes.push(VERSION.len() as u8);
        bytes.extend_from_slice(VERSION.as_bytes());
        bytes.extend_from_slice(&(n_bytes as u64).to_le_bytes());
        let checksum_at = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        let checksum = crc32fast::hash(&bytes[checksum_at + 4..]);
        bytes[checksum_at..checksum_at + 4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Unwraps the parts.
    ///
    /// # Errors
    /// [`LoadError`]: something else, another version, or damaged.
    pub fn open<'a>(&self, bytes: &'a [u8]) -> Result<Parts<'a>, LoadError> {
        let Some(rest) = bytes.strip_prefix(self.line.as_bytes()) else {
            let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
            let found =
                std::str::from_utf8(&line[..line.len().min(64)]).ok().filter(|line| line.starts_with(self.kind));
            return Err(found.map_or(LoadError::Foreign(self.what), |found| LoadError::Format {
                found: found.to_owned(),
                known: self.line.trim_end(),
            }));
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
        Ok(Parts { bytes: payload, at: bytes.len() - payload.len() })
    }
}

/// Parts, each preceded by its length.
pub(crate) struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parts<'a> {
    /// The next part, and its offset.
    pub fn next(&mut self) -> Result<(&'a [u8], usize), Damage> {
        let damage = |what: &str| Damage { at: self.at, what: what.to_owned() };
        let (length, rest) = self.bytes.split_first_chunk().ok_or_else(|| damage("a length is missing"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok();
        let parts = length.and_then(|length| rest.split_at_checked(length));
        let (part, rest) = parts.ok_or_else(|| damage("a part is missing"))?;
        let at = self.at + size_of::<u64>();
        (self.bytes, self.at) = (rest, at + part.len());
        Ok((part, at))
    }

    /// Checks that no more parts follow.
    pub fn end(&self) -> Result<(), Damage> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Damage { at: self.at, what: "more follows".to_owned() }) }
    }
}
