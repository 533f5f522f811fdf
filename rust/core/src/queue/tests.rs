use std::collections::BTreeSet;

use super::*;
use crate::status::reasons;

/// The queue as a plain list that is searched from the start: the same rules, nothing cached.
#[derive(Default)]
struct Model {
    strategy: QueueingStrategy,
    waiting: Vec<(Item, Stands, bool)>,
    inflight: Option<WorkloadId>,
    preemptor: Option<(WorkloadId, i64)>,
    marks: BTreeMap<ShapeId, &'static str>,
    pops: i64,
    flushed: i64,
}

impl Model {
    fn place(&self, id: WorkloadId) -> Option<Stands> {
        self.waiting.iter().find(|it| it.0.id == id).map(|it| it.1)
    }

    fn take(&mut self, id: WorkloadId) {
        self.waiting.retain(|it| it.0.id != id);
    }

    fn put(&mut self, item: &Item, stands: Stands) {
        self.take(item.id);
        let sticky =
            self.strategy == QueueingStrategy::BestEffortFIFO && self.preemptor.is_some_and(|p| p.0 == item.id);
        let stands = if stands == Stands::Parked && !item.backoff_expired { Stands::Held } else { stands };
        self.waiting.push((item.clone(), stands, sticky));
    }

    fn sorted(&self, in_heap: bool) -> Vec<WorkloadId> {
        let mut found: Vec<&(Item, Stands, bool)> =
            self.waiting.iter().filter(|it| (it.1 == Stands::InHeap) == in_heap).collect();
        found.sort_by_key(|(item, _, sticky)| (!sticky, -item.priority, item.time, item.id));
        found.into_iter().map(|it| it.0.id).collect()
    }

    fn push_or_update(&mut self, item: &Item, relevant: bool) {
        if self.inflight == Some(item.id) {
            return;
        }
        let before = self.place(item.id);
        let is_marked = self.strategy == QueueingStrategy::BestEffortFIFO
            && item.shape.is_some_and(|shape| self.marks.contains_key(&shape));
        let parks =
            before != Some(Stands::InHeap) && ((before.is_some() && !relevant) || !item.backoff_expired || is_marked);
        self.put(item, if parks { Stands::Parked } else { Stands::InHeap });
    }

    fn pop(&mut self) -> Option<WorkloadId> {
        self.pops += 1;
        self.inflight = self.sorted(true).first().copied();
        if let Some(id) = self.inflight {
            self.take(id);
        }
        self.inflight
    }

    fn requeue(&mut self, item: &Item, returned: &Returned) -> Vec<WorkloadId> {
        let &Returned { reason, pending_flavors, hashing, ends_stickiness, .. } = returned;
        use RequeueReason::{
            FailedAfterNomination, NamespaceMismatch, NoFit, PendingMigration, PendingPreemption, PreemptionFailed,
            PreemptionNoCandidates,
        };
        let is_fifo = self.strategy == QueueingStrategy::StrictFIFO;
        if matches!(reason, PendingPreemption | PendingMigration) {
            if let Some((old, _)) = self.preemptor.filter(|old| old.0 != item.id) {
                self.waiting.iter_mut().filter(|it| it.0.id == old).for_each(|it| it.2 = false);
            }
            self.preemptor = Some((item.id, 7));
        } else if ends_stickiness && self.preemptor.is_some_and(|it| it.0 == item.id) {
            self.preemptor = None;
            self.waiting.iter_mut().filter(|it| it.0.id == item.id).for_each(|it| it.2 = false);
        }
        self.inflight = self.inflight.filter(|id| *id != item.id);
        let again = [FailedAfterNomination, PendingPreemption, PendingMigration, PreemptionFailed];
        let at_once = if is_fifo { reason != NamespaceMismatch } else { again.contains(&reason) };
        if item.backoff_expired && (at_once || self.flushed >= self.pops || pending_flavors) {
            if self.place(item.id) != Some(Stands::InHeap) {
                self.put(item, Stands::InHeap);
            }
            return Vec::new();
        }
        if self.place(item.id).is_some() {
            return Vec::new();
        }
        self.put(item, Stands::Parked);
        let Some(shape) = item.shape else { return Vec::new() };
        if is_fifo || !hashing || !matches!(reason, NoFit | PreemptionNoCandidates) {
            return Vec::new();
        }
        self.marks.insert(shape, reasons::WAITING_FOR_QUOTA);
        let mut moved = Vec::new();
        for it in self.waiting.iter_mut().filter(|it| it.0.shape == Some(shape) && it.1 == Stands::InHeap) {
            it.1 = Stands::Parked;
            moved.push(it.0.id);
        }
        moved
    }

    fn flush(&mut self, selected: impl Fn(LocalQueueId) -> bool) -> usize {
        self.flushed = self.pops;
        self.marks.clear();
        let parked = self.waiting.iter_mut().filter(|it| it.1 == Stands::Parked && selected(it.0.local_queue));
        parked.map(|it| it.1 = Stands::InHeap).count()
    }
}

/// Reproducible pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn item(dice: &mut Dice, id: u32) -> Item {
    // The requests of a workload do not change here; its priority, time and backoff do.
    Item {
        id: WorkloadId(id),
        local_queue: LocalQueueId(id % 2),
        shape: (!id.is_multiple_of(5)).then_some(ShapeId(id % 3)),
        priority: i64::try_from(dice.below(3)).expect("small"),
        time: Time(i64::try_from(dice.below(4)).expect("small")),
        key: Key::new("ns", &format!("{id:02}"), &format!("{id:02}")),
        backoff_expired: dice.below(6) != 0,
    }
}

fn agrees(pending: &Pending, places: &Places, model: &Model, known: &[Item]) {
    assert_eq!(pending.active().collect::<Vec<_>>(), model.sorted(true));
    assert_eq!(pending.inadmissible().collect::<Vec<_>>(), model.sorted(false));
    assert_eq!((pending.n_active(), pending.has_active()), (model.sorted(true).len(), !model.sorted(true).is_empty()));
    assert_eq!(pending.n_inadmissible(), model.sorted(false).len());
    assert_eq!(pending.inflight(), model.inflight);
    assert!(pending.buckets.len() < 2 || !pending.buckets.iter().any(Bucket::is_empty), "an empty one is kept");
    let held: BTreeSet<WorkloadId> = model.waiting.iter().filter(|it| it.1 == Stands::Held).map(|it| it.0.id).collect();
    assert_eq!(pending.held().collect::<BTreeSet<_>>(), held);
    let content = model
        .waiting
        .iter()
        .map(|(item, stands, _)| mark_of(item.id).wrapping_mul(if *stands == Stands::InHeap { 1 } else { PARKED }));
    assert_eq!(places.content(), content.fold(0, u64::wrapping_add));
    for item in known {
        let stands = model.place(item.id);
        assert_eq!(pending.is_active(places, item.id), stands == Some(Stands::InHeap));
        assert_eq!(pending.is_inadmissible(places, item.id), stands.is_some_and(|it| it != Stands::InHeap));
        assert_eq!(pending.is_inflight(item.id), model.inflight == Some(item.id));
        assert_eq!(pending.parked_reason(item.shape), item.shape.and_then(|it| model.marks.get(&it).copied()));
        for generation in [7, 8] {
            let is_preemptor = model.preemptor == Some((item.id, generation));
            assert_eq!(pending.is_preemptor(item.id, generation), is_preemptor);
        }
        let key = pending.key(item);
        let place = |it: &(Item, Stands, bool)| (!it.2, -it.0.priority, it.0.time, it.0.id);
        let own = (key.not_sticky, -item.priority, item.time, item.id);
        assert_eq!(pending.n_before(&key), model.waiting.iter().filter(|it| place(it) < own).count());
    }
    for shape in (0..3).map(ShapeId) {
        let of_shape = |it: &&(Item, Stands, bool)| it.0.shape == Some(shape) && it.1 == Stands::Parked;
        let expected: BTreeSet<WorkloadId> = model.waiting.iter().filter(of_shape).map(|it| it.0.id).collect();
        assert_eq!(pending.parked_of_shape(shape).collect::<BTreeSet<_>>(), expected);
    }
}

/// rules/05 §2 to §5, in many random histories of one queue.
#[test]
fn a_queue_behaves_like_a_plain_list() {
    use RequeueReason::{
        FailedAfterNomination, Generic, NamespaceMismatch, NoFit, PendingMigration, PendingPreemption,
        PreemptionFailed, PreemptionGated, PreemptionNoCandidates,
    };
    let all = [
        Generic,
        NamespaceMismatch,
        NoFit,
        PreemptionNoCandidates,
        PreemptionGated,
        PendingPreemption,
        PendingMigration,
        PreemptionFailed,
        FailedAfterNomination,
    ];
    for seed in 0..120 {
        let mut dice = Dice(seed);
        let strategy = if seed % 3 == 0 { QueueingStrategy::StrictFIFO } else { QueueingStrategy::BestEffortFIFO };
        let mut pending = Pending { strategy, ..Pending::default() };
        let mut places = Places::default();
        let mut model = Model { strategy, flushed: -1, ..Model::default() };
        let mut known: Vec<Item> = (0..9).map(|id| item(&mut dice, id)).collect();
        for _ in 0..60 {
            let index = usize::try_from(dice.below(9)).expect("small");
            match dice.below(9) {
                8 => {
                    let is_away = |it: &&Item| model.place(it.id).is_none() && model.inflight != Some(it.id);
                    let new: Vec<Item> = known.iter().filter(is_away).filter(|_| dice.below(2) == 0).cloned().collect();
                    pending.push_new(&mut places, &new);
                    new.iter().for_each(|item| model.push_or_update(item, false));
                }
                0..=2 => {
                    known[index] = item(&mut dice, u32::try_from(index).expect("small"));
                    let relevant = dice.below(2) == 0;
                    pending.push_or_update(&mut places, &known[index], relevant);
                    model.push_or_update(&known[index], relevant);
                }
                3 | 4 if model.inflight.is_none() => assert_eq!(pending.pop(&mut places, |_| 0.0), model.pop()),
                3..=5 => {
                    let id = model.inflight.unwrap_or(WorkloadId(u32::try_from(index).expect("small")));
                    let item = &known[id.0 as usize];
                    let reason = all[usize::try_from(dice.below(9)).expect("small")];
                    let (pending_flavors, hashing) = (dice.below(5) == 0, dice.below(4) != 0);
                    let status_reason = reasons::WAITING_FOR_QUOTA;
                    let returned = Returned {
                        reason,
                        status_reason,
                        pending_flavors,
                        generation: 7,
                        hashing,
                        any_failure_counts: false,
                        strict_queues_note: true,
                        ends_stickiness: seed % 2 == 0,
                    };
                    let moved = pending.requeue(&mut places, item, &returned);
                    let moved: BTreeSet<&str> =
                        moved.iter().flatten().flat_map(Parked::keys).map(|key| key.name()).collect();
                    let expected = model.requeue(item, &returned);
                    let expected: BTreeSet<&str> = expected.iter().map(|id| known[id.0 as usize].key.name()).collect();
                    assert_eq!(moved, expected);
                }
                6 => {
                    let id = known[index].id;
                    pending.delete(&mut places, id);
                    model.take(id);
                    model.inflight = model.inflight.filter(|it| *it != id);
                    model.preemptor = model.preemptor.filter(|it| it.0 != id);
                }
                _ => {
                    let only = dice.below(3);
                    let selected = |queue: LocalQueueId| only == 2 || u64::from(queue.0) == only;
                    pending.begin_flush();
                    assert_eq!(pending.unpark_buckets(&mut places, selected), model.flush(selected));
                }
            }
            agrees(&pending, &places, &model, &known);
        }
        for item in &known {
            pending.unpark(&mut places, item);
            if model.place(item.id).is_some_and(|it| it != Stands::InHeap) {
                model.put(item, Stands::InHeap);
            }
        }
        agrees(&pending, &places, &model, &known);
    }
}

/// A preemptor comes back to the heap because its victims are not evicted yet, and then for another reason.
#[test]
fn a_preemptor_stays_in_front_only_while_it_waits_for_victims() {
    use RequeueReason::{FailedAfterNomination, NoFit, PendingPreemption, PreemptionFailed};
    let first_of_all = |reason: RequeueReason, ends_stickiness: bool| {
        let (mut dice, mut places, mut pending) = (Dice(0), Places::default(), Pending::default());
        let of = |id: u32, priority: i64, dice: &mut Dice| Item {
            shape: None,
            backoff_expired: true,
            priority,
            ..item(dice, id)
        };
        let (low, high) = (of(1, 0, &mut dice), of(2, 10, &mut dice));
        let returned = |reason| Returned { reason, ends_stickiness, ..Returned::default() };
        pending.push_or_update(&mut places, &low, true);
        assert_eq!(pending.pop(&mut places, |_| 0.0), Some(low.id));
        pending.requeue(&mut places, &low, &returned(PendingPreemption));
        pending.push_or_update(&mut places, &high, true);
        assert_eq!(pending.pop(&mut places, |_| 0.0), Some(low.id), "it waits for its victims");
        pending.requeue(&mut places, &low, &returned(reason));
        assert_eq!(pending.is_preemptor(low.id, 0), !ends_stickiness);
        assert_eq!(pending.is_inadmissible(&places, low.id), reason == NoFit);
        pending.begin_flush();
        pending.unpark_buckets(&mut places, |_| true);
        let first = pending.pop(&mut places, |_| 0.0).expect("two wait");
        let (item, other) = if first == low.id { (&low, high.id) } else { (&high, low.id) };
        pending.requeue(&mut places, item, &returned(FailedAfterNomination));
        assert!(pending.is_active(&places, other));
        first.0
    };
    for reason in [PreemptionFailed, NoFit, FailedAfterNomination] {
        assert_eq!([true, false].map(|ends| first_of_all(reason, ends)), [2, 1], "{reason:?}");
    }
}

#[test]
fn marks_are_distinct() {
    let marks: BTreeSet<u64> = (0..10_000).map(|id| mark_of(WorkloadId(id))).collect();
    assert_eq!(marks.len(), 10_000);
    // Sums of a few marks differ, too, so that exchanged workloads are noticed.
    let few: Vec<u64> = marks.iter().copied().take(200).collect();
    let sums: BTreeSet<u64> =
        few.iter().enumerate().flat_map(|(i, a)| few[i..].iter().map(|b| a.wrapping_add(*b))).collect();
    assert_eq!(sums.len(), 200 * 201 / 2);
}

/// A LocalQueue that was repointed has a bucket in both queues.
#[test]
fn workloads_of_another_queue_are_not_in_this_one() {
    let (mut dice, mut places) = (Dice(0), Places::default());
    let [here, there] = [1, 7].map(|id| Item { shape: None, backoff_expired: true, ..item(&mut dice, id) });
    assert_eq!(here.local_queue, there.local_queue);
    let mut queues = [Pending::default(), Pending::default()];
    for (queue, item) in queues.iter_mut().zip([&here, &there]) {
        queue.push_or_update(&mut places, item, true);
    }
    for (queue, (is_here, is_there)) in queues.iter_mut().zip([(true, false), (false, true)]) {
        let stand = |id| (queue.is_active(&places, id), queue.is_inadmissible(&places, id));
        assert_eq!([stand(here.id), stand(there.id)], [(is_here, false), (is_there, false)]);
    }
}
