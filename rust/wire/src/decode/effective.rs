//! `status.effectiveQuotas` of ClusterQueues and Cohorts, which takes the place of their own quotas (rules/02 §2).

use kueuecore::base::gates::Gate;
use kueuecore::objects::config::Config;
use kueuecore::objects::{Object, ResourceGroup};
use serde::Deserialize;

use crate::shaped::Shaped;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Outline {
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    effective_quotas: Option<Quotas>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Quotas {
    resource_groups: Vec<ResourceGroup>,
}

/// Gives an object, which was read from `raw`, its effective quotas, if their gate is on and it has any.
///
/// # Errors
/// They have a wrong shape.
pub(super) fn apply(object: &mut Object, raw: &str, config: &Config) -> Result<(), String> {
    if !config.gates.enabled(Gate::DynamicQuotaOrchestration) {
        return Ok(());
    }
    let groups = match object {
        Object::ClusterQueue(queue) => &mut queue.resource_groups,
        Object::Cohort(cohort) => &mut cohort.resource_groups,
        _ => return Ok(()),
    };
    let Shaped(outline) = serde_json::from_str::<Shaped<Outline>>(raw).map_err(|error| error.to_string())?;
    if let Some(quotas) = outline.status.effective_quotas {
        *groups = quotas.resource_groups;
    }
    Ok(())
}
