//! An assignment in the words that Kueue writes (rules/03 §7).

use crate::assign::{Assignment, Attempt, Mode, PodSetAssignment, Reason};
use crate::base::amount::Amount;
use crate::base::ids::ResourceId;
use crate::base::names::Names;
use crate::objects::PodSet;
use crate::objects::resource_names::quantity_from_value;

/// A quantity of a resource as Kueue prints it.
fn quantity(names: &Names, resource: ResourceId, value: i64) -> String {
    quantity_from_value(names.resource_text(resource), value, false).text().into_owned()
}

/// An amount of a resource; the sentinel prints `<unlimited>`.
fn amount(names: &Names, resource: ResourceId, amount: Amount) -> String {
    if amount.is_unlimited() { amount.to_string() } else { quantity(names, resource, amount.get()) }
}

/// One reason in Kueue's words (rules/03 §3 to §5).
pub fn reason(names: &Names, reason: &Reason) -> String {
    let flavor = |id: &crate::base::ids::FlavorId| &names.flavors[*id];
    match reason {
        Reason::ResourceUnavailable(resource) => {
            format!("resource {} unavailable in ClusterQueue", names.resource_text(*resource))
        }
        Reason::FlavorNotFound(id) => format!("flavor {} not found", flavor(id)),
        Reason::NotNominated(id, resource) => format!(
            "skipping flavor {} as it is not found in the nomination mapping for resource {}",
            flavor(id),
            names.resource_text(*resource)
        ),
        Reason::NotAllowed(id) => {
            format!("skipping flavor {} due to WorkloadAllowedResourceFlavorAnnotation annotation", flavor(id))
        }
        Reason::TopologyUnsupported(id) => {
            format!("Flavor \"{}\" does not support TopologyAwareScheduling", flavor(id))
        }
        Reason::TopologyOnly(id) => format!("Flavor \"{}\" supports only TopologyAwareScheduling", flavor(id)),
        Reason::UntoleratedTaint(id, taint) => format!(
            "untolerated taint {{{} {} {} <nil>}} in flavor {}",
            taint.key,
            taint.value,
            taint.effect,
            flavor(id)
        ),
        Reason::AffinityMismatch(id) => format!("flavor {} doesn't match node affinity", flavor(id)),
        Reason::ExceedsMaximum { fr, assumed, requested, maximum } => {
            let (id, resource) = names.parts(*fr);
            let (resource_name, flavor) = (names.resource_text(resource), flavor(&id).as_str());
            // Without the machinery of formats: most heads that stay pending are told this or the next.
            [
                "insufficient quota for ",
                resource_name,
                " in flavor ",
                flavor,
                ", previously considered podsets requests (",
                &amount(names, resource, *assumed),
                ") + current podset request (",
                &quantity(names, resource, *requested),
                ") > maximum capacity (",
                &amount(names, resource, *maximum),
                ")",
            ]
            .concat()
        }
        Reason::Insufficient { fr, missing } => {
            let (id, resource) = names.parts(*fr);
            let missing = amount(names, resource, *missing);
            let (resource, flavor) = (names.resource_text(resource), flavor(&id).as_str());
            ["insufficient unused quota for ", resource, " in flavor ", flavor, ", ", &missing, " more needed"].concat()
        }
        Reason::ReplacedSliceFlavor(id, original) => format!(
            "could not assign {} flavor since the original workload is assigned: {}",
            flavor(id),
            original.as_ref().map_or("", |o| flavor(o))
        ),
        Reason::ResourceNotProvided(id, resource) => {
            format!("flavor {} does not provide resource {}", flavor(id), names.resource_text(*resource))
        }
    }
}

/// The reasons of a pod set's status, sorted (rules/03 §7).
pub fn status_reasons(names: &Names, pod_set: &PodSetAssignment) -> Vec<String> {
    let mut texts: Vec<String> = pod_set.reasons.iter().map(|r| reason(names, r)).collect();
    texts.sort();
    texts
}

/// The reasons of an attempt: sorted, equal texts once (rules/03 §7).
pub fn attempt_reasons(names: &Names, reasons: &[Reason]) -> Vec<String> {
    let mut texts: Vec<String> = reasons.iter().map(|r| reason(names, r)).collect();
    texts.sort();
    texts.dedup();
    texts
}

/// The message of an assignment; empty where everything fits (rules/03 §7).
pub fn assignment(names: &Names, assignment: &Assignment, pod_sets: &[PodSet]) -> String {
    let mut message = String::new();
    for pod_set in assignment.pod_sets.iter().filter(|ps| !ps.is_fit()) {
        let name = &pod_sets[pod_set.index].name;
        if let Some(error) = &pod_set.error {
            return format!("failed to assign flavors to pod set {name}: {error}");
        }
        if !message.is_empty() {
            message.push_str("; ");
        }
        message.push_str("couldn't assign flavors to pod set ");
        message.push_str(name);
        message.push_str(": ");
        match pod_set.reasons.as_slice() {
            [only] => message.push_str(&reason(names, only)),
            _ => message.push_str(&status_reasons(names, pod_set).join(", ")),
        }
    }
    message
}

/// Attempts in the order of the flavors' names.
pub fn by_flavor_name<'a>(names: &Names, attempts: &'a [Attempt]) -> Vec<&'a Attempt> {
    let mut attempts: Vec<&Attempt> = attempts.iter().collect();
    attempts.sort_by_key(|attempt| &names.flavors[attempt.flavor]);
    attempts
}

/// The flavors that were passed over or that borrow, for the event of a reservation (rules/03 §7).
pub(crate) fn considered_flavors(names: &Names, assignment: &Assignment, pod_sets: &[PodSet]) -> String {
    let per_pod_set = assignment.pod_sets.iter().filter_map(|pod_set| {
        let attempts: Vec<String> = by_flavor_name(names, &pod_set.attempts)
            .into_iter()
            .filter(|a| a.mode != Mode::Fit || a.level != 0)
            .map(|a| {
                let mode = match a.possibility {
                    Some(possibility) => format!("preemptionMode={}", possibility.as_str()),
                    None => a.mode.as_str().to_owned(),
                };
                let borrow = if a.level > 0 { format!(";borrow={}", a.level) } else { String::new() };
                let reasons: String =
                    attempt_reasons(names, &a.reasons).iter().map(|reason| format!(";{reason}")).collect();
                format!("{}({mode}{borrow}{reasons})", names.flavors[a.flavor])
            })
            .collect();
        (!attempts.is_empty()).then(|| format!("{}: {}", pod_sets[pod_set.index].name, attempts.join(", ")))
    });
    per_pod_set.collect::<Vec<_>>().join(" | ")
}
