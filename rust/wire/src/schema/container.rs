//! Containers of pod templates.

use super::kubernetes::{resources, shared_security_context};
use super::{Field, Schema, boolean, field, fields, int_or_text, int32, int64, list, object, quantity, text, texts};

pub(super) fn container() -> Schema {
    object([
        field("env", list(variable()).unique_by(&["name"])),
        field("envFrom", list(variables())),
        field("lifecycle", lifecycle()),
        field("name", text()).required(),
        field("ports", list(port()).unique_by(&["containerPort", "protocol"])),
        field("resizePolicy", list(resize_policy())),
        field("resources", resources()),
        field("restartPolicyRules", list(restart_rule())),
        field("securityContext", security_context()),
        field("volumeDevices", list(volume_device()).unique_by(&["devicePath"])),
        field("volumeMounts", list(volume_mount()).unique_by(&["mountPath"])),
    ])
    .with(fields(&["args", "command"], texts))
    .with(fields(
        &[
            "image",
            "imagePullPolicy",
            "restartPolicy",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "workingDir",
        ],
        text,
    ))
    .with(fields(&["livenessProbe", "readinessProbe", "startupProbe"], probe))
    .with(fields(&["stdin", "stdinOnce", "tty"], boolean))
}

fn variable() -> Schema {
    let file_key = object(fields(&["key", "path", "volumeName"], text))
        .needs(&["key", "path", "volumeName"])
        .with([field("optional", boolean()).default(false)]);
    let from = object([
        field("configMapKeyRef", key_of_object()),
        field("fieldRef", field_ref()),
        field("fileKeyRef", file_key),
        field("resourceFieldRef", resource_field_ref()),
        field("secretKeyRef", key_of_object()),
    ]);
    object([field("name", text()).required(), field("value", text()), field("valueFrom", from)])
}

fn key_of_object() -> Schema {
    optional_object().with([field("key", text()).required()])
}

/// A ConfigMap or Secret that may be missing.
pub(super) fn optional_object() -> Schema {
    object([field("name", text()).default(""), field("optional", boolean())])
}

/// A field of the pod.
pub(super) fn field_ref() -> Schema {
    object(fields(&["apiVersion", "fieldPath"], text)).needs(&["fieldPath"])
}

/// A limit or request of a container.
pub(super) fn resource_field_ref() -> Schema {
    object(fields(&["containerName", "resource"], text)).needs(&["resource"]).with([field("divisor", quantity())])
}

fn variables() -> Schema {
    object([field("configMapRef", optional_object()), field("prefix", text()), field("secretRef", optional_object())])
}

fn lifecycle() -> Schema {
    let sleep = || object([field("seconds", int64()).required()]);
    let handler = || object(actions()).with([field("sleep", sleep())]);
    object([field("postStart", handler()), field("preStop", handler()), field("stopSignal", text())])
}

fn probe() -> Schema {
    let grpc = object([field("port", int32()).required(), field("service", text()).default("")]);
    let counts = ["failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"];
    object(actions())
        .with([field("grpc", grpc), field("terminationGracePeriodSeconds", int64())])
        .with(fields(&counts, int32))
}

/// The actions of hooks and probes.
fn actions() -> [Field; 3] {
    let header = object(fields(&["name", "value"], text)).needs(&["name", "value"]);
    let http = object([field("httpHeaders", list(header)), field("port", int_or_text()).required()])
        .with(fields(&["host", "path", "scheme"], text));
    let tcp = object([field("host", text()), field("port", int_or_text()).required()]);
    [field("exec", object([field("command", texts())])), field("httpGet", http), field("tcpSocket", tcp)]
}

fn port() -> Schema {
    object([field("containerPort", int32()).required(), field("hostPort", int32())]).with([
        field("hostIP", text()),
        field("name", text()),
        field("protocol", text()).default("TCP"),
    ])
}

fn resize_policy() -> Schema {
    object(fields(&["resourceName", "restartPolicy"], text)).needs(&["resourceName", "restartPolicy"])
}

fn restart_rule() -> Schema {
    let codes = object([field("operator", text()).required(), field("values", list(int32()).unique())]);
    object([field("action", text()).required(), field("exitCodes", codes)])
}

fn security_context() -> Schema {
    shared_security_context()
        .with(fields(&["allowPrivilegeEscalation", "privileged", "readOnlyRootFilesystem"], boolean))
        .with([field("capabilities", object(fields(&["add", "drop"], texts))), field("procMount", text())])
}

fn volume_device() -> Schema {
    object(fields(&["devicePath", "name"], text)).needs(&["devicePath", "name"])
}

fn volume_mount() -> Schema {
    let names = ["mountPath", "mountPropagation", "name", "recursiveReadOnly", "subPath", "subPathExpr"];
    object(fields(&names, text)).needs(&["mountPath", "name"]).with([field("readOnly", boolean())])
}
