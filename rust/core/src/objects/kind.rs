//! The table of kinds: which objects are read, and what all code needs to know of each.

use super::{
    AdmissionCheck, ClusterQueue, Cohort, DeviceClass, LimitRange, LocalQueue, Meta, Node, Pod, PriorityClass,
    ResourceClaimTemplate, ResourceFlavor, RuntimeClass, Topology, Workload,
};

/// Kueue's API group.
pub const KUEUE_GROUP: &str = "kueue.x-k8s.io";

const CORE: &[&str] = &["v1"];
const KUEUE: &[&str] = &["kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"];
const KUEUE_ALPHA: &[&str] = &["kueue.x-k8s.io/v1alpha1"];
const DEVICES: &[&str] = &["resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1"];

/// Where the metadata of an object is.
macro_rules! metadata {
    ($object:ident, whole) => {
        Some($object)
    };
    ($object:ident, meta) => {
        Some(&$object.meta)
    };
    ($object:ident, apart) => {{
        let _ = $object;
        None
    }};
}

macro_rules! metadata_mut {
    ($object:ident, meta) => {
        Some(&mut $object.meta)
    };
    ($object:ident, $where:ident) => {
        metadata!($object, $where)
    };
}

macro_rules! is_namespaced {
    (cluster) => {
        false
    };
    (namespace) => {
        true
    };
}

macro_rules! kinds {
    (
        kept {
            $($kept:ident($kept_as:ty) $kept_meta:ident, $kept_scope:ident, $kept_rank:literal, $kept_versions:expr;)*
        }
        seen {
            $($seen:ident($seen_as:ty) $seen_meta:ident, $seen_scope:ident, $seen_rank:literal, $seen_versions:expr;)*
        }
    ) => {
        /// Any object that can be applied.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Object {
            $($kept($kept_as),)*
            $($seen($seen_as),)*
        }

        /// A kind that is read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($kept,)*
            $($seen,)*
        }

        impl Object {
            #[must_use]
            pub fn kind(&self) -> Kind {
                match self {
                    $(Object::$kept(_) => Kind::$kept,)*
                    $(Object::$seen(_) => Kind::$seen,)*
                }
            }

            /// Its metadata; a Workload keeps its own in another way.
            #[must_use]
            pub fn meta(&self) -> Option<&Meta> {
                match self {
                    $(Object::$kept(object) => metadata!(object, $kept_meta),)*
                    $(Object::$seen(object) => metadata!(object, $seen_meta),)*
                }
            }

            /// The same, to write to.
            pub fn meta_mut(&mut self) -> Option<&mut Meta> {
                match self {
                    $(Object::$kept(object) => metadata_mut!(object, $kept_meta),)*
                    $(Object::$seen(object) => metadata_mut!(object, $seen_meta),)*
                }
            }
        }

        impl Kind {
            /// The kinds that an engine keeps, and that can be deleted by name.
            pub const KEPT: &'static [Kind] = &[$(Kind::$kept),*];
            /// Every kind.
            pub const ALL: &'static [Kind] = &[$(Kind::$kept,)* $(Kind::$seen),*];

            /// The `kind` field.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$kept => stringify!($kept),)*
                    $(Kind::$seen => stringify!($seen),)*
                }
            }

            /// The versions that are read, the preferred one first.
            #[must_use]
            pub fn api_versions(self) -> &'static [&'static str] {
                match self {
                    $(Kind::$kept => $kept_versions,)*
                    $(Kind::$seen => $seen_versions,)*
                }
            }

            /// Does an object of this kind live in a namespace?
            #[must_use]
            pub fn is_namespaced(self) -> bool {
                match self {
                    $(Kind::$kept => is_namespaced!($kept_scope),)*
                    $(Kind::$seen => is_namespaced!($seen_scope),)*
                }
            }

            /// Of a batch, kinds with a lower rank are applied first: others depend on them.
            #[must_use]
            pub fn rank(self) -> u8 {
                match self {
                    $(Kind::$kept => $kept_rank,)*
                    $(Kind::$seen => $seen_rank,)*
                }
            }
        }
    };
}

// The kind, what is read of it, where its `Meta` is, where it lives, its rank, and its versions.
kinds! {
    kept {
        Namespace(Meta) whole, cluster, 0, CORE;
        ResourceFlavor(ResourceFlavor) meta, cluster, 4, KUEUE;
        Topology(Topology) meta, cluster, 3, KUEUE;
        Cohort(Cohort) meta, cluster, 6, KUEUE;
        ClusterQueue(ClusterQueue) meta, cluster, 7, KUEUE;
        LocalQueue(LocalQueue) meta, namespace, 8, KUEUE;
        AdmissionCheck(AdmissionCheck) meta, cluster, 5, KUEUE;
        WorkloadPriorityClass(PriorityClass) meta, cluster, 2, KUEUE;
        LimitRange(LimitRange) meta, namespace, 1, CORE;
        RuntimeClass(RuntimeClass) meta, cluster, 1, &["node.k8s.io/v1"];
        ResourceClaimTemplate(ResourceClaimTemplate) meta, namespace, 1, DEVICES;
        DeviceClass(DeviceClass) meta, cluster, 1, DEVICES;
        Node(Node) meta, cluster, 3, CORE;
        Pod(Box<Pod>) meta, namespace, 9, CORE;
        Workload(Box<Workload>) apart, namespace, 9, KUEUE;
    }
    // Read and validated; the scheduler itself does not look at them.
    seen {
        PriorityClass(PriorityClass) meta, cluster, 2, &["scheduling.k8s.io/v1"];
        ProvisioningRequestConfig(Meta) whole, cluster, 10, KUEUE;
        MultiKueueConfig(Meta) whole, cluster, 10, KUEUE;
        MultiKueueCluster(Meta) whole, cluster, 10, KUEUE;
        PreemptionConfig(Meta) whole, cluster, 10, KUEUE_ALPHA;
    }
}

impl Kind {
    /// The kept kind of this name.
    #[must_use]
    pub fn kept(name: &str) -> Option<Kind> {
        Kind::KEPT.iter().copied().find(|kind| kind.name() == name)
    }

    /// The kind of a group and name, whatever the version.
    #[must_use]
    pub fn find(group: &str, name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name && group_of(kind.preferred_version()) == group)
    }

    /// The group and version that objects are converted to.
    #[must_use]
    pub fn preferred_version(self) -> &'static str {
        self.api_versions()[0]
    }

    /// Is it one of Kueue's own kinds?
    #[must_use]
    pub fn is_kueue(self) -> bool {
        group_of(self.preferred_version()) == KUEUE_GROUP
    }
}

/// The group of an `apiVersion`; empty for the core group.
#[must_use]
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
