//! Extended resources backed by a DeviceClass: requested like any other, charged like devices (rules/09 §8).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::base::changes::{Change, Changes};
use crate::base::gates::Gate;
use crate::base::quantity::{Family, Quantity};
use crate::objects::{Container, DeviceClass, PodSet, ResourceList};
use crate::pods::totals::DeviceRequests;
use crate::pods::{container_requests, lists};

use super::{DeviceRules, sources};

/// Does a pod set request this extended resource?
pub(crate) fn asks_for(pod_set: &PodSet, resource: &str) -> bool {
    is_extended(resource) && requested(pod_set).any(|(name, quantity)| name == resource && !quantity.is_zero())
}

fn requested(pod_set: &PodSet) -> impl Iterator<Item = (&String, &Quantity)> {
    let pod = &pod_set.template.spec;
    pod.init_containers.iter().chain(&pod.containers).flat_map(|container| &container.resources.requests)
}

/// Does the name have a domain that is not Kubernetes' own?
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.starts_with("kubernetes.io/") && !name.starts_with("hugepages-")
}

impl DeviceRules<'_> {
    /// Does a pod set request an extended resource backed by a DeviceClass?
    pub(super) fn asks_for_backed_resources(&self, pod_sets: &[PodSet]) -> bool {
        self.gates.enabled(Gate::KueueDRAIntegrationExtendedResource)
            && self.classes.values().any(|class| {
                let resource = &class.extended_resource_name;
                pod_sets.iter().any(|pod_set| asks_for(pod_set, resource))
            })
    }

    /// The class that Kubernetes uses for an extended resource: the newest one, among those the first by name.
    fn backing_class(&self, resource: &str) -> Option<&DeviceClass> {
        let backs = |class: &&DeviceClass| class.extended_resource_name == resource;
        self.classes.values().filter(backs).min_by_key(|class| (Reverse(class.meta.created), &class.meta.name))
    }

    /// Replaces such resources of one pod by what is charged instead.
    pub(super) fn charge_extended_resources(
        &self,
        pod_sets: &[PodSet],
        requests: &mut DeviceRequests,
    ) -> Result<(), Vec<String>> {
        let mut errors = Vec::new();
        for (i, pod_set) in pod_sets.iter().enumerate() {
            let asked = Asked::of(pod_set, i, self.changes);
            let mut added = ResourceList::new();
            let mut replaced = BTreeSet::new();
            for (resource, quantity) in &asked.of_pod {
                let Some(class) = self.backing_class(resource) else { continue };
                match self.charge_resource(resource, quantity, class, &asked) {
                    Ok((key, units)) => {
                        replaced.insert(resource.clone());
                        let quantity = Quantity::from_units(units, Family::DecimalSi);
                        lists::add(&mut added, &ResourceList::from([(key, quantity)]));
                    }
                    Err(mut more) => errors.append(&mut more),
                }
            }
            if !added.is_empty() {
                lists::add(requests.added.entry(pod_set.name.clone()).or_default(), &added);
                requests.replaced.insert(pod_set.name.clone(), replaced);
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The charged resource, and how much of it a pod takes.
    fn charge_resource(
        &self,
        resource: &str,
        quantity: &Quantity,
        class: &DeviceClass,
        asked: &Asked<'_>,
    ) -> Result<(String, i64), Vec<String>> {
        let (resources, name) = (self.resources, &class.meta.name);
        let first = asked.containers.iter().find(|(_, list)| list.contains_key(resource));
        let path = first.map_or("", |(path, _)| path.as_str());
        let configured = sources(resources, self.gates, name).map(|kind| match kind {
            "counters" => "counters configured; use ResourceClaimTemplates with CEL selectors for counter-based quota",
            _ => {
                "capacity sources configured; use ResourceClaimTemplates with capacity.requests for capacity-based quota"
            }
        });
        if let Some(configured) = configured {
            return Err(vec![format!(
                "{path}: Invalid value: \"{resource}\": extended resource {resource} resolves to DeviceClass {name} \
                 with {configured}"
            )]);
        }
        let key = resources.device_classes.get(name).map_or(resource, String::as_str);
        let field = |path: &str| format!("{path}.resources.requests.{resource}");
        let broken: Vec<String> = asked
            .containers
            .iter()
            .filter_map(|(path, list)| list.get(resource).map(|quantity| (path, quantity)))
            .filter(|(_, quantity)| whole(quantity).is_none())
            .map(|(path, quantity)| {
                let field = field(path);
                format!("{field}: Invalid value: \"{quantity}\": extended resource quantity must be an integer")
            })
            .collect();
        if !broken.is_empty() {
            return Err(broken);
        }
        let units = whole(quantity).ok_or_else(|| {
            let field = field(path);
            vec![format!("{field}: Invalid value: \"{quantity}\": total extended resource quantity overflows int64")]
        })?;
        Ok((key.to_owned(), units))
    }
}

/// The extended resources that the containers of a pod set request.
struct Asked<'a> {
    /// By container with its path, init containers first.
    containers: Vec<(String, BTreeMap<&'a str, &'a Quantity>)>,
    /// What a pod needs: init containers run one at a time, sidecars and the others together.
    of_pod: ResourceList,
}

impl<'a> Asked<'a> {
    fn of(pod_set: &'a PodSet, index: usize, changes: Changes) -> Self {
        let pod = &pod_set.template.spec;
        let mut containers = Vec::new();
        let mut of_pod = ResourceList::new();
        let mut together = ResourceList::new();
        let kinds = [("initContainers", &pod.init_containers), ("containers", &pod.containers)];
        for (kind, list) in kinds {
            for (j, container) in list.iter().enumerate() {
                let asked = positive(container);
                let owned = owned(&asked);
                if kind == "containers" {
                    lists::add(&mut together, &owned);
                } else {
                    lists::keep_max(&mut of_pod, &owned);
                }
                containers.push((format!("spec.podSets[{index}].template.spec.{kind}[{j}]"), asked));
            }
        }
        lists::keep_max(&mut of_pod, &together);
        if changes.has(Change::DevicesReplaceContainerRequests) {
            of_pod = container_requests(pod, |container| Cow::Owned(owned(&positive(container))));
        }
        Self { containers, of_pod }
    }
}

fn positive(container: &Container) -> BTreeMap<&str, &Quantity> {
    let requests = container.resources.requests.iter();
    requests.filter(|(name, q)| q.signum() > 0 && is_extended(name)).map(|(name, q)| (name.as_str(), q)).collect()
}

fn owned(asked: &BTreeMap<&str, &Quantity>) -> ResourceList {
    asked.iter().map(|(name, quantity)| ((*name).to_owned(), (*quantity).clone())).collect()
}

/// The quantity as an integer, if it fits into 64 bits.
fn whole(quantity: &Quantity) -> Option<i64> {
    let units = quantity.ceil_units();
    let same = Quantity::from_units(units, Family::DecimalSi).cmp_value(quantity).is_eq();
    same.then_some(units)
}
