//! Rules across fields, as the CustomResourceDefinitions state them in CEL (rules/01 §10 7).

use serde_json::Value;

/// A rule on a part: its message, and a CEL expression that we wrote with the meaning of Kueue's.
pub(crate) struct Rule {
    pub(super) message: &'static str,
    pub(super) expression: &'static str,
    /// `None` for a rule that compares with the state before an update (`oldSelf`): `validate::update` checks it on
    /// objects.
    check: Option<Check>,
}

type Check = Box<dyn Fn(&Value) -> Outcome + Send + Sync>;

/// The result of a rule.
pub(crate) enum Outcome {
    Holds,
    Broken,
    /// It read an absent field, which is an error of its own.
    NoSuchKey(&'static str),
    /// It read an integer written as `1.0`, which passes everywhere else.
    NotAnInteger,
}

impl From<bool> for Outcome {
    fn from(holds: bool) -> Self {
        if holds { Outcome::Holds } else { Outcome::Broken }
    }
}

impl From<Result<bool, Outcome>> for Outcome {
    fn from(verdict: Result<bool, Outcome>) -> Self {
        verdict.map_or_else(|error| error, Outcome::from)
    }
}

impl Rule {
    pub(super) fn new<O: Into<Outcome>>(
        message: &'static str,
        expression: &'static str,
        rule: impl Fn(&Value) -> O + Send + Sync + 'static,
    ) -> Self {
        Self { message, expression, check: Some(Box::new(move |value| rule(value).into())) }
    }

    pub(super) fn on_update(message: &'static str, expression: &'static str) -> Self {
        Self { message, expression, check: None }
    }

    pub(super) fn check(&self, value: &Value) -> Outcome {
        self.check.as_ref().map_or(Outcome::Holds, |check| check(value))
    }
}

/// Is an integer field present?
pub(super) fn has_integer(value: &Value, name: &str) -> Result<bool, Outcome> {
    match value.get(name) {
        Some(Value::Number(number)) if !number.is_i64() => Err(Outcome::NotAnInteger),
        found => Ok(found.is_some()),
    }
}

/// The result of CEL's `all` on a list: a false entry decides, then one that failed to evaluate.
pub(super) fn all<'a>(entries: impl Iterator<Item = &'a Value>, rule: impl Fn(&'a Value) -> Outcome) -> Outcome {
    entries.map(rule).fold(Outcome::Holds, |all, one| match (all, one) {
        (Outcome::Broken, _) | (_, Outcome::Broken) => Outcome::Broken,
        (Outcome::Holds, one) => one,
        (all, _) => all,
    })
}
