//! Choices made from bytes, and the names of everything: few, so that objects refer to each other.

use arbitrary::{Result, Unstructured};
use kueuecore::base::gates::Gate;
use kueuecore::base::quantity::Quantity;
use kueuecore::base::releases::Release;
use kueuecore::engine::columns::Columns;
use kueuecore::objects::config::{
    AdmissionFairSharing, Config, FairSharing, PreemptionStrategy, RequeuingTimestamp, WaitForPodsReady,
};
use kueuecore::objects::{Kind, Time};

pub(super) const NAMESPACES: [&str; 2] = ["ns", "other"];
pub(super) const RESOURCES: [&str; 3] = ["cpu", "memory", "example.com/gpu"];
pub(super) const N_FLAVORS: u8 = 3;
pub(super) const N_COHORTS: u8 = 4;
pub(super) const N_QUEUES: u8 = 4;
pub(super) const N_LOCAL_QUEUES: u8 = 4;
pub(super) const N_WORKLOADS: u8 = 12;
pub(super) const N_CHECKS: u8 = 2;

/// Ordinary quantities, and those at the limits of the arithmetic.
const QUANTITIES: [&str; 16] =
    ["0", "1", "2", "3", "4", "5", "6", "8", "10", "500m", "1500m", "1n", "1Gi", "9223372036854775807", "8E", "7Ei"];

/// The remaining bytes.
pub(super) struct Draw<'a> {
    bytes: Unstructured<'a>,
}

impl<'a> Draw<'a> {
    pub(super) fn new(bytes: Unstructured<'a>) -> Self {
        Self { bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A number in `low..=high`.
    pub(super) fn number(&mut self, low: u8, high: u8) -> Result<u8> {
        self.bytes.int_in_range(low..=high)
    }

    pub(super) fn flag(&mut self) -> Result<bool> {
        Ok(self.number(0, 1)? == 1)
    }

    /// True once in `n` times.
    pub(super) fn rarely(&mut self, n: u8) -> Result<bool> {
        Ok(self.number(1, n)? == n)
    }

    pub(super) fn choose<T: Copy>(&mut self, from: &[T]) -> Result<T> {
        self.bytes.choose(from).copied()
    }

    /// `prefix` and a number below `n`.
    pub(super) fn name(&mut self, prefix: &str, n: u8) -> Result<String> {
        Ok(format!("{prefix}{}", self.number(0, n - 1)?))
    }

    /// The same, or no name.
    pub(super) fn maybe_name(&mut self, prefix: &str, n: u8) -> Result<String> {
        let number = self.number(0, n)?;
        Ok(if number == n { String::new() } else { format!("{prefix}{number}") })
    }

    pub(super) fn quantity(&mut self) -> Result<Quantity> {
        let text = if self.rarely(8)? { self.choose(&QUANTITIES)? } else { self.choose(&QUANTITIES[..11])? };
        Ok(Quantity::parse(text).expect("a quantity"))
    }

    pub(super) fn maybe_quantity(&mut self) -> Result<Option<Quantity>> {
        if self.flag()? { Ok(None) } else { self.quantity().map(Some) }
    }

    pub(super) fn priority(&mut self) -> Result<Option<i32>> {
        self.choose(&[None, Some(0), Some(1), Some(2), Some(100), Some(-1), Some(i32::MAX), Some(i32::MIN)])
    }

    pub(super) fn workload_key(&mut self) -> Result<(&'static str, String)> {
        Ok((self.namespace()?, self.name("w", N_WORKLOADS)?))
    }

    /// A namespace, mostly the first.
    pub(super) fn namespace(&mut self) -> Result<&'static str> {
        Ok(if self.rarely(8)? { NAMESPACES[1] } else { NAMESPACES[0] })
    }

    /// The time of the next event: mostly a little later, sometimes any time at all.
    pub(super) fn later(&mut self, now: Time) -> Result<Time> {
        const SECOND: i64 = 1_000_000_000;
        Ok(match self.number(0, 31)? {
            0 => Time(i64::MAX),
            1 => Time(i64::MIN + 1),
            2 => Time(0),
            3 => Time(now.0.saturating_add(3600 * SECOND)),
            4..=8 => now,
            step => Time(now.0.saturating_add(i64::from(step) * SECOND)),
        })
    }

    pub(super) fn config(&mut self) -> Result<Config> {
        let releases: Vec<Release> = Release::newest().collect();
        let mut config = Config::of(releases[usize::from(self.number(0, 255)?) % releases.len()]);
        for _ in 0..self.number(0, 3)? {
            let gate = Gate::ALL[usize::from(self.number(0, 255)?) % Gate::ALL.len()];
            config.gates = config.gates.with(gate, self.flag()?);
        }
        if self.flag()? {
            use PreemptionStrategy::{LessThanInitialShare, LessThanOrEqualToFinalShare};
            let strategies: [&[PreemptionStrategy]; 4] = [
                &[],
                &[LessThanInitialShare],
                &[LessThanOrEqualToFinalShare],
                &[LessThanOrEqualToFinalShare, LessThanInitialShare],
            ];
            config.fair_sharing = Some(FairSharing { preemption_strategies: self.choose(&strategies)?.to_vec() });
        }
        if self.rarely(3)? {
            config.admission_fair_sharing = Some(AdmissionFairSharing {
                usage_half_life_ns: self.choose(&[0, 1, 10_000_000_000, i64::MAX])?,
                usage_sampling_interval_ns: self.choose(&[1, 5_000_000_000, 300_000_000_000])?,
                resource_weights: [("cpu".to_owned(), self.choose(&[0.0, 0.5, 2.0, 1e300])?)].into(),
            });
        }
        let waits = self.number(0, 3)?;
        if waits % 2 == 1 {
            config.requeuing_timestamp = RequeuingTimestamp::Creation;
        }
        if waits > 1 {
            config.wait_for_pods_ready = Some(WaitForPodsReady {
                timeout_ns: 5_000_000_000,
                recovery_timeout_ns: Some(1_000_000_000),
                unscheduled_timeout_ns: None,
                block_admission: true,
                requeuing_timestamp: config.requeuing_timestamp,
                backoff_limit_count: Some(1),
                backoff_base_seconds: 2,
                backoff_max_seconds: i32::MAX,
            });
        }
        config.resources.ignore_undeclared = self.rarely(4)?;
        Ok(config)
    }

    /// Kind, namespace and name of something that may exist.
    pub(super) fn named(&mut self) -> Result<(Kind, &'static str, String)> {
        let kind = self.choose(Kind::KEPT)?;
        let name = match kind {
            Kind::Namespace => self.choose(&NAMESPACES)?.to_owned(),
            Kind::ResourceFlavor => self.name("f", N_FLAVORS)?,
            Kind::Cohort => self.name("c", N_COHORTS)?,
            Kind::ClusterQueue => self.name("q", N_QUEUES)?,
            Kind::LocalQueue => self.name("l", N_LOCAL_QUEUES)?,
            Kind::AdmissionCheck => self.name("k", N_CHECKS)?,
            Kind::Workload => self.name("w", N_WORKLOADS)?,
            _ => "x".to_owned(),
        };
        Ok((kind, self.namespace()?, name))
    }

    /// Columns that may or may not be workloads.
    pub(super) fn columns(&mut self) -> Result<Columns> {
        let n = usize::from(self.number(0, 3)?);
        let mut columns = Columns {
            namespace: self.namespace()?.to_owned(),
            prefix: "w".to_owned(),
            first: u64::from(self.number(0, N_WORKLOADS)?),
            local_queues: vec![self.name("l", N_LOCAL_QUEUES)?.into(), "nowhere".into()],
            resources: RESOURCES[..usize::from(self.number(0, 2)?)].iter().map(|r| (*r).to_owned()).collect(),
            ..Columns::default()
        };
        for _ in 0..n {
            columns.queue.push(u32::from(self.number(0, 1)?));
            columns.priority.push(self.priority()?.unwrap_or_default());
            columns.created.push(i64::from(self.number(0, 3)?));
            columns.count.push(i32::from(self.number(0, 3)?));
            for _ in 0..columns.resources.len() {
                columns.requests.push(self.choose(&[0, 1, 1000, 4000, i64::MAX])?);
            }
        }
        match self.number(0, 15)? {
            0 => columns.queue.push(7),
            1 => columns.requests.push(1),
            2 => columns.first = u64::MAX,
            3 => columns.count.iter_mut().for_each(|count| *count = -1),
            _ => {}
        }
        Ok(columns)
    }
}
