//! Pod templates: every field that the CustomResourceDefinition of Workloads knows.

use super::container::container;
use super::kubernetes::{
    label_selector, named_reference, requirements, resources, shared_security_context, template_metadata, toleration,
};
use super::volume::volume;
use super::{Schema, boolean, field, fields, int32, int64, list, map, object, quantity, text, texts};

pub(super) fn pod_template() -> Schema {
    object([field("metadata", template_metadata()), field("spec", pod_spec())])
}

fn pod_spec() -> Schema {
    object([
        field("affinity", affinity()),
        field("containers", list(container()).unique_by(&["name"])).required(),
        field("dnsConfig", dns_config()),
        field("ephemeralContainers", list(ephemeral_container()).unique_by(&["name"])),
        field("hostAliases", list(host_alias()).unique_by(&["ip"])),
        field("imagePullSecrets", list(named_reference()).unique_by(&["name"])),
        field("initContainers", list(container()).unique_by(&["name"])),
        field("nodeSelector", map(text())),
        field("os", object([field("name", text()).required()])),
        field("overhead", map(quantity())),
        field("priority", int32()),
        field("readinessGates", list(object([field("conditionType", text()).required()]))),
        field("resourceClaims", list(resource_claim()).unique_by(&["name"])),
        field("resources", resources()),
        field("schedulingGates", list(object([field("name", text()).required()])).unique_by(&["name"])),
        field("schedulingGroup", object([field("podGroupName", text())])),
        field("securityContext", security_context()),
        field("tolerations", list(toleration())),
        field("topologySpreadConstraints", list(spread()).unique_by(&["topologyKey", "whenUnsatisfiable"])),
        field("volumes", list(volume()).unique_by(&["name"])),
    ])
    .with(fields(&["activeDeadlineSeconds", "terminationGracePeriodSeconds"], int64))
    .with(fields(
        &[
            "automountServiceAccountToken",
            "enableServiceLinks",
            "hostIPC",
            "hostNetwork",
            "hostPID",
            "hostUsers",
            "setHostnameAsFQDN",
            "shareProcessNamespace",
        ],
        boolean,
    ))
    .with(fields(
        &[
            "dnsPolicy",
            "hostname",
            "hostnameOverride",
            "nodeName",
            "preemptionPolicy",
            "priorityClassName",
            "restartPolicy",
            "runtimeClassName",
            "schedulerName",
            "serviceAccount",
            "serviceAccountName",
            "subdomain",
        ],
        text,
    ))
}

fn affinity() -> Schema {
    object([
        field("nodeAffinity", node_affinity()),
        field("podAffinity", pod_affinity()),
        field("podAntiAffinity", pod_affinity()),
    ])
}

fn node_affinity() -> Schema {
    let term = || object([field("matchExpressions", requirements()), field("matchFields", requirements())]);
    let preferred = object([field("preference", term()), field("weight", int32())]).needs(&["preference", "weight"]);
    let required = object([field("nodeSelectorTerms", list(term())).required()]);
    object([field(PREFERRED, list(preferred)), field(REQUIRED, required)])
}

fn pod_affinity() -> Schema {
    let term = || {
        object([field("labelSelector", label_selector()), field("namespaceSelector", label_selector())])
            .with(fields(&["matchLabelKeys", "mismatchLabelKeys", "namespaces"], texts))
            .with([field("topologyKey", text()).required()])
    };
    let weighted = object([field("podAffinityTerm", term()), field("weight", int32())]);
    let weighted = weighted.needs(&["podAffinityTerm", "weight"]);
    object([field(PREFERRED, list(weighted)), field(REQUIRED, list(term()))])
}

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

fn dns_config() -> Schema {
    let option = object(fields(&["name", "value"], text));
    object(fields(&["nameservers", "searches"], texts)).with([field("options", list(option))])
}

/// A container with the name of the container that it targets.
fn ephemeral_container() -> Schema {
    container().with([field("targetContainerName", text())])
}

fn host_alias() -> Schema {
    object([field("hostnames", texts()), field("ip", text()).required()])
}

fn resource_claim() -> Schema {
    object(fields(&["name", "resourceClaimName", "resourceClaimTemplateName"], text)).needs(&["name"])
}

fn security_context() -> Schema {
    let sysctl = object(fields(&["name", "value"], text)).needs(&["name", "value"]);
    shared_security_context()
        .with([field("supplementalGroups", list(int64())), field("sysctls", list(sysctl))])
        .with([field("fsGroup", int64())])
        .with(fields(&["fsGroupChangePolicy", "seLinuxChangePolicy", "supplementalGroupsPolicy"], text))
}

fn spread() -> Schema {
    object([field("labelSelector", label_selector()), field("matchLabelKeys", texts())])
        .with(fields(&["maxSkew", "minDomains"], int32))
        .with(fields(&["nodeAffinityPolicy", "nodeTaintsPolicy", "topologyKey", "whenUnsatisfiable"], text))
        .needs(&["maxSkew", "topologyKey", "whenUnsatisfiable"])
}
