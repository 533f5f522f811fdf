//! `resources.deviceClassMappings` (rules/11 §3.2). Device selectors are required, but their expressions are not
//! compiled.

use std::collections::{BTreeMap, BTreeSet};

use kueuecore::base::changes::{Change, Changes};
use kueuecore::base::gates::{Gate, Gates};

use crate::configuration::file::{DeviceClassMapping, DeviceDimension};
use crate::field_error::{ErrorKind, FieldError, quoted};
use crate::names::{c_identifier_errors, dns1123_label_errors, dns1123_subdomain_errors, label_key_errors};

const MAX_MAPPINGS: usize = 16;
const MAX_CLASSES: usize = 8;
const MAX_NAME: usize = 253;
/// Length limit of a driver, and of the domain of a capacity.
const MAX_DRIVER: usize = 63;
const MAX_CAPACITY: usize = 32;

/// What earlier mappings say about a device class.
struct Claim<'a> {
    resource: &'a str,
    counters: BTreeSet<&'a str>,
}

pub(super) fn mappings(mappings: &[DeviceClassMapping], gates: Gates, changes: Changes, errors: &mut Vec<FieldError>) {
    const PATH: &str = "resources.deviceClassMappings";
    if mappings.len() > MAX_MAPPINGS {
        errors.push(FieldError::too_many(PATH, mappings.len(), MAX_MAPPINGS));
    }
    let mut resources = BTreeSet::new();
    let mut claims = BTreeMap::new();
    for (i, mapping) in mappings.iter().enumerate() {
        let path = format!("{PATH}[{i}]");
        name(&mapping.name, &format!("{path}.name"), errors);
        if gates.enabled(Gate::KueueDRAIntegration) {
            super::reserved_name(&mapping.name, &format!("{path}.name"), gates, errors);
        }
        if !resources.insert(&mapping.name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), quoted(&mapping.name)));
        }
        classes(mapping, &format!("{path}.deviceClassNames"), changes, &mut claims, errors);
        sources(mapping, &format!("{path}.sources"), (gates, changes), errors);
    }
}

fn name(name: &str, path: &str, errors: &mut Vec<FieldError>) {
    let problems = label_key_errors(name);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(path, quoted(name), problems.join("; ")));
    }
    if name.len() > MAX_NAME {
        errors.push(FieldError::invalid(path, quoted(name), format!("must not exceed {MAX_NAME} characters")));
    }
}

/// A class may appear in several mappings only if each counts a different counter of it; before the change, never.
fn classes<'a>(
    mapping: &'a DeviceClassMapping,
    path: &str,
    changes: Changes,
    claims: &mut BTreeMap<&'a str, Claim<'a>>,
    errors: &mut Vec<FieldError>,
) {
    let classes = &mapping.device_class_names;
    if classes.is_empty() {
        errors.push(FieldError::required(path, "at least one device class name is required"));
    }
    if classes.len() > MAX_CLASSES {
        errors.push(FieldError::too_many(path, classes.len(), MAX_CLASSES));
    }
    let counter = mapping.sources.first().and_then(|source| source.counter.as_ref());
    let counter = counter.map(|counter| counter.name.as_str()).filter(|name| !name.is_empty());
    let mut seen = BTreeSet::new();
    for (i, class) in classes.iter().enumerate() {
        let path = format!("{path}[{i}]");
        name(class, &path, errors);
        if !seen.insert(class) {
            errors.push(FieldError::duplicate(&path, quoted(class)));
        }
        let Some(claim) = claims.get_mut(class.as_str()) else {
            claims.insert(class, Claim { resource: &mapping.name, counters: counter.into_iter().collect() });
            continue;
        };
        if claim.resource == mapping.name {
            continue;
        }
        let may_differ = changes.has(Change::DeviceClassesShareMappings) && !claim.counters.is_empty();
        match counter.filter(|_| may_differ) {
            None => {
                let detail = format!("device class already mapped to resource {}", claim.resource);
                errors.push(FieldError::invalid(path, quoted(class), detail));
            }
            Some(counter) if !claim.counters.insert(counter) => {
                let detail = format!("device class already has a counter source for counter {}", quoted(counter));
                errors.push(FieldError::invalid(path, quoted(class), detail));
            }
            Some(_) => {}
        }
    }
}

fn sources(mapping: &DeviceClassMapping, path: &str, (gates, changes): (Gates, Changes), errors: &mut Vec<FieldError>) {
    const ONE: &str = "exactly one source type must be set per entry";
    let (mut has_counter, mut has_capacity) = (false, false);
    for (i, source) in mapping.sources.iter().enumerate() {
        let path = format!("{path}[{i}]");
        match (&source.counter, &source.capacity) {
            (None, None) => errors.push(FieldError::required(path, ONE)),
            (Some(_), Some(_)) => errors.push(FieldError::invalid(path, quoted("counter+capacity"), ONE)),
            (Some(counter), None) => {
                has_counter = true;
                let path = format!("{path}.counter");
                if gates.enabled(Gate::KueueDRAIntegrationPartitionableDevices) {
                    counter_name(&counter.name, &format!("{path}.name"), errors);
                    driver_and_selector(counter, &path, errors);
                } else {
                    let detail = "counter sources require KueueDRAIntegrationPartitionableDevices to be enabled";
                    errors.push(FieldError::invalid(path, "true", detail));
                }
            }
            (None, Some(capacity)) => {
                has_capacity = true;
                let path = format!("{path}.capacity");
                if gates.enabled(Gate::KueueDRAIntegrationConsumableCapacity) {
                    capacity_name(&capacity.name, &format!("{path}.name"), changes, errors);
                    driver_and_selector(capacity, &path, errors);
                } else {
                    let detail = "capacity sources require KueueDRAIntegrationConsumableCapacity to be enabled";
                    errors.push(FieldError::invalid(path, "true", detail));
                }
            }
        }
    }
    if has_counter && has_capacity {
        let detail = "cannot mix counter and capacity sources in the same mapping";
        errors.push(FieldError::invalid(path, mapping.sources.len().to_string(), detail));
    }
}

fn counter_name(name: &str, path: &str, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let problems = dns1123_label_errors(name);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(path, quoted(name), problems.join(",")));
    }
}

/// A C identifier, alone or after a domain and `/`. Before the change, names with more slashes passed. Kueue's own words
/// for those were not seen.
fn capacity_name(name: &str, path: &str, changes: Changes, errors: &mut Vec<FieldError>) {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        [identifier] => c_identifier(identifier, path, errors),
        [domain, identifier] => {
            if domain.is_empty() {
                errors.push(FieldError::invalid(path, quoted(""), "the domain must not be empty"));
            } else {
                at_most(MAX_DRIVER, domain, path, errors);
                let problems = dns1123_subdomain_errors(&domain.to_lowercase());
                errors.extend(problems.into_iter().map(|why| FieldError::invalid(path, quoted(domain), why)));
            }
            if identifier.is_empty() {
                errors.push(FieldError::invalid(path, quoted(""), "the name must not be empty"));
            } else {
                c_identifier(identifier, path, errors);
            }
        }
        _ if changes.has(Change::CapacityNamesHaveOneSlash) => {
            errors.push(FieldError::invalid(path, quoted(name), "must not have more than one slash"));
        }
        _ => {}
    }
}

fn c_identifier(identifier: &str, path: &str, errors: &mut Vec<FieldError>) {
    at_most(MAX_CAPACITY, identifier, path, errors);
    let problems = c_identifier_errors(identifier);
    errors.extend(problems.into_iter().map(|why| FieldError::invalid(path, quoted(identifier), why)));
}

fn at_most(max: usize, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    if text.len() > max {
        let detail = format!("must have at most {max} bytes");
        errors.push(FieldError { path: path.to_owned(), kind: ErrorKind::TooLong, value: None, detail });
    }
}

fn driver_and_selector(source: &DeviceDimension, path: &str, errors: &mut Vec<FieldError>) {
    let driver = &source.driver;
    let driver_path = format!("{path}.driver");
    let problems = dns1123_subdomain_errors(driver);
    if driver.is_empty() {
        errors.push(FieldError::required(driver_path, ""));
    } else if driver.len() > MAX_DRIVER {
        let detail = format!("must not exceed {MAX_DRIVER} characters");
        errors.push(FieldError::invalid(driver_path, quoted(driver), detail));
    } else if !problems.is_empty() {
        errors.push(FieldError::invalid(driver_path, quoted(driver), problems.join(",")));
    }
    if source.device_selector.cel.as_ref().is_none_or(|cel| cel.expression.is_empty()) {
        errors.push(FieldError::required(format!("{path}.deviceSelector.cel.expression"), ""));
    }
}
