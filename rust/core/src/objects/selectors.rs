//! Label selectors, node affinity, taints and tolerations (rules/03 §5, Kubernetes' own semantics).

use crate::objects::{LabelSelector, NodeSelectorTerm, PodSpec, Requirement, StringMap, Taint, Toleration};

/// Does a label selector match? `None` matches nothing.
pub fn selects(selector: Option<&LabelSelector>, labels: &StringMap) -> bool {
    selector.is_some_and(|s| {
        s.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && s.match_expressions.iter().all(|r| requirement_matches(r, labels) == Some(true))
    })
}

/// One expression against labels; `None` if the expression is malformed.
fn requirement_matches(requirement: &Requirement, labels: &StringMap) -> Option<bool> {
    let value = labels.get(&requirement.key);
    let values = &requirement.values;
    match requirement.operator.as_str() {
        "In" if !values.is_empty() => Some(value.is_some_and(|v| values.contains(v))),
        "NotIn" if !values.is_empty() => Some(value.is_none_or(|v| !values.contains(v))),
        "Exists" if values.is_empty() => Some(value.is_some()),
        "DoesNotExist" if values.is_empty() => Some(value.is_none()),
        "Gt" | "Lt" if values.len() == 1 => {
            let bound: i64 = values[0].parse().ok()?;
            let Some(actual) = value.and_then(|v| v.parse::<i64>().ok()) else { return Some(false) };
            Some(if requirement.operator == "Gt" { actual > bound } else { actual < bound })
        }
        _ => None,
    }
}

/// Does a term of a node affinity match a node? An empty term matches nothing.
pub fn term_matches(term: &NodeSelectorTerm, labels: &StringMap, name: &str) -> bool {
    let says_something = !(term.match_expressions.is_empty() && term.match_fields.is_empty());
    let field_matches = |it: &Requirement| match (it.key.as_str(), it.operator.as_str(), &it.values[..]) {
        ("metadata.name", "In", [only]) => only == name,
        ("metadata.name", "NotIn", [only]) => only != name,
        _ => false,
    };
    says_something
        && term.match_expressions.iter().all(|it| requirement_matches(it, labels) == Some(true))
        && term.match_fields.iter().all(field_matches)
}

/// Is a taint tolerated by one of these tolerations (rules/03 §5 rule 3)?
pub fn tolerated<'a>(taint: &Taint, tolerations: impl IntoIterator<Item = &'a Toleration>) -> bool {
    tolerations.into_iter().any(|t| {
        (t.effect.is_empty() || t.effect == taint.effect)
            && (t.key.is_empty() || t.key == taint.key)
            && match t.operator.as_str() {
                "" | "Equal" => t.value == taint.value,
                "Exists" => true,
                "Lt" | "Gt" => match (taint.value.parse::<i64>(), t.value.parse::<i64>()) {
                    (Ok(of_taint), Ok(bound)) if t.operator == "Lt" => of_taint < bound,
                    (Ok(of_taint), Ok(bound)) => of_taint > bound,
                    _ => false,
                },
                _ => false,
            }
    })
}

/// Why node affinity could not be evaluated: the malformed expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedAffinity(pub String);

/// Do a pod's node selector and required affinity match a flavor's node labels? Only relevant keys count (rules/03 §5
/// rule 4).
pub fn affinity_matches(
    spec: &PodSpec,
    node_labels: &StringMap,
    is_relevant: impl Fn(&str) -> bool,
) -> Result<bool, MalformedAffinity> {
    let relevant_selector = spec.node_selector.iter().filter(|(key, _)| is_relevant(key));
    for (key, value) in relevant_selector {
        if node_labels.get(key) != Some(value) {
            return Ok(false);
        }
    }
    let Some(terms) = &spec.required_node_affinity else { return Ok(true) };
    let relevant: Vec<Vec<&Requirement>> =
        terms.iter().map(|term| term.match_expressions.iter().filter(|it| is_relevant(&it.key)).collect()).collect();
    // Terms are ORed, so a term with no relevant key makes the affinity match.
    if relevant.iter().any(Vec::is_empty) {
        return Ok(true);
    }
    let mut malformed = None;
    for term in &relevant {
        let results: Vec<_> = term.iter().map(|r| requirement_matches(r, node_labels)).collect();
        if let Some(bad) = results.iter().position(Option::is_none) {
            malformed.get_or_insert_with(|| MalformedAffinity(describe(term[bad])));
        } else if results.iter().all(|r| *r == Some(true)) {
            return Ok(true);
        }
    }
    malformed.map_or(Ok(false), Err)
}

fn describe(requirement: &Requirement) -> String {
    format!("{:?} is not a valid label selector operator or has wrong values", requirement.operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> StringMap {
        pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    }

    fn requirement(key: &str, operator: &str, values: &[&str]) -> Requirement {
        Requirement {
            key: key.into(),
            operator: operator.into(),
            values: values.iter().map(|v| v.to_string()).collect(),
        }
    }

    #[test]
    fn an_absent_selector_matches_nothing_and_an_empty_one_everything() {
        assert!(!selects(None, &labels(&[])));
        assert!(selects(Some(&LabelSelector::default()), &labels(&[])));
    }

    #[test]
    fn tolerations_match_by_effect_key_and_operator() {
        let taint = Taint { key: "spot".into(), value: "5".into(), effect: "NoSchedule".into() };
        let toleration = |key: &str, operator: &str, value: &str, effect: &str| Toleration {
            key: key.into(),
            operator: operator.into(),
            value: value.into(),
            effect: effect.into(),
            toleration_seconds: None,
        };
        for (candidate, expected) in [
            (toleration("spot", "", "5", ""), true),
            (toleration("spot", "Equal", "6", ""), false),
            (toleration("", "Exists", "", "NoSchedule"), true),
            (toleration("spot", "Exists", "", "NoExecute"), false),
            (toleration("spot", "Lt", "6", ""), true),
            (toleration("spot", "Gt", "5", ""), false),
            (toleration("spot", "Gt", "x", ""), false),
            (toleration("spot", "Sometimes", "5", ""), false),
        ] {
            assert_eq!(tolerated(&taint, [&candidate]), expected, "{candidate:?}");
        }
    }

    #[test]
    fn only_keys_that_the_flavor_labels_count() {
        let flavor = labels(&[("type", "spot")]);
        let spec = |selector: &[(&str, &str)], terms: Option<Vec<Vec<Requirement>>>| PodSpec {
            node_selector: labels(selector),
            required_node_affinity: terms.map(|terms| {
                terms
                    .into_iter()
                    .map(|match_expressions| NodeSelectorTerm { match_expressions, ..NodeSelectorTerm::default() })
                    .collect()
            }),
            ..PodSpec::default()
        };
        let wants = |operator: &str, value: &str| requirement("type", operator, &[value]);
        for (pod, expected) in [
            (spec(&[("zone", "a")], None), Ok(true)),
            (spec(&[("type", "on-demand")], None), Ok(false)),
            (spec(&[], Some(vec![vec![wants("In", "spot")]])), Ok(true)),
            (spec(&[], Some(vec![vec![wants("In", "other")]])), Ok(false)),
            (spec(&[], Some(vec![vec![wants("In", "other")], vec![requirement("zone", "In", &["a"])]])), Ok(true)),
            (spec(&[], Some(vec![vec![wants("Is", "x")], vec![wants("NotIn", "x")]])), Ok(true)),
        ] {
            assert_eq!(affinity_matches(&pod, &flavor, |key| flavor.contains_key(key)), expected, "{pod:?}");
        }
        assert!(affinity_matches(&spec(&[], Some(vec![vec![wants("Is", "x")]])), &flavor, |_| true).is_err());
    }
}
