//! The releases of Kueue whose decisions the engine makes: gates and changes have their history by release.

use std::fmt;

/// A version of Kueue: what orders gates, changes and releases in time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    minor: u8,
    patch: i8,
}

/// In place of a patch: the development before `.0`.
pub const DEVEL: i8 = -1;

impl Version {
    /// `0.minor.patch`.
    #[must_use]
    pub const fn new(minor: u8, patch: i8) -> Self {
        Version { minor, patch }
    }

    /// The `17` of `0.17.3`.
    #[must_use]
    pub const fn minor(self) -> u8 {
        self.minor
    }
}

impl fmt::Display for Version {
    /// As Kueue's tags, without the `v`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.patch {
            DEVEL => write!(f, "0.{}.0-devel", self.minor),
            patch => write!(f, "0.{}.{patch}", self.minor),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A release of Kueue that the engine knows, or the commit of its development that it was built from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(Version);

/// The newest patch of each line.
const LINES: [(u8, i8); 5] = [(16, 9), (17, 8), (18, 6), (19, 2), (20, 0)];

/// Where the `development` of a line is taken from.
const COMMIT: &str = "ff69552e79ad21652c36caa97038382e55625cf7";

impl Release {
    /// The commit of Kueue's development that every rule was first written from.
    pub const DEVELOPMENT: Release = Release(Version::new(20, DEVEL));

    /// Every release, oldest first.
    pub fn all() -> impl Iterator<Item = Release> {
        let first = |minor| if minor == Self::DEVELOPMENT.0.minor { DEVEL } else { 0 };
        let patches = move |&(minor, newest)| (first(minor)..=newest).map(move |it| Release(Version::new(minor, it)));
        LINES.iter().flat_map(patches)
    }

    /// The newest release of each line, oldest first.
    pub fn newest() -> impl Iterator<Item = Release> {
        LINES.iter().map(|&(minor, patch)| Release(Version::new(minor, patch)))
    }

    /// The release of a name: `0.17.3`, `0.17` for the newest of its line, `0.20-dev` for the commit, all also with a
    /// `v`; `None` if it is not known.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Release> {
        let name = name.strip_prefix('v').unwrap_or(name);
        if name.strip_suffix("-dev").is_some_and(|line| line == Self::DEVELOPMENT.line()) {
            return Some(Self::DEVELOPMENT);
        }
        Self::all().find(|it| it.to_string() == name).or_else(|| Self::newest().find(|it| it.line() == name))
    }

    #[must_use]
    pub const fn version(self) -> Version {
        self.0
    }

    /// The line that it belongs to, such as `0.17`.
    #[must_use]
    pub fn line(self) -> String {
        format!("0.{}", self.0.minor)
    }

    /// The commit of Kueue, for a release without a tag.
    #[must_use]
    pub fn commit(self) -> Option<&'static str> {
        (self == Self::DEVELOPMENT).then_some(COMMIT)
    }
}

impl Default for Release {
    /// The newest that has a tag.
    fn default() -> Self {
        let [.., (minor, patch)] = LINES;
        Release(Version::new(minor, patch))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A JSON string of a text without control characters.
#[cfg(test)]
pub(super) fn json_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_release_or_the_newest_of_a_line() {
        let shown = |name| Release::from_name(name).map(|it| it.to_string());
        for (name, release) in [
            ("0.17.3", "0.17.3"),
            ("v0.17.3", "0.17.3"),
            ("0.17", "0.17.8"),
            ("0.20", "0.20.0"),
            ("0.20.0-devel", "0.20.0-devel"),
            ("v0.20-dev", "0.20.0-devel"),
        ] {
            assert_eq!(shown(name).as_deref(), Some(release), "{name}");
        }
        for name in ["", "v", "0.17.9", "0.19-dev", "0.20.1", "0.15.2", "17", "0.17.03", "1.17.3", "latest"] {
            assert_eq!(shown(name), None, "{name}");
        }
    }

    #[test]
    fn releases_are_in_order() {
        let all: Vec<Release> = Release::all().collect();
        assert!(all.is_sorted());
        assert_eq!(all.last(), Release::newest().last().as_ref());
        assert!(all.contains(&Release::DEVELOPMENT) && Version::new(20, DEVEL) < Version::new(20, 0));
    }
}
