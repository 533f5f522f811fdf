//! Defaults of each version of the file, and the conversion from v1beta1 to v1beta2 (rules/11 §1.1, §2).

use kueuecore::base::changes::{Change, Changes};
use kueuecore::base::releases::Release;

use super::file::{
    ClientConnection, File, InternalCertManagement, LeaderElection, LocalQueueMetrics, RequeuingStrategy, Selector,
    SelectorRequirement, Version, WaitForPodsReady, comes_with,
};
use crate::duration::Duration;

/// The dispatcher that tries a few worker clusters at a time.
pub(super) const DISPATCHER_INCREMENTAL: &str = "kueue.x-k8s.io/multikueue-dispatcher-incremental";
const DISPATCHER_ALL_AT_ONCE: &str = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once";
/// The namespace that Kueue is installed in unless the file says otherwise.
const NAMESPACE: &str = "kueue-system";
const MINUTE: i64 = 60;

/// Fills in the defaults that a release has for the file's own version.
pub(super) fn apply(file: &mut File, version: Version, release: Release) {
    let changes = Changes::of(release);
    let namespace = file.namespace.get_or_insert_with(|| NAMESPACE.to_owned()).clone();
    file.webhook.port.get_or_insert(9443);
    or_text(&mut file.webhook.cert_dir, "/tmp/k8s-webhook-server/serving-certs");
    or_text(&mut file.metrics.bind_address, ":8443");
    or_text(&mut file.health.health_probe_bind_address, ":8081");
    leader_election(file.leader_election.get_or_insert_default());
    if comes_with("metrics.localQueueMetrics", release).is_none() {
        file.metrics.local_queue_metrics.get_or_insert(LocalQueueMetrics { enable: true, local_queue_selector: None });
    }
    certificates(file.internal_cert_management.get_or_insert_default());
    client_connection(file.client_connection.get_or_insert_default(), changes);
    match version {
        Version::V1beta1 => {
            if let Some(wait) = file.wait_for_pods_ready.as_mut().filter(|wait| wait.enable) {
                let timeout = wait.timeout.unwrap_or(Duration::seconds(5 * MINUTE));
                wait_for_pods_ready(wait, timeout, true);
            }
            if let Some(fair) = file.fair_sharing.as_mut().filter(|f| f.enable && f.preemption_strategies.is_empty()) {
                fair.preemption_strategies = STRATEGIES.map(str::to_owned).to_vec();
            }
        }
        Version::V1beta2 => {
            if changes.has(Change::WaitForPodsReadyByDefault) {
                let wait = file.wait_for_pods_ready.get_or_insert_default();
                let timeout = wait.timeout.filter(|timeout| timeout.ns != 0);
                wait.timeout = Some(timeout.unwrap_or(Duration::seconds(30 * MINUTE)));
            }
            if let Some(wait) = &mut file.wait_for_pods_ready {
                let timeout = wait.timeout.unwrap_or_default();
                wait_for_pods_ready(wait, timeout, false);
            }
            if comes_with("visibilityServer", release).is_none() {
                file.visibility_server.get_or_insert_default().bind_port.get_or_insert(8082);
            }
        }
    }
    let integrations = file.integrations.get_or_insert_default();
    if integrations.frameworks.is_empty() {
        integrations.frameworks = vec!["batch/job".to_owned()];
    }
    file.managed_jobs_namespace_selector.get_or_insert_with(|| all_but_system_namespaces(namespace));
    multikueue(file, version, release);
    if let Some(fair) = file.admission_fair_sharing.as_mut().filter(|fair| fair.usage_sampling_interval.ns == 0) {
        fair.usage_sampling_interval = Duration::seconds(5 * MINUTE);
    }
    for transformation in file.resources.iter_mut().flat_map(|resources| &mut resources.transformations) {
        or_text(&mut transformation.strategy, "Retain");
    }
}

/// Both strategies of Fair Sharing, in the order that an empty list stands for.
const STRATEGIES: [&str; 2] = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"];

/// Turns a defaulted v1beta1 file into v1beta2: what is not enabled is dropped (rules/11 §1.1).
pub(super) fn convert_to_v1beta2(file: &mut File) {
    file.wait_for_pods_ready = file.wait_for_pods_ready.take().filter(|wait| wait.enable);
    file.fair_sharing = file.fair_sharing.take().filter(|fair| fair.enable);
    file.queue_visibility = None;
    if let Some(integrations) = &mut file.integrations {
        integrations.pod_options = None;
    }
}

/// Fills in the absent fields of `waitForPodsReady`.
pub(super) fn wait_for_pods_ready(wait: &mut WaitForPodsReady, timeout: Duration, block_admission: bool) {
    wait.timeout = Some(timeout);
    wait.recovery_timeout.get_or_insert(timeout);
    wait.block_admission.get_or_insert(block_admission);
    let RequeuingStrategy { timestamp, backoff_base_seconds, backoff_max_seconds, .. } =
        wait.requeuing_strategy.get_or_insert_default();
    timestamp.get_or_insert_with(|| "Eviction".to_owned());
    backoff_base_seconds.get_or_insert(60);
    backoff_max_seconds.get_or_insert(3600);
}

fn leader_election(election: &mut LeaderElection) {
    election.leader_elect.get_or_insert(true);
    or_text(&mut election.resource_name, "c1f6bfd2.kueue.x-k8s.io");
    or_text(&mut election.resource_lock, "leases");
    or_duration(&mut election.lease_duration, 15);
    or_duration(&mut election.renew_deadline, 10);
    or_duration(&mut election.retry_period, 2);
}

fn certificates(certificates: &mut InternalCertManagement) {
    if *certificates.enable.get_or_insert(true) {
        certificates.webhook_service_name.get_or_insert_with(|| "kueue-webhook-service".to_owned());
        certificates.webhook_secret_name.get_or_insert_with(|| "kueue-webhook-server-cert".to_owned());
    }
}

fn client_connection(connection: &mut ClientConnection, changes: Changes) {
    let (qps, burst) = match () {
        () if changes.has(Change::ClientConnectionIsFaster) => (1000.0, 1000),
        () if changes.has(Change::ClientConnectionIsFast) => (300.0, 500),
        () => (20.0, 30),
    };
    connection.qps.get_or_insert(qps);
    connection.burst.get_or_insert(burst);
}

fn all_but_system_namespaces(namespace: String) -> Selector {
    let requirement = SelectorRequirement {
        key: "kubernetes.io/metadata.name".to_owned(),
        operator: "NotIn".to_owned(),
        values: vec!["kube-system".to_owned(), namespace],
    };
    Selector { match_expressions: vec![requirement], ..Selector::default() }
}

fn multikueue(file: &mut File, version: Version, release: Release) {
    let multikueue = file.multi_kueue.get_or_insert_default();
    multikueue.gc_interval.get_or_insert(Duration::seconds(MINUTE));
    or_text(&mut multikueue.origin, "multikueue");
    multikueue.worker_lost_timeout.get_or_insert(Duration::seconds(15 * MINUTE));
    let dispatcher = multikueue.dispatcher_name.get_or_insert_with(|| DISPATCHER_ALL_AT_ONCE.to_owned());
    let has_steps =
        version == Version::V1beta2 && comes_with("multiKueue.incrementalDispatcherConfig", release).is_none();
    if has_steps && dispatcher == DISPATCHER_INCREMENTAL {
        multikueue.incremental_dispatcher_config.get_or_insert_default().step_size.get_or_insert(3);
    }
}

/// Absent and empty are the same for this text.
fn or_text(field: &mut Option<String>, default: &str) {
    if field.as_deref().unwrap_or_default().is_empty() {
        *field = Some(default.to_owned());
    }
}

/// Absent and zero are the same for this duration.
fn or_duration(field: &mut Option<Duration>, default_seconds: i64) {
    if field.unwrap_or_default().ns == 0 {
        *field = Some(Duration::seconds(default_seconds));
    }
}
