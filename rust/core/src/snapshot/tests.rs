use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::base::names::Names;
use crate::base::quantity::Quantity;
use crate::objects::Time;

const WORDS: [&[&str]; 1] = [&["InClusterQueue"]];

/// The bytes of a value without names, and the value read from them.
fn through<T: Stored>(value: &T) -> (Vec<u8>, Result<T, Damage>) {
    let names = Names::default();
    let mut out = Writer::new(&names);
    value.write_to(&mut out);
    let bytes = out.finish();
    let read = read(&bytes);
    (bytes, read)
}

fn read<T: Stored>(bytes: &[u8]) -> Result<T, Damage> {
    let mut from = Reader::new(bytes, 100, &WORDS)?;
    from.fill::<std::sync::Arc<str>>()?;
    for _ in 1..Pool::COUNT {
        let n = from.count()?;
        from.check(n == 0, "there are texts only")?;
    }
    let value = T::read_from(&mut from)?;
    from.end()?;
    Ok(value)
}

#[test]
fn values_are_read_as_they_were_written() {
    for number in [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN] {
        assert_eq!(through(&number).1, Ok(number));
        assert_eq!(through(&Time(number)).1, Ok(Time(number)));
    }
    for number in [0, 127, 128, u64::MAX] {
        assert_eq!(through(&number).1, Ok(number));
    }
    for text in ["", "500m", "1.500", "1Gi", "12e6", "3000m", "9223372036854775807", "-1n"] {
        let quantity = if text.is_empty() { Quantity::default() } else { text.parse().expect("a quantity") };
        let read = through(&quantity).1.expect("a quantity");
        assert_eq!((read.parts(), &read), (quantity.parts(), &quantity));
    }
    let map = BTreeMap::from([("a".to_owned(), Some(vec![true, false])), ("\u{e9}".to_owned(), None)]);
    assert_eq!(through(&map).1, Ok(map));
    assert_eq!(through(&f64::NEG_INFINITY).1, Ok(f64::NEG_INFINITY));
    assert_eq!(through(&"InClusterQueue").1, Ok("InClusterQueue"));
}

#[test]
fn times_in_whole_seconds_are_short() {
    let length = |time| through(&Time(time)).0.len();
    let empty = through(&Vec::<bool>::new()).0.len() - 1;
    assert_eq!([1_767_225_600_000_000_000, 1_767_225_600_000_000_001].map(|at| length(at) - empty), [5, 9]);
}

#[test]
fn invalid_bytes_are_rejected_with_their_offset() {
    let (bytes, _) = through(&BTreeSet::from([3u32, 5]));
    let last = bytes.len() - 1;
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        read::<BTreeSet<u32>>(&bytes).expect_err("no set").to_string()
    };
    assert_eq!(changed(last, 3), format!("byte {}: a set that is not in order", 101 + last));
    assert_eq!(changed(last - 2, 9), format!("byte {}: 9 items should follow in 2 bytes", 99 + last));
    assert_eq!(changed(last, 0x85), format!("byte {}: it ends here", 101 + last));
    let needless = [&bytes[..last], &[0x85, 0]].concat();
    assert!(read::<BTreeSet<u32>>(&needless).is_err(), "each number is written in one way");
    assert!(through(&"no word of ours").1.is_err());
    assert!(read::<u32>(&[&bytes[..last - 2], &[0x80, 0x80, 0x80, 0x80, 0x10]].concat()).is_err());
}
