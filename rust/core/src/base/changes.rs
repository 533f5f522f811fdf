//! Changes of Kueue that have no feature gate: each is a switch that a rule asks for, as it asks for a gate.

mod table;

use super::bits::{Bits, CAPACITY};
use super::releases::Release;

pub use table::{Change, Proof};
use table::{Row, TABLE};

const _: () = assert!(Change::ALL.len() <= CAPACITY);

impl Change {
    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name, which the reference shares.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The change of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Change> {
        Change::ALL.into_iter().find(|it| it.name() == name)
    }

    /// What Kueue does since, and what it did before.
    #[must_use]
    pub fn what(self) -> &'static str {
        self.row().what
    }

    /// Kueue's pull requests.
    #[must_use]
    pub fn pulls(self) -> &'static [u16] {
        self.row().pulls
    }

    /// The rule that it amends, such as `rules/03 §4`.
    #[must_use]
    pub fn rule(self) -> &'static str {
        self.row().rule
    }

    /// How the old behaviour is known.
    #[must_use]
    pub fn proof(self) -> Proof {
        self.row().proof
    }

    /// Does this release have it?
    ///
    /// The first release of each line that has it is listed; lines after the last one listed have it, too.
    #[must_use]
    pub fn is_in(self, release: Release) -> bool {
        let since = self.row().since;
        let version = release.version();
        let in_line = since.iter().find(|it| it.minor() == version.minor());
        match (in_line, since.last()) {
            (Some(&first), _) => version >= first,
            (None, Some(last)) => version > *last,
            (None, None) => false,
        }
    }
}

/// The changes that are in effect: those of a release, with some of them switched one by one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Changes(Bits);

impl Default for Changes {
    /// All of them, as in the newest Kueue.
    fn default() -> Self {
        Changes::of(Release::default())
    }
}

impl std::fmt::Debug for Changes {
    /// Only those that are not in effect.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Changes without ")?;
        f.debug_list().entries(Change::ALL.iter().filter(|&&it| !self.has(it)).map(|it| it.name())).finish()
    }
}

impl Changes {
    /// The changes of a release.
    #[must_use]
    pub fn of(release: Release) -> Self {
        let all = Change::ALL.into_iter().filter(|it| it.is_in(release));
        all.fold(Changes(Bits::EMPTY), |changes, it| changes.with(it, true))
    }

    /// Is the change in effect?
    #[must_use]
    pub const fn has(self, change: Change) -> bool {
        self.0.has(change as usize)
    }

    /// Those of these changes that are in effect, and no others.
    #[must_use]
    pub fn among(self, some: &[Change]) -> Self {
        some.iter().filter(|&&it| self.has(it)).fold(Changes(Bits::EMPTY), |found, &it| found.with(it, true))
    }

    /// A copy with one change switched.
    #[must_use]
    pub const fn with(self, change: Change, on: bool) -> Self {
        Changes(self.0.with(change as usize, on))
    }
}

/// The rows as JSON, one a line, for the table of releases.
#[cfg(test)]
pub(super) fn json() -> Vec<String> {
    use super::releases::{Version, json_text};
    let row = |row: &Row| {
        let pulls: Vec<String> = row.pulls.iter().map(u16::to_string).collect();
        let since: Vec<String> = row.since.iter().map(|it: &Version| json_text(&it.to_string())).collect();
        format!(
            r#"{{"name": {}, "pulls": [{}], "since": [{}], "what": {}, "rule": {}, "proof": {}}}"#,
            json_text(row.name),
            pulls.join(", "),
            since.join(", "),
            json_text(row.what),
            json_text(row.rule),
            json_text(row.proof.name()),
        )
    };
    TABLE.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_releases_are_in_order_and_every_change_is_in_the_newest() {
        for change in Change::ALL {
            assert_eq!(format!("{change:?}"), change.name());
            assert!(change.row().since.is_sorted(), "{change:?}");
            assert!(Release::newest().last().is_some_and(|it| change.is_in(it)), "{change:?}");
        }
    }

    #[test]
    fn a_backport_is_in_its_line_from_its_patch() {
        let change = Change::FitBeatsNoCandidates;
        let having = Release::all().filter(|&it| change.is_in(it)).map(|it| it.to_string());
        assert_eq!(having.collect::<Vec<_>>(), ["0.18.5", "0.18.6", "0.19.1", "0.19.2", "0.20.0-devel", "0.20.0"]);
        let old = Changes::of(Release::from_name("0.19.0").expect("a release"));
        assert!(!old.has(change) && Changes::default().has(change));
        assert!(old.with(change, true).has(change));
    }
}
