//! A modified save with a valid checksum: loading it fails, or gives an engine that works.

use kueuecore::base::ids::WorkloadId;
use kueuecore::engine::Engine;
use kueuecore::objects::{Kind, Object, Time};

use crate::histories::engine_of;
use crate::observe::observe;

/// This many bytes describe the changes, four bytes each.
const N_CHANGED: usize = 16;

/// Panics if a modified save does harm.
pub fn snapshots(data: &[u8]) {
    let (changes, history) = data.split_at(data.len().min(N_CHANGED));
    let mut saved = engine_of(history).save(b"");
    let begins_at = saved.len() - payload_length(&saved);
    for change in changes.chunks_exact(4) {
        let place = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize;
        let n_bytes = saved.len() - begins_at;
        saved[begins_at + place % n_bytes] ^= change[3];
    }
    seal(&mut saved, begins_at);
    attempt(&saved);
}

/// The same for each byte of a save in turn.
pub fn each_byte(history: &[u8], changes: &[u8]) {
    let saved = engine_of(history).save(b"");
    let begins_at = saved.len() - payload_length(&saved);
    for place in begins_at..saved.len() {
        for change in changes {
            let mut changed = saved.clone();
            changed[place] ^= change;
            seal(&mut changed, begins_at);
            attempt(&changed);
        }
    }
    for length in 0..saved.len() {
        let cut = &saved[..length];
        assert!(Engine::load(cut).is_err(), "a save that is cut is loaded");
        if length > begins_at {
            let mut cut = cut.to_vec();
            let n_bytes = (length - begins_at) as u64;
            cut[begins_at - 12..begins_at - 4].copy_from_slice(&n_bytes.to_le_bytes());
            seal(&mut cut, begins_at);
            assert!(Engine::load(&cut).is_err(), "a save that is cut is loaded, once its header says so");
        }
    }
}

/// The length of the payload, from the last field of the header before the checksum.
fn payload_length(saved: &[u8]) -> usize {
    let line = saved.iter().position(|byte| *byte == b'\n').expect("the line of the format");
    let version = usize::from(saved[line + 1]);
    let length = &saved[line + 2 + version..][..8];
    u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize
}

fn seal(saved: &mut [u8], begins_at: usize) {
    let checksum = crc32fast::hash(&saved[begins_at..]);
    saved[begins_at - 4..begins_at].copy_from_slice(&checksum.to_le_bytes());
}

fn attempt(saved: &[u8]) {
    let Ok((mut engine, note)) = Engine::load(saved) else { return };
    let again = engine.save(&note);
    let (mut loaded, _) = Engine::load(&again).unwrap_or_else(|error| panic!("what was loaded is not: {error}"));
    assert!(loaded.save(&note) == again, "what is loaded is saved in other bytes");
    ask(&mut engine);
}

/// Calls everything that an engine can be asked.
fn ask(engine: &mut Engine) {
    let now = Time(1_767_300_000_000_000_000);
    let _ = observe(engine);
    let mut copy = engine.fork();
    for engine in [&mut copy, engine] {
        let all: Vec<WorkloadId> = engine.state.workloads.iter().map(|(id, _)| id).collect();
        engine.state.next_wake(now);
        engine.cycle(now);
        engine.take_written();
        engine.take_changed_queues();
        engine.reconcile(now);
        engine.cycle(now);
        for (index, id) in all.iter().enumerate() {
            match index % 5 {
                0 => _ = engine.finish(*id, "JobFinished", "done", now),
                1 => _ = engine.evict(*id, "Preempted", "moved", now),
                2 => _ = engine.release(*id, now),
                3 => _ = engine.forget(*id, false, now),
                _ => _ = engine.note_readiness(*id, true, now),
            }
        }
        engine.cycle(now);
        for id in all {
            let workload = engine.state.workload_object(id);
            engine.apply(vec![Object::Workload(Box::new(workload))], now);
        }
        engine.cycle(now);
        engine.reconcile(now);
        let _ = observe(engine);
        for kind in [Kind::LocalQueue, Kind::ClusterQueue, Kind::Cohort] {
            delete_all(engine, kind, now);
            engine.cycle(now);
            engine.reconcile(now);
        }
        delete_all(engine, Kind::Workload, now);
        let _ = observe(engine);
        engine.save(b"");
    }
}

fn delete_all(engine: &mut Engine, kind: Kind, now: Time) {
    let names = &engine.state.names;
    let named: Vec<(String, String)> = match kind {
        Kind::LocalQueue => names.local_queues.iter().map(|(ns, name)| (ns.clone(), name.to_string())).collect(),
        Kind::ClusterQueue => names.queues.iter().map(|name| (String::new(), name.to_string())).collect(),
        Kind::Cohort => names.cohorts.iter().map(|name| (String::new(), name.clone())).collect(),
        _ => {
            let keys = engine.state.workloads.iter().map(|(_, record)| record.key());
            keys.map(|key| (key.namespace().to_owned(), key.name().to_owned())).collect()
        }
    };
    for (namespace, name) in named {
        engine.delete(kind, &namespace, &name, now);
    }
}
