//! The kinds that are read, their groups, versions and scopes.

/// A kind that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // named as in Kubernetes
pub enum Kind {
    ResourceFlavor,
    ClusterQueue,
    Cohort,
    LocalQueue,
    Workload,
    WorkloadPriorityClass,
    AdmissionCheck,
    ProvisioningRequestConfig,
    MultiKueueConfig,
    MultiKueueCluster,
    Topology,
    Namespace,
    LimitRange,
    Node,
    Pod,
    RuntimeClass,
    PriorityClass,
    ResourceClaimTemplate,
    DeviceClass,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 19] = [
        Kind::ResourceFlavor,
        Kind::ClusterQueue,
        Kind::Cohort,
        Kind::LocalQueue,
        Kind::Workload,
        Kind::WorkloadPriorityClass,
        Kind::AdmissionCheck,
        Kind::ProvisioningRequestConfig,
        Kind::MultiKueueConfig,
        Kind::MultiKueueCluster,
        Kind::Topology,
        Kind::Namespace,
        Kind::LimitRange,
        Kind::Node,
        Kind::Pod,
        Kind::RuntimeClass,
        Kind::PriorityClass,
        Kind::ResourceClaimTemplate,
        Kind::DeviceClass,
    ];

    /// The `kind` field.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::ResourceFlavor => "ResourceFlavor",
            Kind::ClusterQueue => "ClusterQueue",
            Kind::Cohort => "Cohort",
            Kind::LocalQueue => "LocalQueue",
            Kind::Workload => "Workload",
            Kind::WorkloadPriorityClass => "WorkloadPriorityClass",
            Kind::AdmissionCheck => "AdmissionCheck",
            Kind::ProvisioningRequestConfig => "ProvisioningRequestConfig",
            Kind::MultiKueueConfig => "MultiKueueConfig",
            Kind::MultiKueueCluster => "MultiKueueCluster",
            Kind::Topology => "Topology",
            Kind::Namespace => "Namespace",
            Kind::LimitRange => "LimitRange",
            Kind::Node => "Node",
            Kind::Pod => "Pod",
            Kind::RuntimeClass => "RuntimeClass",
            Kind::PriorityClass => "PriorityClass",
            Kind::ResourceClaimTemplate => "ResourceClaimTemplate",
            Kind::DeviceClass => "DeviceClass",
        }
    }

    /// The versions that are read, the preferred one first.
    #[must_use]
    pub fn api_versions(self) -> &'static [&'static str] {
        match self {
            Kind::Namespace | Kind::LimitRange | Kind::Node | Kind::Pod => &["v1"],
            Kind::RuntimeClass => &["node.k8s.io/v1"],
            Kind::PriorityClass => &["scheduling.k8s.io/v1"],
            Kind::ResourceClaimTemplate | Kind::DeviceClass => {
                &["resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1"]
            }
            Kind::Cohort | Kind::Topology => {
                &["kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1alpha1"]
            }
            _ => &["kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"],
        }
    }

    /// The group and version that objects are converted to.
    #[must_use]
    pub fn preferred_version(self) -> &'static str {
        self.api_versions()[0]
    }

    /// Are objects of this version read as they are, without being converted first?
    pub(crate) fn is_read_as_it_is(self, api_version: &str) -> bool {
        !self.is_kueue() || api_version == self.preferred_version()
    }

    /// Does an object of this kind live in a namespace?
    #[must_use]
    pub fn is_namespaced(self) -> bool {
        use Kind::{LimitRange, LocalQueue, Pod, ResourceClaimTemplate, Workload};
        matches!(self, LocalQueue | Workload | LimitRange | Pod | ResourceClaimTemplate)
    }

    /// Is it one of Kueue's own kinds?
    #[must_use]
    pub fn is_kueue(self) -> bool {
        self.preferred_version().starts_with(KUEUE_GROUP)
    }

    /// The kind of a group and name, whatever the version.
    #[must_use]
    pub fn find(group: &str, name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name && group_of(kind.preferred_version()) == group)
    }
}

/// Kueue's API group.
pub const KUEUE_GROUP: &str = "kueue.x-k8s.io";

/// The group of an `apiVersion`; empty for the core group.
#[must_use]
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
