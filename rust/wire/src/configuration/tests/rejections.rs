//! One row per rejection: the fields of a v1beta2 file, and every error in its exact words.

use serde_json::{Value, json};

use super::read;

const LABEL_KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                         an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                         validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

#[track_caller]
fn check(table: &[(Value, &[&str])]) {
    for (fields, errors) in table {
        assert_eq!(read(fields).err().unwrap_or_default(), *errors, "{fields}");
    }
}

#[test]
fn scheduling_sections_are_refused_with_kueues_texts() {
    check(&[
        (
            json!({"waitForPodsReady": {"timeout": "-1s", "requeuingStrategy": {"timestamp": "Now"}}}),
            &[
                "waitForPodsReady.timeout: Invalid value: \"-1s\": must be greater than or equal to 0",
                "waitForPodsReady.recoveryTimeout: Invalid value: \"-1s\": must be greater than or equal to 0",
                "waitForPodsReady.requeuingStrategy.timestamp: Unsupported value: \"Now\": supported values: \
                 \"Creation\", \"Eviction\"",
            ],
        ),
        (
            json!({"waitForPodsReady": {"requeuingStrategy": {
                "backoffLimitCount": -1, "backoffBaseSeconds": -2, "backoffMaxSeconds": -3,
            }}}),
            &[
                "waitForPodsReady.requeuingStrategy.backoffLimitCount: Invalid value: -1: must be greater than or equal \
                 to 0",
                "waitForPodsReady.requeuingStrategy.backoffBaseSeconds: Invalid value: -2: must be greater than or equal \
                 to 0",
                "waitForPodsReady.requeuingStrategy.backoffMaxSeconds: Invalid value: -3: must be greater than or equal \
                 to 0",
            ],
        ),
        (json!({"fairSharing": {}}), &["fairSharing.preemptionStrategies: Required value: must be specified"]),
        (
            json!({"fairSharing": {"preemptionStrategies": ["LessThanInitialShare", "LessThanOrEqualToFinalShare"]}}),
            &["fairSharing.preemptionStrategies: Unsupported value: \
               [\"LessThanInitialShare\",\"LessThanOrEqualToFinalShare\"]: supported values: \
               \"LessThanOrEqualToFinalShare\", \"LessThanInitialShare\", \
               \"LessThanOrEqualToFinalShare,LessThanInitialShare\""],
        ),
        (
            json!({"admissionFairSharing": {
                "usageHalfLifeTime": "-1h", "usageSamplingInterval": "-1m", "resourceWeights": {"b": -1, "a": 0.5},
            }}),
            &[
                "admissionFairSharing.usageHalfLifeTime: Invalid value: \"-1h0m0s\": must be greater than or equal to 0",
                "admissionFairSharing.usageSamplingInterval: Invalid value: \"-1h0m0s\": must be greater than 0",
                "admissionFairSharing.resourceWeights[b]: Invalid value: {\"a\":0.5,\"b\":-1}: must be greater than or \
                 equal to 0",
            ],
        ),
        (
            json!({"resources": {"transformations": [{"input": "a", "strategy": "Drop"}, {"input": "a"}]}}),
            &[
                "resources.transformations[0].strategy: Unsupported value: \"Drop\": supported values: \"Retain\", \
                 \"Replace\"",
                "resources.transformations[1].input: Duplicate value: \"a\"",
            ],
        ),
        (
            json!({"resources": {"quotaCheckStrategy": "IgnoreUndeclared", "excludeResourcePrefixes": ["a"]}}),
            &["resources.quotaCheckStrategy: Invalid value: \"IgnoreUndeclared\": excludeResourcePrefixes is not \
               allowed when quotaCheckStrategy is IgnoreUndeclared"],
        ),
        (
            json!({"resources": {"quotaCheckStrategy": "Never"}}),
            &["resources.quotaCheckStrategy: Unsupported value: \"Never\": supported values: \"IgnoreUndeclared\", \
               \"BlockUndeclared\""],
        ),
        (json!({"resources": {"quotaCheckStrategy": "Never"}, "featureGates": {"QuotaCheckStrategy": false}}), &[]),
        (
            json!({"objectRetentionPolicies": {"workloads": {"afterFinished": "-1s", "afterDeactivatedByKueue": "-1m"}}}),
            &[
                "objectRetentionPolicies.workloads.afterFinished: Invalid value: \"-1s\": must be greater than or equal \
                 to 0",
                "objectRetentionPolicies.workloads.afterDeactivatedByKueue: Invalid value: \"-1m0s\": must be greater \
                 than or equal to 0",
            ],
        ),
    ]);
}

#[test]
fn feature_gates_are_refused_with_kueues_texts() {
    check(&[
        (
            json!({"featureGates": {"Nope": true}}),
            &["featureGates: Invalid value: {\"Nope\":true}: unrecognized feature gate: Nope"],
        ),
        (
            json!({"featureGates": {"TLSOptions": false}}),
            &[
                "featureGates: Invalid value: {\"TLSOptions\":false}: cannot set feature gate TLSOptions to false, feature \
               is locked to true",
            ],
        ),
        (
            json!({"featureGates": {"FlavorFungibility": false}, "fairSharing": {}}),
            &[
                "featureGates: Invalid value: {\"FlavorFungibility\":false}: FlavorFungibilityPreserveScanProgress is \
                 enabled, but depends on features that are disabled: [FlavorFungibility]",
                "fairSharing.preemptionStrategies: Required value: must be specified",
            ],
        ),
        (
            json!({"featureGates": {"KueueDRAIntegration": false}}),
            &["featureGates: Invalid value: {\"KueueDRAIntegration\":false}: \
               [KueueDRAIntegrationExtendedResource is enabled, but depends on features that are disabled: \
               [KueueDRAIntegration], KueueDRAIntegrationPartitionableDevices is enabled, but depends on features that \
               are disabled: [KueueDRAIntegration]]"],
        ),
    ]);
}

#[test]
fn integrations_and_namespaces_are_refused_with_kueues_texts() {
    check(&[
        (
            json!({"integrations": {"frameworks": ["batch/job", "batch/cronjob", "batch/job"]}}),
            &[
                "integrations.frameworks[1]: Unsupported value: \"batch/cronjob\": supported values: \"batch/job\", \
                 \"deployment\", \"jobset.x-k8s.io/jobset\", \"kubeflow.org/jaxjob\", \"kubeflow.org/mpijob\", \
                 \"kubeflow.org/paddlejob\", \"kubeflow.org/pytorchjob\", \"kubeflow.org/tfjob\", \
                 \"kubeflow.org/xgboostjob\", \"leaderworkerset.x-k8s.io/leaderworkerset\", \"pod\", \
                 \"ray.io/raycluster\", \"ray.io/rayjob\", \"ray.io/rayservice\", \
                 \"sparkoperator.k8s.io/sparkapplication\", \"statefulset\", \"trainer.kubeflow.org/trainjob\", \
                 \"workload.codeflare.dev/appwrapper\"",
                "integrations.frameworks[2]: Duplicate value: \"batch/job\"",
            ],
        ),
        (
            json!({"integrations": {"externalFrameworks": ["Foo", "Job.v1.batch", "A.v1.b.c", "A.v1.b.c"]}}),
            &[
                "integrations.externalFrameworks[0]: Invalid value: \"Foo\": must be format, 'Kind.version.group.com'",
                "integrations.externalFrameworks[1]: Duplicate value: \"Job.v1.batch\"",
                "integrations.externalFrameworks[3]: Duplicate value: \"A.v1.b.c\"",
            ],
        ),
        (
            json!({"managedJobsNamespaceSelector": {}, "integrations": {"frameworks": ["pod"]}}),
            &[
                "managedJobsNamespaceSelector: Invalid value: {}: should not match the \"kube-system\" namespace",
                "managedJobsNamespaceSelector: Invalid value: {}: should not match the \"kueue-system\" namespace",
            ],
        ),
        (
            json!({"namespace": "here", "managedJobsNamespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]},
            ]}}),
            &["managedJobsNamespaceSelector: Invalid value: {\"matchExpressions\":[{\"key\":\
               \"kubernetes.io/metadata.name\",\"operator\":\"NotIn\",\"values\":[\"kube-system\"]}]}: should not match \
               the \"here\" namespace"],
        ),
        (
            json!({"managedJobsNamespaceSelector": {"matchExpressions": [
                {"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["b"]},
                {"key": "-", "operator": "Is", "values": ["c"]},
            ]}}),
            &[
                "managedJobsNamespaceSelector.matchExpressions[0].values: Required value: must be specified when \
                 `operator` is 'In' or 'NotIn'",
                "managedJobsNamespaceSelector.matchExpressions[1].values: Forbidden: may not be specified when \
                 `operator` is 'Exists' or 'DoesNotExist'",
                "managedJobsNamespaceSelector.matchExpressions[2].operator: Invalid value: \"Is\": not a valid selector \
                 operator",
                &format!("managedJobsNamespaceSelector.matchExpressions[2].key: Invalid value: \"-\": {LABEL_KEY}"),
            ],
        ),
        (json!({"managedJobsNamespaceSelector": {"matchLabels": {"managed": "yes"}}}), &[]),
    ]);
}

#[test]
fn multikueue_is_refused_with_kueues_texts() {
    check(&[
        (
            json!({"multiKueue": {"gcInterval": "-1s", "workerLostTimeout": "-1ms"}}),
            &[
                "multiKueue.gcInterval: Invalid value: -1000000000: must be greater than or equal to 0",
                "multiKueue.workerLostTimeout: Invalid value: -1000000: must be greater than or equal to 0",
            ],
        ),
        (
            json!({"multiKueue": {"origin": "a b"}}),
            &["multiKueue.origin: Invalid value: \"a b\": a valid label must be an empty string or consist of \
               alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
               'MyValue',  or 'my_value',  or '12345', regex used for validation is \
               '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"],
        ),
        (
            json!({"multiKueue": {"externalFrameworks": [
                {"name": "A"}, {"name": "A.v1.b"}, {"name": "A.v1.b"}, {"name": "Job.v1.batch"}, {"name": "Pod.v1."},
            ]}}),
            &[
                "multiKueue.externalFrameworks[0].name: Invalid value: \"A\": must be in 'kind.version.group' format",
                "multiKueue.externalFrameworks[2].name: Duplicate value: \"A.v1.b\"",
                "multiKueue.externalFrameworks[3].name: Invalid value: \"Job.v1.batch\": conflicts with a built-in \
                 MultiKueue adapter",
            ],
        ),
        (
            json!({"multiKueue": {"incrementalDispatcherConfig": {"stepSize": 0}}}),
            &[
                "multiKueue.incrementalDispatcherConfig: Invalid value: {\"stepSize\":0}: incrementalDispatcherConfig is \
                 only valid when dispatcherName is set to the incremental dispatcher",
                "multiKueue.incrementalDispatcherConfig.stepSize: Invalid value: 0: must be greater than or equal to 1",
            ],
        ),
        (
            json!({"multiKueue": {"clusterProfile": {
                "accessProviders": [{"execConfig": {"env": [{"value": "x"}], "interactiveMode": "Maybe"}}],
                "credentialsProviders": [{}],
            }}}),
            &[
                "multiKueue.clusterProfile.credentialsProviders: Forbidden: must not be specified when accessProviders is \
                 specified",
                "multiKueue.clusterProfile.accessProviders.name: Required value: must be specified",
                "multiKueue.clusterProfile.accessProviders.execConfig.command: Required value: must be specified",
                "multiKueue.clusterProfile.accessProviders.execConfig.apiVersion: Required value: must be specified",
                "multiKueue.clusterProfile.accessProviders.execConfig.env.name: Required value: must be specified",
                "multiKueue.clusterProfile.accessProviders.execConfig.interactiveMode: Unsupported value: \"Maybe\": \
                 supported values: \"Never\", \"IfAvailable\", \"Always\"",
            ],
        ),
        (
            json!({"multiKueue": {"clusterProfile": {"credentialsProviders": [
                {"name": "a", "execConfig": {"command": "b", "apiVersion": "c"}},
            ]}}}),
            &["multiKueue.clusterProfile.credentialsProviders.execConfig.interactiveMode: Required value: must be \
               specified"],
        ),
    ]);
}

#[test]
fn device_classes_are_refused_with_kueues_texts() {
    let mapping = |name: &str, class: &str, sources: Value| json!({"name": name, "deviceClassNames": [class], "sources": sources});
    let mappings = |mappings: Value| json!({"resources": {"deviceClassMappings": mappings}});
    let dimension =
        |name: &str| json!({"name": name, "driver": "d", "deviceSelector": {"cel": {"expression": "true"}}});
    let counter = |name: &str| json!([{"counter": dimension(name)}]);
    let many: Vec<Value> = (0..17).map(|i| mapping(&format!("r{i}"), &format!("c{i}"), json!([]))).collect();
    let nine: Vec<String> = (0..9).map(|i| format!("c{i}")).collect();
    check(&[
        (mappings(json!(many)), &["resources.deviceClassMappings: Too many: 17: must have at most 16 items"]),
        (
            mappings(json!([{"name": "-"}, {"name": "a", "deviceClassNames": nine}])),
            &[
                &format!("resources.deviceClassMappings[0].name: Invalid value: \"-\": {LABEL_KEY}"),
                "resources.deviceClassMappings[0].deviceClassNames: Required value: at least one device class name is \
                 required",
                "resources.deviceClassMappings[1].deviceClassNames: Too many: 9: must have at most 8 items",
            ],
        ),
        (
            mappings(json!([{"name": "a", "deviceClassNames": ["c", "c"]}, mapping("b", "c", json!([]))])),
            &[
                "resources.deviceClassMappings[0].deviceClassNames[1]: Duplicate value: \"c\"",
                "resources.deviceClassMappings[1].deviceClassNames[0]: Invalid value: \"c\": device class already mapped \
                 to resource a",
            ],
        ),
        (
            mappings(json!([mapping("a", "c", counter("m")), mapping("a", "d", json!([]))])),
            &["resources.deviceClassMappings[1].name: Duplicate value: \"a\""],
        ),
        (
            mappings(json!([
                mapping("a", "c", counter("m")),
                mapping("b", "c", counter("n")),
                mapping("d", "c", counter("m")),
            ])),
            &[
                "resources.deviceClassMappings[2].deviceClassNames[0]: Invalid value: \"c\": device class already has a \
               counter source for counter \"m\"",
            ],
        ),
        (
            mappings(json!([mapping("a", "c", json!([{}, {"counter": {}, "capacity": {}}, {"counter": {}}]))])),
            &[
                "resources.deviceClassMappings[0].sources[0]: Required value: exactly one source type must be set per \
                 entry",
                "resources.deviceClassMappings[0].sources[1]: Invalid value: \"counter+capacity\": exactly one source \
                 type must be set per entry",
                "resources.deviceClassMappings[0].sources[2].counter.name: Required value",
                "resources.deviceClassMappings[0].sources[2].counter.driver: Required value",
                "resources.deviceClassMappings[0].sources[2].counter.deviceSelector.cel.expression: Required value",
            ],
        ),
        (
            mappings(json!([mapping("a", "c", json!([{"counter": dimension("m")}, {"capacity": dimension("n")}]))])),
            &[
                "resources.deviceClassMappings[0].sources[1].capacity: Invalid value: true: capacity sources require \
                 KueueDRAIntegrationConsumableCapacity to be enabled",
                "resources.deviceClassMappings[0].sources: Invalid value: 2: cannot mix counter and capacity sources in \
                 the same mapping",
            ],
        ),
        (
            json!({
                "resources": {"deviceClassMappings": [mapping("a", "c", json!([
                    {"capacity": dimension("/")}, {"capacity": dimension(&"n".repeat(33))}, {"capacity": dimension("d/n")},
                ]))]},
                "featureGates": {"KueueDRAIntegrationConsumableCapacity": true},
            }),
            &[
                "resources.deviceClassMappings[0].sources[0].capacity.name: Invalid value: \"\": the domain must not be \
                 empty",
                "resources.deviceClassMappings[0].sources[0].capacity.name: Invalid value: \"\": the name must not be \
                 empty",
                "resources.deviceClassMappings[0].sources[1].capacity.name: Too long: must have at most 32 bytes",
            ],
        ),
        (
            json!({
                "resources": {"deviceClassMappings": [mapping("a", "c", counter("m"))]},
                "featureGates": {"KueueDRAIntegrationPartitionableDevices": false},
            }),
            &["resources.deviceClassMappings[0].sources[0].counter: Invalid value: true: counter sources require \
               KueueDRAIntegrationPartitionableDevices to be enabled"],
        ),
    ]);
}

#[test]
fn sections_of_the_manager_are_refused_with_kueues_texts() {
    let label = |name: &str, kind: &str| json!({"name": name, "sourceKind": kind, "trackedValues": ["v"]});
    let three: Vec<Value> = ["a", "b", "c"].map(|name| label(name, "Workload")).to_vec();
    let shown = |name: &str| format!("{{\"name\":\"{name}\",\"sourceKind\":\"Workload\",\"trackedValues\":[\"v\"]}}");
    let thirteen: Vec<String> = (0..13).map(|i| format!("v{i}")).collect();
    check(&[
        (
            json!({"internalCertManagement": {"webhookServiceName": "0", "webhookSecretName": "A"}}),
            &[
                "internalCertManagement.webhookServiceName: Invalid value: \"0\": a DNS-1035 label must consist of lower \
                 case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric \
                 character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
                "internalCertManagement.webhookSecretName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must \
                 consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric \
                 character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        ),
        (json!({"internalCertManagement": {"enable": false, "webhookServiceName": "0"}}), &[]),
        (
            json!({"tls": {"minVersion": "VersionTLS11"}}),
            &["tls: Invalid value: {\"minVersion\":\"VersionTLS11\"}: invalid minVersion. Please use VersionTLS12 or \
               VersionTLS13"],
        ),
        (
            json!({"tls": {"minVersion": "VersionTLS13", "cipherSuites": ["X"]}}),
            &["tls.cipherSuites: Invalid value: [\"X\"]: may not be specified when `minVersion` is 'VersionTLS13'"],
        ),
        (
            json!({"visibilityServer": {"bindAddress": "host", "bindPort": 0}}),
            &[
                "visibilityServer.bindAddress: Invalid value: \"host\": must be a valid IP address",
                "visibilityServer.bindPort: Invalid value: 0: must be a valid port number (1-65535)",
            ],
        ),
        (
            json!({"metrics": {"customLabels": [{"name": "a", "sourceLabelKey": "-", "sourceAnnotationKey": "b"}]}}),
            &[
                "metrics.customLabels[0]: Invalid value: \
                 {\"name\":\"a\",\"sourceLabelKey\":\"-\",\"sourceAnnotationKey\":\"b\"}: sourceLabelKey and \
                 sourceAnnotationKey are mutually exclusive",
                &format!("metrics.customLabels[0].sourceLabelKey: Invalid value: \"-\": {LABEL_KEY}"),
            ],
        ),
        (
            json!({"metrics": {"customLabels": [{"name": "a"}, {"name": "a"}, {"name": "b-c"}]}}),
            &[
                "metrics.customLabels[1].name: Duplicate value: \"a\"",
                "metrics.customLabels[2].name: Invalid value: \"b-c\": must match ^[a-zA-Z][a-zA-Z0-9_]*$",
            ],
        ),
        (
            json!({"metrics": {"customLabels": three}}),
            &[&format!(
                "metrics.customLabels: Invalid value: [{},{},{}]: too many custom labels for source kind Workload: \
                 found 3, expected <= 2",
                shown("a"),
                shown("b"),
                shown("c")
            )],
        ),
        (
            json!({"metrics": {"customLabels": [
                {"name": "a", "sourceKind": "Workload"}, {"name": "b", "trackedValues": ["v", "v"]},
            ]}}),
            &[
                "metrics.customLabels[0].trackedValues: Invalid value: null: must not be empty when sourceKind is \
                 'Workload'",
                "metrics.customLabels[1].trackedValues: Invalid value: [\"v\",\"v\"]: must not contain duplicates",
            ],
        ),
        (
            json!({"metrics": {"customLabels": [{"name": "a", "sourceKind": "Workload", "trackedValues": thirteen}]}}),
            &[
                "metrics.customLabels[0].trackedValues: Invalid value: [\"v0\",\"v1\",\"v2\",\"v3\",\"v4\",\"v5\",\"v6\",\
               \"v7\",\"v8\",\"v9\",\"v10\",\"v11\",\"v12\"]: must not be greater than 12 when sourceKind is 'Workload'",
            ],
        ),
        (
            json!({"metrics": {"customLabels": [label("a", "Job")]}}),
            &["metrics.customLabels: Invalid value: \
               [{\"name\":\"a\",\"sourceKind\":\"Job\",\"trackedValues\":[\"v\"]}]: unknown source kind: Job"],
        ),
    ]);
}
