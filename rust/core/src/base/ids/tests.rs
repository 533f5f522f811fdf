use super::*;

#[test]
fn a_table_finds_items_in_every_piece() {
    let mut table: IdTable<WorkloadId, usize> = IdTable::default();
    for n in 0..2 * PIECE + 3 {
        assert_eq!((table.len(), table.push(n)), (n, WorkloadId::from_index(n)));
    }
    *table.ensure(WorkloadId::from_index(3 * PIECE)) = 7;
    table[WorkloadId::from_index(PIECE)] = 5;
    let at = |n: usize| table.get(WorkloadId::from_index(n)).copied();
    assert_eq!([at(0), at(PIECE - 1), at(PIECE)], [Some(0), Some(PIECE - 1), Some(5)]);
    assert_eq!(
        [at(2 * PIECE + 2), at(2 * PIECE + 3), at(3 * PIECE), at(3 * PIECE + 1)],
        [Some(2 * PIECE + 2), Some(0), Some(7), None]
    );
    assert!(table.iter().map(|(id, _)| id.index()).eq(0..=3 * PIECE));
}

#[test]
fn writes_do_not_reach_the_copies() {
    let mut table: IdTable<WorkloadId, usize> = IdTable::default();
    (0..3 * PIECE + 1).for_each(|n| assert_eq!(table.push(n).index(), n));
    let at = |table: &IdTable<_, _>, n| table.get(WorkloadId::from_index(n)).copied();
    let address = |table: &IdTable<_, usize>, n| &raw const table[WorkloadId::from_index(n)];
    table.share();
    let mut copy = table.clone();
    table[WorkloadId(1)] = 7;
    table.push(8);
    *table.ensure(WorkloadId::from_index(3 * PIECE + 2)) = 9;
    let seen = |table: &_| [1, 3 * PIECE, 3 * PIECE + 1, 3 * PIECE + 2].map(|n| at(table, n));
    assert_eq!(seen(&copy), [Some(1), Some(3 * PIECE), None, None]);
    assert_eq!(seen(&table), [Some(7), Some(3 * PIECE), Some(8), Some(9)]);
    assert_eq!(address(&copy, PIECE), address(&table, PIECE), "what nobody writes is shared");
    let shared = address(&table, PIECE);
    drop(table);
    copy[WorkloadId::from_index(PIECE + 1)] = 6;
    assert_eq!(address(&copy, PIECE), shared, "the last one who shares copies nothing");
    assert_eq!((at(&copy, PIECE + 1), at(&copy, PIECE + 2)), (Some(6), Some(PIECE + 2)));

    let mut names: Interner<QueueId, String> = Interner::default();
    assert!(names.is_empty());
    names.intern("a");
    assert!(!names.is_empty());
    let copy = names.clone();
    names.intern("a");
    assert!(Arc::ptr_eq(&copy.0, &names.0), "a name that is known writes nothing");
    names.intern("b");
    assert_eq!((copy.find("b"), names.find("b")), (None, Some(QueueId(1))));

    let mut pool: Pool<ShapeId, &str> = Pool::default();
    pool.id_of("a");
    let mut copy = pool.clone();
    assert_eq!((copy.id_of("b"), pool.id_of("c"), copy.id_of("c")), (ShapeId(1), ShapeId(1), ShapeId(2)));
    pool.retain(|_, _| false);
    assert_eq!((pool.len(), copy.len()), (0, 3));
}

#[test]
fn a_set_gives_its_ids_in_their_order() {
    let mut set = IdSet::default();
    let inserted = [70_000, 3, 65_536, 3].map(|n| set.insert(WorkloadId(n)));
    assert_eq!(inserted, [true, true, true, false]);
    assert_eq!([set.remove(WorkloadId(3)), set.remove(WorkloadId(4))], [true, false]);
    assert_eq!(set.iter().collect::<Vec<_>>(), [65_536, 70_000].map(WorkloadId));
    assert!(set.contains(WorkloadId(70_000)) && !set.contains(WorkloadId(3)));
}
