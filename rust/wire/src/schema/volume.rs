//! Volumes of pod templates.

use super::container::{field_ref, optional_object, resource_field_ref};
use super::kubernetes::{label_selector, named_reference, quantities_asked, template_metadata};
use super::{Field, Schema, boolean, field, fields, int32, int64, list, map, object, quantity, text, texts};

pub(super) fn volume() -> Schema {
    object([field("name", text()).required()]).with(local()).with(projections()).with(claims()).with(remote())
}

fn local() -> [Field; 4] {
    [
        field("emptyDir", object([field("medium", text()), field("sizeLimit", quantity())])),
        field("gitRepo", object(fields(&["directory", "repository", "revision"], text)).needs(&["repository"])),
        field("hostPath", object(fields(&["path", "type"], text)).needs(&["path"])),
        field("image", object(fields(&["pullPolicy", "reference"], text))),
    ]
}

/// Sources that Kubernetes itself writes.
fn projections() -> [Field; 4] {
    let default_mode = || field("defaultMode", int32());
    let secret = object([field("items", keys_to_paths()), field("optional", boolean()), field("secretName", text())]);
    let trust = object([field("labelSelector", label_selector()), field("optional", boolean())])
        .with(fields(&["name", "path", "signerName"], text))
        .needs(&["path"]);
    let token = object([field("audience", text()), field("expirationSeconds", int64()), field("path", text())]);
    let source = object([
        field("clusterTrustBundle", trust),
        field("configMap", keys_of_object()),
        field("downwardAPI", downward()),
        field("podCertificate", pod_certificate()),
        field("secret", keys_of_object()),
        field("serviceAccountToken", token.needs(&["path"])),
    ]);
    [
        field("configMap", keys_of_object().with([default_mode()])),
        field("downwardAPI", downward().with([default_mode()])),
        field("projected", object([default_mode(), field("sources", list(source))])),
        field("secret", secret.with([default_mode()])),
    ]
}

fn keys_of_object() -> Schema {
    optional_object().with([field("items", keys_to_paths())])
}

fn keys_to_paths() -> Schema {
    list(object(fields(&["key", "path"], text)).needs(&["key", "path"]).with([field("mode", int32())]))
}

fn downward() -> Schema {
    let item = object([
        field("fieldRef", field_ref()),
        field("mode", int32()),
        field("path", text()).required(),
        field("resourceFieldRef", resource_field_ref()),
    ]);
    object([field("items", list(item))])
}

fn pod_certificate() -> Schema {
    let names = ["certificateChainPath", "credentialBundlePath", "keyPath", "keyType", "signerName"];
    object(fields(&names, text))
        .needs(&["keyType", "signerName"])
        .with([field("maxExpirationSeconds", int32()), field("userAnnotations", map(text()))])
}

fn claims() -> [Field; 2] {
    let source = || object(fields(&["apiGroup", "kind", "name"], text)).needs(&["kind", "name"]);
    let spec = object([
        field("accessModes", texts()),
        field("dataSource", source()),
        field("dataSourceRef", source().with([field("namespace", text())])),
        field("resources", quantities_asked()),
        field("selector", label_selector()),
    ])
    .with(fields(&["storageClassName", "volumeAttributesClassName", "volumeMode", "volumeName"], text));
    let template = object([field("metadata", template_metadata()), field("spec", spec).required()]);
    let claim = object([field("claimName", text()).required(), field("readOnly", boolean())]);
    [field("ephemeral", object([field("volumeClaimTemplate", template)])), field("persistentVolumeClaim", claim)]
}

/// A volume of a storage system, which may be mounted read-only.
fn device(names: &[&'static str]) -> Schema {
    object(fields(names, text)).with([field("readOnly", boolean())])
}

fn secret_ref() -> [Field; 1] {
    [field("secretRef", named_reference())]
}

fn remote() -> Vec<Field> {
    let azure_disk = object(fields(&["cachingMode", "diskName", "diskURI", "kind"], text))
        .needs(&["diskName", "diskURI"])
        .with([field("fsType", text()).default("ext4"), field("readOnly", boolean()).default(false)]);
    let cephfs = device(&["path", "secretFile", "user"]).with([field("monitors", texts()).required()]);
    let csi = device(&["driver", "fsType"])
        .needs(&["driver"])
        .with([field("nodePublishSecretRef", named_reference()), field("volumeAttributes", map(text()))]);
    let fc = device(&["fsType"]).with([field("lun", int32())]).with(fields(&["targetWWNs", "wwids"], texts));
    let flex = device(&["driver", "fsType"]).needs(&["driver"]).with([field("options", map(text()))]);
    let iscsi = device(&["fsType", "initiatorName", "iqn", "targetPortal"])
        .with([field("iscsiInterface", text()).default("default"), field("lun", int32()), field("portals", texts())])
        .with(fields(&["chapAuthDiscovery", "chapAuthSession"], boolean))
        .needs(&["iqn", "lun", "targetPortal"]);
    let partitioned = |id: &'static str| device(&["fsType", id]).needs(&[id]).with([field("partition", int32())]);
    let rbd = device(&["fsType", "image"]).needs(&["image"]).with([
        field("keyring", text()).default("/etc/ceph/keyring"),
        field("monitors", texts()).required(),
        field("pool", text()).default("rbd"),
        field("user", text()).default("admin"),
    ]);
    let scale_io = device(&["gateway", "protectionDomain", "storagePool", "system", "volumeName"])
        .with([field("fsType", text()).default("xfs"), field("storageMode", text()).default("ThinProvisioned")])
        .with([field("sslEnabled", boolean()), field("secretRef", named_reference())])
        .needs(&["gateway", "secretRef", "system"]);
    let vsphere = object(fields(&["fsType", "storagePolicyID", "storagePolicyName", "volumePath"], text));
    vec![
        field("awsElasticBlockStore", partitioned("volumeID")),
        field("azureDisk", azure_disk),
        field("azureFile", device(&["secretName", "shareName"]).needs(&["secretName", "shareName"])),
        field("cephfs", cephfs.with(secret_ref())),
        field("cinder", device(&["fsType", "volumeID"]).needs(&["volumeID"]).with(secret_ref())),
        field("csi", csi),
        field("fc", fc),
        field("flexVolume", flex.with(secret_ref())),
        field("flocker", object(fields(&["datasetName", "datasetUUID"], text))),
        field("gcePersistentDisk", partitioned("pdName")),
        field("glusterfs", device(&["endpoints", "path"]).needs(&["endpoints", "path"])),
        field("iscsi", iscsi.with(secret_ref())),
        field("nfs", device(&["path", "server"]).needs(&["path", "server"])),
        field("photonPersistentDisk", object(fields(&["fsType", "pdID"], text)).needs(&["pdID"])),
        field("portworxVolume", device(&["fsType", "volumeID"]).needs(&["volumeID"])),
        field("quobyte", device(&["group", "registry", "tenant", "user", "volume"]).needs(&["registry", "volume"])),
        field("rbd", rbd.with(secret_ref())),
        field("scaleIO", scale_io),
        field("storageos", device(&["fsType", "volumeName", "volumeNamespace"]).with(secret_ref())),
        field("vsphereVolume", vsphere.needs(&["volumePath"])),
    ]
}
