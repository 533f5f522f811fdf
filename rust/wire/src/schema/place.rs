//! The place of a check in an object: a path that becomes text only when there is an error.

use std::fmt;

/// One step below another place.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    above: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    /// The object itself; its path is empty.
    pub(super) const ROOT: Place<'static> = Place { above: None, step: Step::Root };

    pub(super) fn field(&'a self, name: &'a str) -> Place<'a> {
        Place { above: Some(self), step: Step::Field(name) }
    }

    pub(super) fn index(&'a self, index: usize) -> Place<'a> {
        Place { above: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(above) = self.above else { return Ok(()) };
        above.fmt(f)?;
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if above.above.is_none() => f.write_str(name),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_as_a_field_path() {
        let spec = Place::ROOT.field("spec");
        let list = spec.field("podSets");
        assert_eq!(list.index(3).field("name").to_string(), "spec.podSets[3].name");
        assert_eq!(Place::ROOT.to_string(), "");
    }
}
