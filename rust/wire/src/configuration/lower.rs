//! From the typed file to the settings that scheduling reads.

use std::collections::BTreeMap;

use kueuecore::base::changes::Changes;
use kueuecore::base::gates::{Gate, Gates};
use kueuecore::base::releases::Release;
use kueuecore::objects::config::{
    AdmissionFairSharing, Config, DeviceClassMapping, DeviceSource, DeviceSourceKind, Experiments, FairSharing,
    PreemptionStrategy, RequeuingTimestamp, Resources, Transformation, WaitForPodsReady,
};

use super::file::{self, File};

/// The settings that scheduling reads of a v1beta2 file, without sections whose gate is off.
pub(super) fn scheduling(file: &File, release: Release, gates: Gates) -> Config {
    let wait = file.wait_for_pods_ready.as_ref().filter(|_| !gates.enabled(Gate::DisableWaitForPodsReady));
    let wait = wait.map(wait_for_pods_ready);
    let admission_fair_sharing =
        file.admission_fair_sharing.as_ref().filter(|_| gates.enabled(Gate::AdmissionFairSharing));
    Config {
        release,
        gates,
        changes: Changes::of(release),
        fair_sharing: file.fair_sharing.as_ref().map(fair_sharing),
        admission_fair_sharing: admission_fair_sharing.map(|fair| AdmissionFairSharing {
            usage_half_life_ns: fair.usage_half_life_time.ns,
            usage_sampling_interval_ns: fair.usage_sampling_interval.ns,
            resource_weights: fair.resource_weights.clone(),
        }),
        requeuing_timestamp: wait.as_ref().map(|wait| wait.requeuing_timestamp).unwrap_or_default(),
        wait_for_pods_ready: wait,
        resources: file.resources.as_ref().map(|given| resources(given, gates)).unwrap_or_default(),
        batches_retries: false,              // no setting: the engine is asked for it
        experiments: Experiments::default(), // none of Kueue's settings either
    }
}

/// Anything but `Creation` is `Eviction`.
pub(super) fn requeuing_timestamp(text: &str) -> RequeuingTimestamp {
    if text == "Creation" { RequeuingTimestamp::Creation } else { RequeuingTimestamp::Eviction }
}

fn fair_sharing(fair: &file::FairSharing) -> FairSharing {
    let strategies = fair.preemption_strategies.iter().filter_map(|strategy| match strategy.as_str() {
        "LessThanOrEqualToFinalShare" => Some(PreemptionStrategy::LessThanOrEqualToFinalShare),
        "LessThanInitialShare" => Some(PreemptionStrategy::LessThanInitialShare),
        _ => None,
    });
    FairSharing { preemption_strategies: strategies.collect() }
}

fn wait_for_pods_ready(wait: &file::WaitForPodsReady) -> WaitForPodsReady {
    let strategy = wait.requeuing_strategy.clone().unwrap_or_default();
    WaitForPodsReady {
        timeout_ns: wait.timeout.unwrap_or_default().ns,
        // Zero turns the recovery timeout off.
        unscheduled_timeout_ns: wait.unscheduled_timeout.map(|timeout| timeout.ns).filter(|&ns| ns != 0),
        recovery_timeout_ns: wait.recovery_timeout.map(|timeout| timeout.ns).filter(|&ns| ns != 0),
        block_admission: wait.block_admission.unwrap_or_default(),
        requeuing_timestamp: requeuing_timestamp(strategy.timestamp.as_deref().unwrap_or_default()),
        backoff_limit_count: strategy.backoff_limit_count,
        backoff_base_seconds: strategy.backoff_base_seconds.unwrap_or_default(),
        backoff_max_seconds: strategy.backoff_max_seconds.unwrap_or_default(),
    }
}

fn resources(given: &file::Resources, gates: Gates) -> Resources {
    let mut device_classes = BTreeMap::new();
    for mapping in &given.device_class_mappings {
        for class in &mapping.device_class_names {
            device_classes.entry(class.clone()).or_insert_with(|| mapping.name.clone());
        }
    }
    Resources {
        exclude_resource_prefixes: given.exclude_resource_prefixes.clone(),
        transformations: given.transformations.iter().map(|it| (it.input.clone(), transformation(it))).collect(),
        ignore_undeclared: gates.enabled(Gate::QuotaCheckStrategy)
            && given.quota_check_strategy.as_deref() == Some("IgnoreUndeclared"),
        device_classes,
        device_class_mappings: given.device_class_mappings.iter().map(device_class_mapping).collect(),
    }
}

fn transformation(given: &file::Transformation) -> Transformation {
    Transformation {
        replace: given.strategy.as_deref() == Some("Replace"),
        multiply_by: given.multiply_by.clone().unwrap_or_default(),
        outputs: given.outputs.iter().map(|(name, factor)| (name.clone(), factor.0.clone())).collect(),
    }
}

fn device_class_mapping(given: &file::DeviceClassMapping) -> DeviceClassMapping {
    let source = |kind, dimension: &file::DeviceDimension| DeviceSource {
        kind,
        name: dimension.name.clone(),
        driver: dimension.driver.clone(),
        device_selector: dimension.device_selector.cel.clone().unwrap_or_default().expression,
    };
    let sources = given.sources.iter().filter_map(|given| match (&given.counter, &given.capacity) {
        (Some(counter), _) => Some(source(DeviceSourceKind::Counter, counter)),
        (None, Some(capacity)) => Some(source(DeviceSourceKind::Capacity, capacity)),
        (None, None) => None,
    });
    DeviceClassMapping {
        name: given.name.clone(),
        device_class_names: given.device_class_names.clone(),
        sources: sources.collect(),
    }
}
