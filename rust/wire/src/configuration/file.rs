//! The Configuration file as typed data: the fields of v1beta2 and of v1beta1 (rules/11 §1, §2).
//!
//! Names are those of the file. An absent or null field is `None` or empty; enumerations are plain text until they
//! are validated. Fields that only one version has are listed in [`ONLY_IN`], those of newer releases in [`SINCE`].

use std::collections::BTreeMap;

use kueuecore::base::quantity::Quantity;
use kueuecore::base::releases::{self, Release};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::duration::Duration;

/// A version of the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1beta1,
    V1beta2,
}

/// The API group and version that is written.
pub const V1BETA2: &str = "config.kueue.x-k8s.io/v1beta2";
/// The older version that is still read.
pub const V1BETA1: &str = "config.kueue.x-k8s.io/v1beta1";

/// Fields that the other version does not have (rules/11 §1.1).
pub const ONLY_IN: [(&str, Version); 11] = [
    ("queueVisibility", Version::V1beta1),
    ("waitForPodsReady.enable", Version::V1beta1),
    ("fairSharing.enable", Version::V1beta1),
    ("integrations.podOptions", Version::V1beta1),
    ("visibilityServer", Version::V1beta2),
    ("resources.quotaCheckStrategy", Version::V1beta2),
    ("resources.deviceClassMappings[].sources", Version::V1beta2),
    ("multiKueue.clusterProfile", Version::V1beta2),
    ("multiKueue.incrementalDispatcherConfig", Version::V1beta2),
    ("metrics.customLabels[].sourceKind", Version::V1beta2),
    ("metrics.customLabels[].trackedValues", Version::V1beta2),
];

/// Fields that older releases of Kueue do not have: the first line of releases that has each (rules/11 §1).
pub const SINCE: [(&str, u8); 13] = [
    ("visibilityServer", 17),
    ("metrics.customLabels", 17),
    ("metrics.localQueueMetrics", 17),
    ("resources.quotaCheckStrategy", 18),
    ("resources.deviceClassMappings[].sources", 18),
    ("resources.deviceClassMappings[].sources[].capacity", 19),
    ("multiKueue.clusterProfile.accessProviders", 19),
    ("multiKueue.incrementalDispatcherConfig", 19),
    ("metrics.customLabels[].sourceKind", 19),
    ("metrics.customLabels[].trackedValues", 19),
    ("tls.curvePreferences", 19),
    ("waitForPodsReady.unscheduledTimeout", 20),
    ("waitForPodsReady.maxTimeoutOnWorkload", 20),
];

/// The line of releases, such as 17 of 0.17, that first has a field which a release does not have; the path of the
/// field has no list positions.
#[must_use]
pub fn comes_with(path: &str, release: Release) -> Option<u8> {
    let (_, line) =
        SINCE.iter().find(|(field, line)| *field == path && releases::Version::new(*line, 0) > release.version())?;
    Some(*line)
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct File {
    pub api_version: String,
    pub kind: String,
    pub namespace: Option<String>,
    pub webhook: Webhook,
    pub leader_election: Option<LeaderElection>,
    pub metrics: Metrics,
    pub health: Health,
    pub pprof_bind_address: Option<String>,
    pub controller: Option<Controller>,
    pub tls: Option<Tls>,
    pub manage_jobs_without_queue_name: bool,
    pub managed_jobs_namespace_selector: Option<Selector>,
    pub internal_cert_management: Option<InternalCertManagement>,
    pub wait_for_pods_ready: Option<WaitForPodsReady>,
    pub client_connection: Option<ClientConnection>,
    pub integrations: Option<Integrations>,
    #[serde(skip_serializing)]
    pub queue_visibility: Option<QueueVisibility>,
    pub multi_kueue: Option<MultiKueue>,
    pub fair_sharing: Option<FairSharing>,
    pub admission_fair_sharing: Option<AdmissionFairSharing>,
    pub resources: Option<Resources>,
    pub feature_gates: Option<BTreeMap<String, bool>>,
    pub object_retention_policies: Option<ObjectRetentionPolicies>,
    pub visibility_server: Option<VisibilityServer>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Webhook {
    pub port: Option<i64>,
    pub host: Option<String>,
    pub cert_dir: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LeaderElection {
    pub leader_elect: Option<bool>,
    pub lease_duration: Option<Duration>,
    pub renew_deadline: Option<Duration>,
    pub retry_period: Option<Duration>,
    pub resource_lock: Option<String>,
    pub resource_name: Option<String>,
    pub resource_namespace: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metrics {
    pub bind_address: Option<String>,
    pub enable_cluster_queue_resources: bool,
    pub custom_labels: Vec<CustomLabel>,
    pub local_queue_metrics: Option<LocalQueueMetrics>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CustomLabel {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_label_key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_annotation_key: String,
    /// Default `ClusterQueue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_kind: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tracked_values: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalQueueMetrics {
    pub enable: bool,
    pub local_queue_selector: Option<Selector>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Health {
    pub health_probe_bind_address: Option<String>,
    pub readiness_endpoint_name: Option<String>,
    pub liveness_endpoint_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Controller {
    pub group_kind_concurrency: BTreeMap<String, i64>,
    /// Nanoseconds, as a number: this one duration is not text.
    pub cache_sync_timeout: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Tls {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cipher_suites: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve_preferences: Vec<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Selector {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<SelectorRequirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SelectorRequirement {
    pub key: String,
    pub operator: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InternalCertManagement {
    pub enable: Option<bool>,
    pub webhook_service_name: Option<String>,
    pub webhook_secret_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WaitForPodsReady {
    #[serde(skip_serializing)]
    pub enable: bool,
    pub timeout: Option<Duration>,
    pub block_admission: Option<bool>,
    pub requeuing_strategy: Option<RequeuingStrategy>,
    pub recovery_timeout: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unscheduled_timeout: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_timeout_on_workload: Option<Duration>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RequeuingStrategy {
    pub timestamp: Option<String>,
    pub backoff_limit_count: Option<i32>,
    pub backoff_base_seconds: Option<i32>,
    pub backoff_max_seconds: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientConnection {
    pub qps: Option<f32>,
    pub burst: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Integrations {
    pub frameworks: Vec<String>,
    pub external_frameworks: Vec<String>,
    #[serde(skip_serializing)]
    pub pod_options: Option<PodOptions>,
    pub label_keys_to_copy: Vec<String>,
}

/// Read in v1beta1 and ignored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodOptions {
    pub namespace_selector: Option<Selector>,
    pub pod_selector: Option<Selector>,
}

/// Read in v1beta1 and ignored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QueueVisibility {
    pub cluster_queues: Option<ClusterQueueVisibility>,
    pub update_interval_seconds: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterQueueVisibility {
    pub max_count: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MultiKueue {
    pub gc_interval: Option<Duration>,
    pub origin: Option<String>,
    pub worker_lost_timeout: Option<Duration>,
    pub dispatcher_name: Option<String>,
    pub external_frameworks: Vec<MultiKueueExternalFramework>,
    pub cluster_profile: Option<ClusterProfile>,
    pub incremental_dispatcher_config: Option<IncrementalDispatcherConfig>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MultiKueueExternalFramework {
    /// `Kind.version.group`.
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterProfile {
    pub access_providers: Vec<AccessProvider>,
    /// The older name of `accessProviders`.
    pub credentials_providers: Vec<AccessProvider>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AccessProvider {
    pub name: String,
    /// How credentials are fetched; kept as given.
    pub exec_config: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IncrementalDispatcherConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_size: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FairSharing {
    #[serde(skip_serializing)]
    pub enable: bool,
    pub preemption_strategies: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AdmissionFairSharing {
    pub usage_half_life_time: Duration,
    pub usage_sampling_interval: Duration,
    pub resource_weights: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Resources {
    pub quota_check_strategy: Option<String>,
    pub exclude_resource_prefixes: Vec<String>,
    pub transformations: Vec<Transformation>,
    pub device_class_mappings: Vec<DeviceClassMapping>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Transformation {
    pub input: String,
    /// `Retain` or `Replace`; default `Retain`.
    pub strategy: Option<String>,
    pub multiply_by: Option<String>,
    pub outputs: BTreeMap<String, QuantityText>,
}

/// A quantity in a file: text or a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuantityText(pub Quantity);

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceClassMapping {
    /// The resource that quota is counted in.
    pub name: String,
    pub device_class_names: Vec<String>,
    pub sources: Vec<DeviceSource>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceSource {
    pub counter: Option<DeviceDimension>,
    pub capacity: Option<DeviceDimension>,
}

/// What a device source counts: the counter or capacity of this name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceDimension {
    pub name: String,
    pub driver: String,
    pub device_selector: DeviceSelector,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceSelector {
    pub cel: Option<CelSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CelSelector {
    pub expression: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectRetentionPolicies {
    pub workloads: Option<WorkloadRetentionPolicy>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadRetentionPolicy {
    pub after_finished: Option<Duration>,
    pub after_deactivated_by_kueue: Option<Duration>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VisibilityServer {
    pub bind_address: Option<String>,
    pub bind_port: Option<i32>,
}

impl Serialize for QuantityText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for QuantityText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            _ => return Err(de::Error::custom("must be a quantity")),
        };
        Quantity::parse(&text).map(QuantityText).map_err(de::Error::custom)
    }
}
