use std::sync::Arc;

use smallvec::smallvec;

use super::*;
use crate::base::ids::{FlavorId, FlavorResourceId, QueueId};
use crate::base::key::Key;
use crate::base::names::Names;
use crate::base::when_read::WhenRead;
use crate::objects::PodSet;

#[test]
fn seconds_round_like_a_formatted_float() {
    let halves = (0..60).flat_map(|n| [n, 86_400 * n, 100_003 * n]).map(|n| n * SECOND_NS + SECOND_NS / 2);
    let near = halves.flat_map(|ns| [ns - SECOND_NS / 2, ns - 1, ns, ns + 1]);
    let ends = [(1 << 50) - 1, 1 << 50, i64::MAX, i64::MIN, -1, -SECOND_NS / 2];
    for ns in near.chain(ends) {
        assert_eq!(seconds(ns), format!("{:.0}", ns as f64 / 1e9), "{ns}");
    }
}

fn names() -> Names {
    let mut names = Names::default();
    let (flavor, cpu) = (names.flavors.intern("rf"), names.resource("cpu"));
    names.flavor_resource(flavor, cpu);
    for queue in ["cq", "other"] {
        names.queue(queue);
    }
    names.cohorts.intern("root");
    names
}

fn missing(milli: i64) -> Reason {
    Reason::Insufficient { fr: FlavorResourceId(0), missing: Amount::new(milli) }
}

fn no_fit(names: &Names, reasons: &[Reason]) -> Message {
    let pod_sets = vec![PodSet { name: "main".to_owned(), ..PodSet::default() }].into();
    let misfits = smallvec![Misfit { pod_set: 0, why: Why::Reasons(reasons.to_vec()) }];
    Message::NoFit(Arc::new(NoFit { pod_sets, misfits, lexicon: names.lexicon() }))
}

fn preemption(names: &Names, uid: &str, queue: u32) -> Arc<Preemption> {
    Arc::new(preemption_of(names, uid, queue))
}

fn preemption_of(names: &Names, uid: &str, queue: u32) -> Preemption {
    let path = |queue| Path { queue: QueueId(queue), cohorts: Some(smallvec![crate::base::ids::CohortId(0)]) };
    Preemption {
        preemptor: Key::new("ns", "new", uid),
        preemptor_details: MetaDetails::default().into(),
        preemptee: Key::new("ns", "old", "old-uid"),
        reason: reasons::IN_COHORT_RECLAMATION,
        preemptor_path: path(queue),
        preemptee_path: path(1),
        preemptor_priorities: (7, 5),
        preemptee_priorities: (0, 0),
        lexicon: names.lexicon(),
    }
}

/// Messages no two of which read the same.
fn all(names: &Names) -> Vec<Message> {
    let name = |text: &str| -> Arc<str> { text.into() };
    let considered = |reasons: &[Reason]| {
        let flavor = FlavorId(0);
        let it = ConsideredFlavor { flavor, mode: "Fit", possibility: None, level: 1, reasons: reasons.into() };
        let pod_sets = vec![PodSet { name: "main".to_owned(), ..PodSet::default() }].into();
        let (queue, lexicon) = (name("cq"), names.lexicon());
        Message::QuotaReservedAmong(Arc::new(Considered {
            queue,
            wait_ns: 0,
            pod_sets,
            flavors: WhenRead::new(Box::new(|| vec![(0, it)])),
            lexicon,
        }))
    };
    let why = || Arc::new(no_fit(names, &[missing(1500)]));
    let mut all = vec![
        Message::default(),
        Message::from("a"),
        Message::QuotaReserved(name("cq")),
        Message::QuotaReserved(name("other")),
        Message::QuotaReservedAfter { queue: name("cq"), wait_ns: SECOND_NS },
        Message::QuotaReservedAfter { queue: name("cq"), wait_ns: 2 * SECOND_NS },
        considered(&[]),
        considered(&[missing(1)]),
        Message::AdmittedBy { queue: name("cq"), wait_ns: SECOND_NS },
        Message::AdmittedBy { queue: name("other"), wait_ns: SECOND_NS },
        no_fit(names, &[missing(1500)]),
        no_fit(names, &[missing(1500), missing(2500)]),
        Message::PendingPreemptions(why(), 1),
        Message::PendingPreemptions(why(), 2),
        Message::PendingMigration(why()),
        Message::GatedBy(name("me")),
        Message::NamespaceMissing(name("ns")),
        Message::Previously(why()),
        Message::DeactivatedDueTo(why()),
    ];
    for (uid, queue) in [("a", 0), ("a", 1), ("b", 0)] {
        all.push(Message::Preempted(preemption(names, uid, queue)));
        all.push(Message::PreemptedWithPriorities(preemption(names, uid, queue)));
    }
    let pod_sets = vec![PodSet { name: "other".to_owned(), ..PodSet::default() }].into();
    let misfits = smallvec![Misfit { pod_set: 0, why: Why::Reasons(vec![missing(1500)]) }];
    all.push(Message::NoFit(Arc::new(NoFit { pod_sets, misfits, lexicon: names.lexicon() })));
    let of_job = MetaDetails { labels: [(JOB_UID_LABEL.to_owned(), "j".to_owned())].into(), ..MetaDetails::default() };
    let for_job = Preemption { preemptor_details: of_job.into(), ..preemption_of(names, "a", 0) };
    all.push(Message::Preempted(Arc::new(for_job)));
    all.push(Message::PreemptedFor(preemption(names, "a", 0)));
    for blocker in [Blocker::Missing, Blocker::Inactive, Blocker::Gone, Blocker::Stopped] {
        all.extend([Queue::Local(name("q")), Queue::Cluster(name("q"))].map(|queue| Message::Blocked(queue, blocker)));
    }
    all
}

#[test]
fn two_messages_are_equal_if_they_read_the_same() {
    let (names, others) = (self::names(), self::names());
    for (n, message) in all(&names).iter().enumerate() {
        for (m, (again, elsewhere)) in all(&names).iter().zip(all(&others)).enumerate() {
            let reads_the_same = message.to_string() == again.to_string();
            assert_eq!((reads_the_same, message == again, *message == elsewhere), (n == m, n == m, n == m));
        }
        let text = Message::from(message.to_string());
        assert_eq!(format!("{message:?}"), format!("{:?}", message.to_string()));
        assert_eq!((message, &text), (&text, message));
        assert_ne!(*message, Message::from("something else"));
    }
}

#[test]
fn ids_of_another_engine_are_read_by_its_names() {
    let mut others = Names::default();
    let (flavor, cpu) = (others.flavors.intern("another"), others.resource("cpu"));
    others.flavor_resource(flavor, cpu);
    others.cohorts.intern("root");
    for queue in ["other", "cq"] {
        others.queue(queue);
    }
    let Message::NoFit(here) = no_fit(&names(), &[missing(1500)]) else { panic!("it is one") };
    let (pod_sets, misfits) = (here.pod_sets.clone(), here.misfits.clone());
    let there = NoFit { pod_sets, misfits, lexicon: others.lexicon() };
    assert_ne!(Message::NoFit(here), Message::NoFit(Arc::new(there)));
    let [here, there] = [&names(), &others].map(|names| Message::Preempted(preemption(names, "a", 0)));
    assert_ne!(here, there);
}

#[test]
fn messages_ignore_reason_order_fractions_of_seconds_and_most_labels() {
    let names = names();
    let (a, b) = (missing(1500), missing(2500));
    assert_eq!(no_fit(&names, &[a.clone(), b.clone()]), no_fit(&names, &[b, a]));
    let after = |wait_ns| Message::AdmittedBy { queue: "cq".into(), wait_ns };
    assert_eq!(after(0), after(1));
    let of_team = MetaDetails { labels: [("team".to_owned(), "t".to_owned())].into(), ..MetaDetails::default() };
    let for_team = Preemption { preemptor_details: of_team.into(), ..preemption_of(&names, "a", 0) };
    assert_eq!(Message::Preempted(Arc::new(for_team)), Message::Preempted(preemption(&names, "a", 0)));
}

#[test]
fn only_the_text_of_a_condition_is_cut() {
    let long = Message::GatedBy("x".repeat(2 * MAX_CONDITION_MESSAGE).into());
    let condition = Condition { message: long.clone(), ..Condition::default() };
    assert_eq!((condition.text().len(), long.text().len() > MAX_CONDITION_MESSAGE), (MAX_CONDITION_MESSAGE, true));
}

#[test]
fn only_byte_resources_print_in_binary_units() {
    let mut names = names();
    for (resource, text) in [("memory", "1Ki"), ("gpu", "1024"), ("cpu", "1024m")] {
        let id = names.resource(resource);
        let (fr, missing) = (names.flavor_resource(FlavorId(0), id), Amount::new(1024));
        let expected = format!("insufficient unused quota for {resource} in flavor rf, {text} more needed");
        assert_eq!(reason(&names.lexicon(), &Reason::Insufficient { fr, missing }), expected);
    }
}

#[test]
fn codes_print_kueues_texts() {
    let names = names();
    let words = [
        (
            no_fit(&names, &[missing(1500)]),
            "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor rf, 1500m more needed",
        ),
        (
            Message::PreemptedFor(preemption(&names, "a", 0)),
            "Preempted workload ns/old (UID: old-uid) in ClusterQueue other; preemptor effective priority: 7 (base: 5, boost: 2); \
             preemptee effective priority: 0 (base: 0, boost: 0)",
        ),
        (
            Message::Preempted(preemption(&names, "a", 0)),
            "Preempted to accommodate a workload (UID: a, JobUID: UNKNOWN) due to reclamation within the cohort; preemptor path: \
             /root/cq; preemptee path: /root/other",
        ),
    ];
    for (message, text) in words {
        assert_eq!(message.to_string(), text);
    }
}
