use super::*;
use crate::objects::config::Config;
use crate::objects::{Kind, Workload};
use crate::status::readiness::note_readiness;
use crate::testing::{World, workload};

/// Saves an engine, and loads it from the bytes.
fn reload(engine: &mut Engine) -> Engine {
    let saved = engine.save(b"");
    let (mut loaded, _) = Engine::load(&saved).unwrap_or_else(|error| panic!("{error}"));
    assert!(loaded.save(b"") == saved, "what is loaded is saved in other bytes");
    loaded
}

/// A world with a workload that has quota and one that waits.
fn world() -> World {
    let mut world = World::new(Config::default());
    world.submit(workload("a", "6"));
    world.submit(workload("b", "6"));
    world.cycle();
    world.reconcile();
    world
}

/// Its cycle waits with `b` for the pods of `a`.
fn waiting_world() -> World {
    let mut world = World::where_pods_block();
    assert_eq!(world.cycle().waits_for_pods.map(|key| key.name().to_owned()).as_deref(), Some("b"));
    world
}

/// Everything that two cycles decide, once the pods of `a` are ready.
fn goes_on(mut world: World, between: impl Fn(&mut World)) -> (String, Vec<u8>) {
    between(&mut world);
    let now = world.now;
    world.change("a", |workload| assert!(note_readiness(workload, true, None, now)));
    let decided = format!("{:?} {:?}", world.cycle(), world.cycle());
    (decided, world.engine.save(b""))
}

#[test]
fn a_waiting_cycle_continues_after_loading() {
    let replace = |world: &mut World| {
        world.delete(Kind::Workload, "b");
        world.submit(Workload { queue_name: "b".into(), ..workload("b", "4") });
    };
    // A workload with the same name and UID is another one: it is not admitted in place of the waiting one.
    for between in [&(|_: &mut World| ()) as &dyn Fn(&mut World), &replace] {
        let expected = goes_on(waiting_world(), between);
        for is_before in [true, false] {
            let mut world = waiting_world();
            let loads = |world: &mut World, now: bool| {
                if now {
                    world.engine = reload(&mut world.engine);
                }
            };
            loads(&mut world, is_before);
            let found = goes_on(world, |world| {
                between(world);
                loads(world, !is_before);
            });
            assert_eq!(found, expected);
        }
    }
}

/// Both tables then renumber their pod sets, and give the first number to the requests of `b`: one to those from when
/// its cycle began, the other to the current ones.
#[test]
fn a_head_changed_before_its_waiting_cycle_was_loaded_is_charged_its_new_requests() {
    let mut world = waiting_world();
    world.delete(Kind::Workload, "a");
    world.change("b", |workload| {
        let mut pod_sets = workload.pod_sets.to_vec();
        pod_sets[0].count = 0;
        workload.pod_sets = pod_sets.into();
    });
    world.engine = reload(&mut world.engine);
    assert_eq!(world.cycle().admissions[0].key.name(), "b");
    let record = world.engine.state.workloads.get(world.id("b"));
    assert_eq!((record.totals[0].count, record.totals[0].requests[0].1), (0, 0));
}

#[test]
fn shared_parts_are_shared_again_after_loading() {
    let mut world = World::new(Config::default());
    for n in 0..100 {
        world.submit(workload(&format!("w{n}"), "1m"));
    }
    let loaded = reload(&mut world.engine);
    let mut all = loaded.state.workloads.iter().map(|(_, record)| record);
    let first = all.next().expect("a hundred");
    assert!(
        all.all(
            |it| std::sync::Arc::ptr_eq(&it.spec, &first.spec) && it.workload.status.is_same(&first.workload.status)
        )
    );
    let size = |n: usize| {
        let mut world = World::new(Config::default());
        (0..n).for_each(|n| world.submit(workload(&format!("w{n:03}"), "1m")));
        world.engine.save(b"").len()
    };
    assert!(size(200) - size(100) < 100 * 50, "{} bytes", size(200) - size(100));
}

#[test]
fn an_invalid_save_is_refused_with_cause_and_remedy() {
    let saved = world().engine.save(b"");
    let refused = |bytes: &[u8]| Engine::load(bytes).expect_err("no save").to_string();
    let foreign = "this is not a saved engine: give load() the bytes that save() returned";
    assert_eq!([&b""[..], b"x", b"{}", &saved[..9], &saved[1..]].map(refused), [foreign; 5]);
    let after = saved.len() - FORMAT.n_header();
    let short = format!(
        "this is not a whole save: {after} bytes follow its header, but {} are there; take another copy of it",
        after - 1
    );
    assert_eq!(refused(&saved[..saved.len() - 1]), short);
    let mut other = saved.clone();
    other[FORMAT.kind.len()] = b'9';
    let format = "this was saved as \"kueuecore.engine/9\", and only \"kueuecore.engine/8\" can be read: load it with the version \
                  that saved it";
    assert_eq!(refused(&other), format);
    other.clone_from(&saved);
    other[FORMAT.line.len() + 1] = b'9';
    assert!(refused(&other).starts_with("this was saved by kueuecore 9"), "{}", refused(&other));
    other.clone_from(&saved);
    other[saved.len() / 2] ^= 4;
    assert_eq!(refused(&other), "this is a damaged save: its checksum does not match; take another copy of it");
}

/// A change of the format needs a new format number, and the new checksum here.
#[test]
fn the_bytes_of_a_save_format_do_not_change() {
    let payload = |mut engine: Engine| crc32fast::hash(&engine.save(b"")[FORMAT.n_header()..]);
    let found = (FORMAT.line.trim_end(), payload(world().engine), payload(waiting_world().engine));
    assert_eq!(found, ("kueuecore.engine/8", 3_735_016_516, 3_255_186_346));
}
