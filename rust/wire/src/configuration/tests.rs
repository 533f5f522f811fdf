//! What a file means, and the exact errors of those that are rejected.

use std::collections::BTreeMap;

use kueuecore::base::gates::Gate;
use kueuecore::base::quantity::Quantity;
use kueuecore::base::releases::Release;
use kueuecore::objects::config::{PreemptionStrategy, RequeuingTimestamp};
use serde_json::{Value, json};

use super::Configuration;
use super::file::{V1BETA1, V1BETA2};

const MINUTE_NS: i64 = 60_000_000_000;

fn read_version(version: &str, fields: &Value) -> Result<Configuration, Vec<String>> {
    let mut file = json!({"apiVersion": version, "kind": "Configuration"});
    for (key, value) in fields.as_object().expect("fields of a file") {
        file[key] = value.clone();
    }
    read_text(&file.to_string(), &BTreeMap::new())
}

fn read_text(text: &str, gates: &BTreeMap<String, bool>) -> Result<Configuration, Vec<String>> {
    let texts = |errors: Vec<super::ConfigurationError>| errors.iter().map(ToString::to_string).collect();
    Configuration::read(text.as_bytes(), gates, Release::default()).map_err(texts)
}

fn read(fields: &Value) -> Result<Configuration, Vec<String>> {
    read_version(V1BETA2, fields)
}

fn read_in(release: &str, mut fields: Value) -> Result<Configuration, Vec<String>> {
    let release = Release::from_name(release).expect("a release");
    fields["apiVersion"] = V1BETA2.into();
    fields["kind"] = "Configuration".into();
    let texts = |errors: Vec<super::ConfigurationError>| errors.iter().map(ToString::to_string).collect();
    Configuration::read(fields.to_string().as_bytes(), &BTreeMap::new(), release).map_err(texts)
}

#[test]
fn an_older_release_has_its_own_defaults() {
    let file = read_in("0.16", json!({})).expect("valid");
    assert_eq!(file, Configuration::of(Release::from_name("0.16").expect("a release")));
    assert_eq!(file.scheduling.wait_for_pods_ready, None);
    let plain = file.to_json();
    assert_eq!(plain["clientConnection"], json!({"qps": 20.0, "burst": 30}));
    for absent in ["waitForPodsReady", "visibilityServer"] {
        assert_eq!(plain.get(absent), None, "{absent}");
    }
    assert_eq!(plain["metrics"].get("localQueueMetrics"), None);
    let named = read_in("0.18", json!({"waitForPodsReady": {"timeout": "5m"}})).expect("valid");
    let wait = named.scheduling.wait_for_pods_ready.expect("named");
    assert_eq!((wait.timeout_ns, wait.recovery_timeout_ns), (5 * MINUTE_NS, Some(5 * MINUTE_NS)));
    let errors = read_in("0.18", json!({"waitForPodsReady": {}})).expect_err("no timeout");
    assert_eq!(errors, ["waitForPodsReady.timeout: Required value: must be specified"]);
    assert_eq!(read_in("0.20", json!({})).expect("valid"), Configuration::default());
}

#[test]
fn kueue_0_20_has_its_own_defaults_fields_and_refusals() {
    let now = |fields: Value| read_in("0.20.0", fields).map(|it| it.scheduling.wait_for_pods_ready);
    let connection = |release: &str| read_in(release, json!({})).expect("valid").to_json()["clientConnection"].clone();
    assert_eq!(connection("0.20.0"), json!({"qps": 1000.0, "burst": 1000}));
    assert_eq!(connection("0.20.0-devel"), json!({"qps": 300.0, "burst": 500}));
    let followed = |timeout: &str, gates: Value| {
        now(json!({"waitForPodsReady": {"timeout": "10m", "unscheduledTimeout": timeout}, "featureGates": gates}))
            .map(|wait| wait.expect("it is on").unscheduled_timeout_ns)
    };
    let on = || json!({"WaitForPodsReadyUnscheduledTimeout": true});
    assert_eq!(followed("2m", on()), Ok(Some(2 * MINUTE_NS)));
    assert_eq!(followed("10m", on()), Ok(Some(10 * MINUTE_NS)));
    assert_eq!(followed("0s", on()), Ok(None));
    for (timeout, gates) in [("0s", json!({})), ("11m", on()), ("-1s", on())] {
        let errors = followed(timeout, gates).expect_err("it is refused");
        assert!(errors.iter().all(|it| it.starts_with("waitForPodsReady.unscheduledTimeout: ")), "{errors:?}");
    }
    let both = json!({"WaitForPodsReadyUnscheduledTimeout": true, "DisableWaitForPodsReady": true});
    assert_eq!(now(json!({"featureGates": both})).expect_err("they exclude each other").len(), 1);
    let old = read_in("0.20.0-devel", json!({"waitForPodsReady": {"unscheduledTimeout": "1m"}})).expect_err("unknown");
    assert!(old[0].contains("Kueue has it since 0.20"), "{old:?}");
}

#[test]
fn the_name_pods_is_reserved() {
    let rules = |input: &str, output: &str| json!({"resources": {"transformations": [{"input": input, "strategy": "Retain", "outputs": {output: "1"}}]}});
    for fields in [rules("cpu", "pods"), rules("pods", "x")] {
        let errors = read_in("0.20.0", fields.clone()).expect_err("it is reserved");
        assert!(errors[0].starts_with("resources.transformations[0]."), "{errors:?}");
        assert!(read_in("0.20.0-devel", fields.clone()).is_ok());
        let mut off = fields;
        off["featureGates"] = json!({"ReservedResourceNameValidation": false});
        assert!(read_in("0.20.0", off).is_ok());
    }
    let mapped = json!({"resources": {"deviceClassMappings": [{"name": "pods", "deviceClassNames": ["a"]}]}});
    assert_eq!(read_in("0.20.0", mapped.clone()).expect_err("it is reserved").len(), 1);
    assert!(read_in("0.20.0-devel", mapped).is_ok());
}

#[test]
fn an_older_release_does_not_know_newer_fields() {
    let curves = json!({"tls": {"curvePreferences": [29]}});
    let errors = read_in("0.18", curves.clone()).expect_err("unknown");
    assert_eq!(errors, ["unknown field \"tls.curvePreferences\"; Kueue has it since 0.19"]);
    assert!(read_in("0.19", curves).is_ok());
    let errors = read_in("0.16", json!({"visibilityServer": {}, "metrics": {"customLabels": []}}));
    let expected = ["metrics.customLabels", "visibilityServer"]
        .map(|field| format!("unknown field \"{field}\"; Kueue has it since 0.17"));
    let mut errors = errors.expect_err("unknown");
    errors.sort();
    assert_eq!(errors, expected);
    let services = json!({"integrations": {"frameworks": ["ray.io/rayservice"]}});
    assert!(read_in("0.17", services.clone()).is_ok());
    let errors = read_in("0.16", services).expect_err("unknown");
    assert_eq!(errors.len(), 1);
    let expected = "integrations.frameworks[0]: Unsupported value: \"ray.io/rayservice\": supported values: ";
    assert!(errors[0].starts_with(expected) && !errors[0].contains("spark"), "{}", errors[0]);
    let mapping = |name: &str| {
        let counter = json!({"name": name, "driver": "d", "deviceSelector": {"cel": {"expression": "true"}}});
        json!({"name": format!("example.com/{name}"), "deviceClassNames": ["c"], "sources": [{"counter": counter}]})
    };
    let shared = json!({
        "resources": {"deviceClassMappings": [mapping("a"), mapping("b")]},
        "featureGates": {"KueueDRAIntegration": true, "KueueDRAIntegrationPartitionableDevices": true},
    });
    assert!(read_in("0.19", shared.clone()).is_ok());
    let errors = read_in("0.18", shared).expect_err("one mapping for each class");
    let path = "resources.deviceClassMappings[1].deviceClassNames[0]";
    assert_eq!(
        errors,
        [format!("{path}: Invalid value: \"c\": device class already mapped to resource example.com/a")]
    );
}

#[test]
fn a_minimal_file_has_the_documented_defaults() {
    let configuration = read(&json!({})).expect("valid");
    assert_eq!(configuration, Configuration::default());
    let config = &configuration.scheduling;
    assert_eq!(config.fair_sharing, None);
    assert_eq!(config.admission_fair_sharing, None);
    assert!(!config.resources.ignore_undeclared);
    let wait = config.wait_for_pods_ready.as_ref().expect("on by default");
    assert_eq!((wait.timeout_ns, wait.recovery_timeout_ns), (30 * MINUTE_NS, Some(30 * MINUTE_NS)));
    assert_eq!((wait.block_admission, wait.backoff_limit_count), (false, None));
    assert_eq!((wait.backoff_base_seconds, wait.backoff_max_seconds), (60, 3600));
    assert_eq!(configuration.for_simulation().wait_for_pods_ready, None);
    let expected = json!({
        "apiVersion": V1BETA2,
        "kind": "Configuration",
        "namespace": "kueue-system",
        "webhook": {"port": 9443, "certDir": "/tmp/k8s-webhook-server/serving-certs"},
        "leaderElection": {
            "leaderElect": true, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s",
            "resourceLock": "leases", "resourceName": "c1f6bfd2.kueue.x-k8s.io",
        },
        "metrics": {
            "bindAddress": ":8443", "enableClusterQueueResources": false, "localQueueMetrics": {"enable": true},
        },
        "health": {"healthProbeBindAddress": ":8081"},
        "manageJobsWithoutQueueName": false,
        "managedJobsNamespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kueue-system"]},
        ]},
        "internalCertManagement": {
            "enable": true, "webhookServiceName": "kueue-webhook-service",
            "webhookSecretName": "kueue-webhook-server-cert",
        },
        "waitForPodsReady": {
            "timeout": "30m0s", "recoveryTimeout": "30m0s", "blockAdmission": false,
            "requeuingStrategy": {"timestamp": "Eviction", "backoffBaseSeconds": 60, "backoffMaxSeconds": 3600},
        },
        "clientConnection": {"qps": 1000.0, "burst": 1000},
        "integrations": {"frameworks": ["batch/job"]},
        "multiKueue": {
            "gcInterval": "1m0s", "origin": "multikueue", "workerLostTimeout": "15m0s",
            "dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-all-at-once",
        },
        "visibilityServer": {"bindPort": 8082},
    });
    assert_eq!(configuration.to_json(), expected);
}

#[test]
fn a_full_file_reaches_scheduling() {
    let configuration = read(&json!({
        "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]},
        "admissionFairSharing": {"usageHalfLifeTime": "1h30m", "resourceWeights": {"cpu": 2, "memory": 0.5}},
        "resources": {
            "excludeResourcePrefixes": ["example.com/"],
            "transformations": [
                {"input": "a", "outputs": {"b": "100m", "c": 2}},
                {"input": "b", "strategy": "Replace", "multiplyBy": "a"},
            ],
            "deviceClassMappings": [
                {"name": "gpu", "deviceClassNames": ["gpu.example.com"]},
                {"name": "gpu-memory", "deviceClassNames": ["shared.example.com"], "sources": [{"counter": {
                    "name": "memory", "driver": "gpu.example.com", "deviceSelector": {"cel": {"expression": "true"}},
                }}]},
            ],
        },
        "waitForPodsReady": {
            "timeout": "1.5h", "recoveryTimeout": "0s", "blockAdmission": true,
            "requeuingStrategy": {"timestamp": "Creation", "backoffLimitCount": 0},
        },
        "featureGates": {"PriorityBoost": true},
    }))
    .expect("valid");
    let config = configuration.for_simulation();
    assert!(config.gates.enabled(Gate::PriorityBoost));
    let strategies = config.fair_sharing.expect("on").preemption_strategies;
    assert_eq!(strategies, [PreemptionStrategy::LessThanInitialShare]);
    let fair = config.admission_fair_sharing.expect("on");
    assert_eq!((fair.usage_half_life_ns, fair.usage_sampling_interval_ns), (90 * MINUTE_NS, 5 * MINUTE_NS));
    assert_eq!(fair.resource_weights, BTreeMap::from([("cpu".to_owned(), 2.0), ("memory".to_owned(), 0.5)]));
    let wait = config.wait_for_pods_ready.expect("named");
    assert_eq!((wait.timeout_ns, wait.recovery_timeout_ns), (90 * MINUTE_NS, None));
    assert_eq!((wait.block_admission, wait.backoff_limit_count), (true, Some(0)));
    assert_eq!(config.requeuing_timestamp, RequeuingTimestamp::Creation);
    let (retained, replaced) = (&config.resources.transformations["a"], &config.resources.transformations["b"]);
    assert_eq!(retained.outputs["b"], Quantity::parse("100m").expect("quantity"));
    assert_eq!(retained.outputs["c"], Quantity::parse("2").expect("quantity"));
    assert!(!retained.replace && replaced.replace && replaced.multiply_by == "a");
    assert_eq!(config.resources.device_classes["gpu.example.com"], "gpu");
    assert_eq!(config.resources.device_class_mappings[1].sources[0].device_selector, "true");
}

#[test]
fn sections_whose_gate_is_off_are_left_out() {
    let configuration = read(&json!({
        "admissionFairSharing": {"usageHalfLifeTime": "1h"},
        "resources": {"quotaCheckStrategy": "IgnoreUndeclared"},
        "waitForPodsReady": {"timeout": "-1s"},
        "featureGates": {
            "AdmissionFairSharing": false, "AdmissionFairSharingAnchorAtQuotaReservation": false,
            "QuotaCheckStrategy": false, "DisableWaitForPodsReady": true,
        },
    }))
    .expect("valid");
    let config = configuration.for_simulation();
    assert_eq!((config.admission_fair_sharing, config.wait_for_pods_ready), (None, None));
    assert!(!config.resources.ignore_undeclared);
}

#[test]
fn v1beta1_drops_what_it_does_not_enable() {
    let off = json!({
        "waitForPodsReady": {"timeout": "1m"}, "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]},
        "queueVisibility": {"clusterQueues": {"maxCount": 3}}, "integrations": {"podOptions": {"podSelector": {}}},
    });
    for fields in [json!({}), off] {
        let configuration = read_version(V1BETA1, &fields).expect("valid");
        let config = &configuration.scheduling;
        assert_eq!((&config.wait_for_pods_ready, &config.fair_sharing), (&None, &None), "{fields}");
        let json = configuration.to_json();
        assert_eq!(json["apiVersion"], V1BETA2);
        assert_eq!(json["integrations"], json!({"frameworks": ["batch/job"]}));
        for absent in ["waitForPodsReady", "fairSharing", "queueVisibility", "visibilityServer"] {
            assert_eq!(json.get(absent), None, "{absent}");
        }
        assert!(!configuration.names_wait_for_pods_ready);
    }
}

#[test]
fn v1beta1_has_defaults_of_its_own() {
    let dispatcher = "kueue.x-k8s.io/multikueue-dispatcher-incremental";
    let fields = json!({
        "waitForPodsReady": {"enable": true}, "fairSharing": {"enable": true},
        "multiKueue": {"dispatcherName": dispatcher},
    });
    let configuration = read_version(V1BETA1, &fields).expect("valid");
    let config = configuration.for_simulation();
    let wait = config.wait_for_pods_ready.expect("named");
    assert_eq!((wait.timeout_ns, wait.recovery_timeout_ns), (5 * MINUTE_NS, Some(5 * MINUTE_NS)));
    assert!(wait.block_admission);
    assert_eq!(config.fair_sharing.expect("on").preemption_strategies.len(), 2);
    assert_eq!(configuration.to_json()["multiKueue"].get("incrementalDispatcherConfig"), None);
    let newer = read(&json!({"multiKueue": {"dispatcherName": dispatcher}})).expect("valid").to_json();
    assert_eq!(newer["multiKueue"]["incrementalDispatcherConfig"], json!({"stepSize": 3}));
}

#[test]
fn what_is_written_reads_the_same() {
    let fields = json!({
        "namespace": "other", "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]},
        "waitForPodsReady": {"blockAdmission": true}, "objectRetentionPolicies": {"workloads": {"afterFinished": "0s"}},
        "resources": {"transformations": [{"input": "a", "outputs": {"b": "1Gi"}}]}, "tls": {"cipherSuites": ["X"]},
        "metrics": {"customLabels": [{"name": "team", "sourceLabelKey": "example.com/team"}]},
        "managedJobsNamespaceSelector": {"matchLabels": {"team": ""}},
        "featureGates": {"AllAlpha": true, "DisableWaitForPodsReady": false},
    });
    let once = read(&fields).expect("valid");
    let twice = read_text(&once.to_json().to_string(), &BTreeMap::new()).expect("valid");
    assert_eq!(once, twice);
}

#[test]
fn malformed_files_are_refused() {
    let v2 = r#""apiVersion":"config.kueue.x-k8s.io/v1beta2","kind":"Configuration""#;
    let v1 = r#""apiVersion":"config.kueue.x-k8s.io/v1beta1","kind":"Configuration""#;
    let table: &[(String, &[&str])] = &[
        ("{".into(), &["EOF while parsing an object at line 1 column 1"]),
        (format!("{{{v2}}} x"), &["trailing characters at line 1 column 71"]),
        (
            "{}".into(),
            &["no kind \"\" is registered for version \"\": must be a Configuration of config.kueue.x-k8s.io/v1beta2 \
               or config.kueue.x-k8s.io/v1beta1"],
        ),
        (
            r#"{"apiVersion":"config.kueue.x-k8s.io/v1beta3","kind":"Configuration"}"#.into(),
            &["no kind \"Configuration\" is registered for version \"config.kueue.x-k8s.io/v1beta3\": must be a \
               Configuration of config.kueue.x-k8s.io/v1beta2 or config.kueue.x-k8s.io/v1beta1"],
        ),
        (
            format!(r#"{{{v2},"namespaces":"a","invalidField":1}}"#),
            &["unknown field \"invalidField\"", "unknown field \"namespaces\"; did you mean \"namespace\"?"],
        ),
        (
            format!(r#"{{{v2},"resources":{{"transformations":[{{"input":"a"}},{{"Input":"b"}}]}}}}"#),
            &["unknown field \"resources.transformations[1].Input\"; did you mean \"input\"?"],
        ),
        (
            format!(
                r#"{{{v2},"namespace":"a","namespace":"b","featureGates":{{"MultiKueue":true,"MultiKueue":true}}}}"#
            ),
            &["duplicate field \"namespace\"", "duplicate field \"featureGates.MultiKueue\""],
        ),
        (
            format!(r#"{{{v2},"waitForPodsReady":{{"enable":true}}}}"#),
            &["unknown field \"waitForPodsReady.enable\"; it exists only in v1beta1"],
        ),
        (
            format!(r#"{{{v1},"resources":{{"deviceClassMappings":[{{"name":"a","sources":[]}}]}}}}"#),
            &["unknown field \"resources.deviceClassMappings[0].sources\"; it exists only in v1beta2"],
        ),
        (
            format!(r#"{{{v2},"integrations":{{"frameworks":[1]}},"x":1}}"#),
            &["unknown field \"x\"", "integrations.frameworks[0]: invalid type: integer `1`, expected a string"],
        ),
        (format!(r#"{{{v2},"tls":[]}}"#), &["tls: must be an object"]),
        (
            format!(r#"{{{v2},"visibilityServer":{{"bindPort":1.5}}}}"#),
            &["visibilityServer.bindPort: invalid type: floating point `1.5`, expected i32"],
        ),
        (
            format!(r#"{{{v2},"multiKueue":{{"gcInterval":"5"}}}}"#),
            &["multiKueue.gcInterval: time: missing unit in duration \"5\""],
        ),
        (
            format!(r#"{{{v2},"resources":{{"transformations":[{{"outputs":{{"a":"1x"}}}}]}}}}"#),
            &["resources.transformations[0].outputs.a: quantities must match the regular expression \
               '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
        ),
    ];
    for (text, errors) in table {
        assert_eq!(read_text(text, &BTreeMap::new()).expect_err(text), *errors, "{text}");
    }
    assert!(read_text(&format!(r#"{{{v2},"namespace":null,"resources":null}}"#), &BTreeMap::new()).is_ok());
}

#[test]
fn feature_gates_stand_in_the_file_or_on_the_command_line() {
    let flag = BTreeMap::from([("PriorityBoost".to_owned(), true)]);
    let text =
        |gates: &str| format!(r#"{{"apiVersion":"config.kueue.x-k8s.io/v1beta2","kind":"Configuration"{gates}}}"#);
    let configuration = read_text(&text(""), &flag).expect("valid");
    assert!(configuration.scheduling.gates.enabled(Gate::PriorityBoost));
    assert_eq!(configuration.to_json()["featureGates"], json!({"PriorityBoost": true}));
    assert_eq!(
        read_text(&text(r#","featureGates":{"MultiKueue":false}"#), &flag).expect_err("both"),
        ["featureGates: Invalid value: {\"MultiKueue\":false}: feature gates for CLI and configuration cannot both \
          specified"]
    );
    let unknown = BTreeMap::from([("A".to_owned(), true), ("MultiKueue".to_owned(), false)]);
    assert_eq!(
        read_text(&text(""), &unknown).expect_err("unknown"),
        ["featureGates: Invalid value: \"A=true,MultiKueue=false\": unrecognized feature gate: A"]
    );
}

#[test]
fn recorded_settings_are_taken_as_they_are() {
    let config = json!({
        "now": "2026-01-01T00:00:00Z", "cycleStepMs": 5,
        "fairSharing": {"preemptionStrategies": []},
        "admissionFairSharing": {"usageHalfLifeTime": "0s", "usageSamplingInterval": "1m0s"},
        "resourceTransformations": [{"input": "cpu", "strategy": "Retain", "outputs": {"cpu_credits": "1"}}],
        "quotaCheckStrategy": "IgnoreUndeclared",
        "waitForPodsReady": {"blockAdmission": true},
        "requeuingTimestamp": "Creation",
    });
    // Gates that depend on it stay on.
    let gates = json!({"TopologyAwareScheduling": false, "PriorityBoost": true});
    let configuration = Configuration::trusted(&config, &gates, Release::default()).expect("readable");
    let config = configuration.for_simulation();
    assert_eq!(config.fair_sharing.expect("on").preemption_strategies, []);
    assert_eq!(config.admission_fair_sharing.expect("on").usage_sampling_interval_ns, MINUTE_NS);
    assert!(config.resources.ignore_undeclared && config.resources.transformations.contains_key("cpu"));
    let wait = config.wait_for_pods_ready.expect("named");
    assert_eq!((wait.block_admission, wait.timeout_ns), (true, 30 * MINUTE_NS));
    assert_eq!(config.requeuing_timestamp, RequeuingTimestamp::Creation);
    assert!(config.gates.enabled(Gate::PriorityBoost) && config.gates.enabled(Gate::TASProfileMixed));
    assert!(!config.gates.enabled(Gate::TopologyAwareScheduling));

    let empty = Configuration::trusted(&Value::Null, &Value::Null, Release::default()).expect("readable");
    assert_eq!(empty.scheduling, kueuecore::objects::config::Config::default());
    let errors = Configuration::trusted(&json!({}), &json!({"Nope": true, "MultiKueue": 1}), Release::default())
        .expect_err("unknown");
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["featureGates.MultiKueue: must be true or false", "featureGates: unrecognized feature gate: Nope"]
    );
}

mod rejections;

#[test]
fn a_switch_leaves_the_other_settings_as_they_are() {
    let config = json!({"requeuingTimestamp": "Creation", "admissionFairSharing": {"usageHalfLifeTime": "1m"}});
    let configuration = Configuration::trusted(&config, &Value::Null, Release::default()).expect("readable");
    assert_eq!(configuration.switched([]).expect("no name"), configuration);
    let switched = configuration.switched([("AdmissionFairSharing", false)]).expect("a gate");
    assert_eq!(switched.scheduling.requeuing_timestamp, RequeuingTimestamp::Creation);
    assert_eq!(switched.scheduling.admission_fair_sharing, None);
    assert_eq!(configuration.switched([("Nope", true)]), Err("Nope".to_owned()));
}

#[test]
fn kueue_0_20_checks_the_selector_of_local_queues_with_metrics() {
    let metrics = |enable: bool, selector: Value| json!({"metrics": {"localQueueMetrics": {"enable": enable, "localQueueSelector": selector}}});
    let bad = json!({"matchExpressions": [{"key": "bad key!", "operator": "Bad"}]});
    let path = "metrics.localQueueMetrics.localQueueSelector.matchExpressions[0]";
    let errors = read_in("0.20.0", metrics(true, bad.clone())).expect_err("it is malformed");
    assert_eq!(errors.len(), 2);
    assert_eq!(errors[0], format!("{path}.operator: Invalid value: \"Bad\": not a valid selector operator"));
    assert!(errors[1].starts_with(&format!("{path}.key: Invalid value: \"bad key!\": ")), "{}", errors[1]);
    for (release, fields) in [
        ("0.20.0-devel", metrics(true, bad.clone())),
        ("0.20.0", metrics(false, bad)),
        ("0.20.0", metrics(true, json!({"matchLabels": {"team": "a"}}))),
    ] {
        assert_eq!(read_in(release, fields).err(), None);
    }
}

#[test]
fn kueue_0_20_refuses_names_of_capacities_with_two_slashes() {
    let named = |name: &str| {
        let selector = json!({"cel": {"expression": "true"}});
        let capacity = json!({"name": name, "driver": "gpu.example.com", "deviceSelector": selector});
        json!({
            "featureGates": {"KueueDRAIntegrationConsumableCapacity": true},
            "resources": {"deviceClassMappings": [
                {"name": "gpu.memory", "deviceClassNames": ["gpu.example.com"], "sources": [{"capacity": capacity}]},
            ]},
        })
    };
    let two = "gpu.example.com/memory/bytes";
    assert_eq!(
        read_in("0.20.0", named(two)).expect_err("it has two slashes"),
        [format!(
            "resources.deviceClassMappings[0].sources[0].capacity.name: Invalid value: \"{two}\": must not have more \
             than one slash"
        )]
    );
    for (release, name) in [("0.20.0-devel", two), ("0.20.0", "gpu.example.com/memory")] {
        assert_eq!(read_in(release, named(name)).err(), None);
    }
}
