//! Objects made from bytes: anything an API server may hold, sensible or not.

use arbitrary::Result;
use kueuecore::engine::Engine;
use kueuecore::objects::{
    Admission, AdmissionCheck, AdmissionCheckRule, AdmissionCheckState, BorrowWithinCohort, CheckState, ClusterQueue,
    Cohort, Condition, ConditionStatus, Container, FlavorFungibility, FlavorQuotas, FungibilityPolicy,
    FungibilityPreference, LabelSelector, LimitRange, LimitRangeItem, LocalQueue, Meta, Object, PodSet,
    PodSetAssignment, Preemption, PreemptionPolicy, PriorityClassRef, QueueingStrategy, ReclaimablePod, ResourceFlavor,
    ResourceGroup, ResourceQuota, StopPolicy, Taint, Time, Workload, WorkloadStatus,
};

use super::draw::{Draw, N_CHECKS, N_COHORTS, N_FLAVORS, N_LOCAL_QUEUES, N_QUEUES, NAMESPACES, RESOURCES};

fn meta(namespace: &str, name: &str) -> Meta {
    Meta {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        uid: format!("uid-{namespace}-{name}"),
        created: Time(0),
        generation: 1,
        ..Meta::default()
    }
}

impl Draw<'_> {
    /// Namespaces, flavors, checks, and some queues.
    pub(super) fn world(&mut self) -> Result<Vec<Object>> {
        let mut objects: Vec<Object> = NAMESPACES.iter().map(|name| Object::Namespace(meta("", name))).collect();
        for number in 0..N_FLAVORS {
            objects.push(Object::ResourceFlavor(ResourceFlavor {
                meta: meta("", &format!("f{number}")),
                ..ResourceFlavor::default()
            }));
        }
        for _ in 0..self.number(0, 3)? {
            objects.push(self.cohort()?);
        }
        for number in 0..self.number(1, N_QUEUES)? {
            objects.push(self.cluster_queue(format!("q{number}"))?);
            let queue = LocalQueue {
                meta: meta(NAMESPACES[0], &format!("l{number}")),
                cluster_queue: format!("q{number}"),
                ..LocalQueue::default()
            };
            objects.push(Object::LocalQueue(queue));
        }
        Ok(objects)
    }

    /// Anything but a Workload.
    pub(super) fn object(&mut self) -> Result<Object> {
        Ok(match self.number(0, 9)? {
            0 => Object::Namespace(meta("", self.choose(&NAMESPACES)?)),
            1 => self.flavor()?,
            2 | 3 => self.cohort()?,
            4 | 5 => {
                let name = self.name("q", N_QUEUES)?;
                self.cluster_queue(name)?
            }
            6 | 7 => self.local_queue()?,
            8 => {
                let name = self.name("k", N_CHECKS)?;
                let active = self.flag()?;
                Object::AdmissionCheck(AdmissionCheck { meta: meta("", &name), active, ..AdmissionCheck::default() })
            }
            _ => self.limit_range()?,
        })
    }

    fn flavor(&mut self) -> Result<Object> {
        let mut flavor = ResourceFlavor { meta: meta("", &self.name("f", N_FLAVORS)?), ..ResourceFlavor::default() };
        if self.flag()? {
            flavor.node_taints.push(Taint {
                key: "spot".to_owned(),
                value: String::new(),
                effect: self.choose(&["NoSchedule", "NoExecute", "PreferNoSchedule"])?.to_owned(),
            });
        }
        if self.flag()? {
            flavor.node_labels.insert("zone".to_owned(), self.choose(&["a", "b"])?.to_owned());
        }
        if self.rarely(8)? {
            flavor.topology_name = "topology".to_owned();
        }
        Ok(Object::ResourceFlavor(flavor))
    }

    fn cohort(&mut self) -> Result<Object> {
        Ok(Object::Cohort(Cohort {
            meta: meta("", &self.name("c", N_COHORTS)?),
            parent_name: self.maybe_name("c", N_COHORTS)?,
            resource_groups: self.groups()?,
            fair_weight: self.maybe_quantity()?,
        }))
    }

    fn groups(&mut self) -> Result<Vec<ResourceGroup>> {
        let mut groups = Vec::new();
        let n_resources = usize::from(self.number(0, 3)?);
        let split = usize::from(self.number(0, 2)?);
        // No resource is in two groups, which the webhook ensures; flavors may be.
        for resources in [&RESOURCES[..n_resources.min(split)], &RESOURCES[n_resources.min(split)..n_resources]] {
            if resources.is_empty() {
                continue;
            }
            let first = self.number(0, N_FLAVORS - 1)?;
            let mut flavors = Vec::new();
            for flavor in first..self.number(first + 1, N_FLAVORS)? {
                let mut quotas = Vec::new();
                for resource in resources {
                    quotas.push(ResourceQuota {
                        name: (*resource).to_owned(),
                        nominal_quota: self.quantity()?,
                        borrowing_limit: self.maybe_quantity()?,
                        lending_limit: self.maybe_quantity()?,
                    });
                }
                flavors.push(FlavorQuotas { name: format!("f{flavor}"), resources: quotas });
            }
            groups.push(ResourceGroup {
                covered_resources: resources.iter().map(|resource| (*resource).to_owned()).collect(),
                flavors,
            });
        }
        Ok(groups)
    }

    fn policy(&mut self) -> Result<PreemptionPolicy> {
        use PreemptionPolicy::{Any, LowerOrNewerEqualPriority, LowerPriority, Never, Unset};
        self.choose(&[Any, LowerPriority, LowerOrNewerEqualPriority, Never, Unset])
    }

    fn stop_policy(&mut self) -> Result<StopPolicy> {
        use StopPolicy::{Hold, HoldAndDrain, None};
        self.choose(&[None, None, None, None, None, None, Hold, HoldAndDrain])
    }

    fn cluster_queue(&mut self, name: String) -> Result<Object> {
        let mut queue = ClusterQueue {
            meta: meta("", &name),
            cohort_name: self.maybe_name("c", N_COHORTS)?,
            resource_groups: self.groups()?,
            namespace_selector: Some(LabelSelector::default()),
            stop_policy: self.stop_policy()?,
            fair_weight: self.maybe_quantity()?,
            usage_based_admission: self.flag()?,
            ..ClusterQueue::default()
        };
        if self.flag()? {
            queue.queueing_strategy = QueueingStrategy::StrictFIFO;
        }
        if self.flag()? {
            let fungibility = [FungibilityPolicy::MayStopSearch, FungibilityPolicy::TryNextFlavor];
            queue.flavor_fungibility = FlavorFungibility {
                when_can_borrow: self.choose(&fungibility)?,
                when_can_preempt: self.choose(&fungibility)?,
                preference: self.choose(&[
                    None,
                    Some(FungibilityPreference::BorrowingOverPreemption),
                    Some(FungibilityPreference::PreemptionOverBorrowing),
                ])?,
            };
        }
        if self.flag()? {
            let borrow = BorrowWithinCohort { policy: self.policy()?, max_priority_threshold: self.priority()? };
            queue.preemption = Some(Preemption {
                reclaim_within_cohort: self.policy()?,
                within_cluster_queue: self.policy()?,
                borrow_within_cohort: if self.flag()? { Some(borrow) } else { None },
            });
        }
        if self.rarely(4)? {
            let on_flavors = if self.flag()? { vec![self.name("f", N_FLAVORS)?] } else { Vec::new() };
            queue.admission_checks.push(AdmissionCheckRule { name: self.name("k", N_CHECKS)?, on_flavors });
        }
        if self.rarely(16)? {
            queue.namespace_selector = None;
        }
        Ok(Object::ClusterQueue(queue))
    }

    fn local_queue(&mut self) -> Result<Object> {
        Ok(Object::LocalQueue(LocalQueue {
            meta: meta(self.namespace()?, &self.name("l", N_LOCAL_QUEUES)?),
            cluster_queue: self.name("q", N_QUEUES)?,
            stop_policy: self.stop_policy()?,
            fair_weight: self.maybe_quantity()?,
            consumed_resources: None,
        }))
    }

    fn limit_range(&mut self) -> Result<Object> {
        let mut item =
            LimitRangeItem { kind: self.choose(&["Container", "Pod"])?.to_owned(), ..LimitRangeItem::default() };
        for list in [&mut item.max, &mut item.min, &mut item.default, &mut item.default_request] {
            if self.flag()? {
                list.insert("cpu".to_owned(), self.quantity()?);
            }
        }
        Ok(Object::LimitRange(LimitRange { meta: meta(self.namespace()?, "x"), limits: vec![item] }))
    }

    /// A new workload, or another version of an existing one with a different spec or status.
    pub(super) fn workload(&mut self, engine: &Engine) -> Result<Workload> {
        let (namespace, name) = self.workload_key()?;
        let there = engine.state.workloads.find(namespace, &name).map(|id| engine.state.workload_object(id));
        let mut workload = match there {
            Some(workload) if !self.rarely(3)? => workload,
            other => {
                let mut workload = self.new_workload(namespace, &name)?;
                if let Some(old) = other {
                    workload.meta = old.meta;
                    workload.status = old.status;
                }
                workload
            }
        };
        for _ in 0..self.number(0, 2)? {
            self.change(&mut workload)?;
        }
        Ok(workload)
    }

    fn new_workload(&mut self, namespace: &str, name: &str) -> Result<Workload> {
        let mut workload = Workload {
            meta: meta(namespace, name).into(),
            queue_name: self.maybe_name("l", N_LOCAL_QUEUES)?.into(),
            priority: self.priority()?,
            ..Workload::default()
        };
        workload.meta.created = Time(i64::from(self.number(0, 3)?));
        for number in 0..=self.number(0, 15)? / 12 {
            let mut container = Container { name: "c".to_owned(), ..Container::default() };
            for resource in &RESOURCES[..usize::from(self.number(0, 3)?)] {
                container.resources.requests.insert((*resource).to_owned(), self.quantity()?);
            }
            let mut pod_set = PodSet { name: format!("s{number}"), count: self.count()?, ..PodSet::default() };
            pod_set.min_count = if self.rarely(4)? { Some(1) } else { None };
            if self.rarely(8)? {
                pod_set.template.spec.node_selector.insert("zone".to_owned(), "a".to_owned());
            }
            pod_set.template.spec.containers.push(container);
            workload.pod_sets.push(pod_set);
        }
        Ok(workload)
    }

    fn count(&mut self) -> Result<i32> {
        self.choose(&[1, 1, 1, 2, 3, 0, i32::MAX])
    }

    fn change(&mut self, workload: &mut Workload) -> Result<()> {
        match self.number(0, 11)? {
            0 => workload.priority = self.priority()?,
            1 => workload.active = Some(self.flag()?),
            2 => workload.queue_name = self.maybe_name("l", N_LOCAL_QUEUES)?.into(),
            3 => {
                let pods = ReclaimablePod { name: "s0".to_owned(), count: self.count()? };
                workload.status.rare.reclaimable_pods = vec![pods];
            }
            4 => {
                let checks = &mut workload.status.rare.admission_checks;
                checks.retain(|check| check.name != "k0");
                checks.push(AdmissionCheckState {
                    name: "k0".to_owned(),
                    state: self.choose(&[
                        CheckState::Pending,
                        CheckState::Ready,
                        CheckState::Retry,
                        CheckState::Rejected,
                    ])?,
                    retry_count: if self.flag()? { Some(self.count()?) } else { None },
                    requeue_after_seconds: if self.flag()? { Some(self.count()?) } else { None },
                    ..AdmissionCheckState::default()
                });
            }
            5 => workload.maximum_execution_time_seconds = Some(self.count()?),
            6 => workload.meta.generation += 1,
            7 => {
                workload.priority_class = Some(
                    PriorityClassRef {
                        group: "kueue.x-k8s.io".to_owned(),
                        kind: "WorkloadPriorityClass".to_owned(),
                        name: self.name("p", 2)?,
                    }
                    .into(),
                );
            }
            8 => self.restore(workload)?,
            9 => {
                let kind =
                    self.choose(&["Evicted", "Finished", "Admitted", "QuotaReserved", "Requeued", "PodsReady"])?;
                let status = self.choose(&[ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown])?;
                set_condition(workload, kind, status);
            }
            10 => workload.status = WorkloadStatus::default().into(),
            _ => {
                if let Some(pod_set) = workload.pod_sets.first_mut() {
                    pod_set.count = self.count()?;
                }
            }
        }
        Ok(())
    }

    /// As found at a restart: with quota reserved, perhaps in a queue that is gone.
    fn restore(&mut self, workload: &mut Workload) -> Result<()> {
        let mut assignments = Vec::new();
        for pod_set in workload.pod_sets.iter() {
            let mut assignment = PodSetAssignment { name: pod_set.name.clone(), ..PodSetAssignment::default() };
            assignment.count = if self.flag()? { Some(self.count()?) } else { None };
            for resource in &RESOURCES[..usize::from(self.number(0, 2)?)] {
                assignment.flavors.insert((*resource).to_owned(), self.name("f", N_FLAVORS + 1)?);
                if !self.rarely(8)? {
                    assignment.resource_usage.insert((*resource).to_owned(), self.quantity()?);
                }
            }
            assignments.push(assignment);
        }
        if self.rarely(8)? {
            assignments.pop();
        }
        let cluster_queue = self.name("q", N_QUEUES + 1)?;
        workload.status.admission = {
            let cluster_queue = cluster_queue.into();
            Some(Admission { cluster_queue, pod_set_assignments: assignments.into() }.into())
        };
        set_condition(workload, "QuotaReserved", ConditionStatus::True);
        if self.flag()? {
            set_condition(workload, "Admitted", ConditionStatus::True);
        }
        Ok(())
    }
}

fn set_condition(workload: &mut Workload, kind: &'static str, status: ConditionStatus) {
    let condition = Condition { kind: kind.into(), status, last_transition: Time(5), ..Condition::default() };
    workload.status.conditions.set(condition);
}
