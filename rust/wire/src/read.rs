//! Helpers for typed reading: null is absent, lists and maps of our own types, quantities, times.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use kueuecore::base::quantity::Quantity;
use kueuecore::objects::{ResourceList, Time};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::shaped::Shaped;
use crate::time::parse_time;

/// A value whose null means its default, as everywhere in Kubernetes.
pub(crate) fn nil<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<Shaped<T>>::deserialize(deserializer)?.map(|shaped| shaped.0).unwrap_or_default())
}

/// An optional part, converted to the core's type.
pub(crate) fn maybe<'de, D, W, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    W: Deserialize<'de>,
    T: From<W>,
{
    Ok(Option::<Shaped<W>>::deserialize(deserializer)?.map(|shaped| T::from(shaped.0)))
}

/// A part that defaults when absent, converted to the core's type.
pub(crate) fn part<'de, D, W, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    W: Deserialize<'de>,
    T: From<W> + Default,
{
    Ok(maybe::<D, W, T>(deserializer)?.unwrap_or_default())
}

/// A list, each entry converted to the core's type.
pub(crate) fn list<'de, D, W, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    W: Deserialize<'de>,
    T: From<W>,
{
    Ok(Option::<Converted<W, T>>::deserialize(deserializer)?.map(|list| list.items).unwrap_or_default())
}

struct Converted<W, T> {
    items: Vec<T>,
    from: PhantomData<W>,
}

impl<'de, W: Deserialize<'de>, T: From<W>> Deserialize<'de> for Converted<W, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<W, T>(PhantomData<(W, T)>);
        impl<'de, W: Deserialize<'de>, T: From<W>> Visitor<'de> for Items<W, T> {
            type Value = Vec<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element::<Shaped<W>>()? {
                    items.push(T::from(item.0));
                }
                Ok(items)
            }
        }
        Ok(Self { items: deserializer.deserialize_seq(Items(PhantomData))?, from: PhantomData })
    }
}

/// A quantity, written as a string or as a plain number.
pub(crate) struct QuantityText(pub(crate) Quantity);

impl From<QuantityText> for Quantity {
    fn from(text: QuantityText) -> Self {
        text.0
    }
}

impl<'de> Deserialize<'de> for QuantityText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                Quantity::parse(text).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Text).map(QuantityText)
    }
}

/// An optional quantity.
pub(crate) fn quantity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Quantity>, D::Error> {
    maybe::<D, QuantityText, Quantity>(deserializer)
}

/// A resource list.
pub(crate) fn resources<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ResourceList, D::Error> {
    Ok(maybe_resources(deserializer)?.unwrap_or_default())
}

/// A resource list on its own.
pub(crate) struct Resources(pub(crate) ResourceList);

impl<'de> Deserialize<'de> for Resources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        resources(deserializer).map(Resources)
    }
}

/// A resource list that may be absent, which differs from empty.
pub(crate) fn maybe_resources<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ResourceList>, D::Error> {
    struct Entries(ResourceList);
    impl<'de> Deserialize<'de> for Entries {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(EntriesVisitor).map(Entries)
        }
    }
    struct EntriesVisitor;
    impl<'de> Visitor<'de> for EntriesVisitor {
        type Value = ResourceList;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of resource names to quantities")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResourceList, A::Error> {
            let mut entries = BTreeMap::new();
            while let Some((name, quantity)) = map.next_entry::<String, QuantityText>()? {
                entries.insert(name, quantity.0);
            }
            Ok(entries)
        }
    }
    Ok(Option::<Entries>::deserialize(deserializer)?.map(|entries| entries.0))
}

/// An optional time.
pub(crate) fn maybe_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = Stamp;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a time such as 2026-01-01T00:00:00Z")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Stamp, E> {
            parse_time(text).map(Stamp).ok_or_else(|| E::custom("must be a time such as 2026-01-01T00:00:00Z"))
        }
    }
    struct Stamp(Time);
    impl<'de> Deserialize<'de> for Stamp {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_str(Text)
        }
    }
    Ok(Option::<Stamp>::deserialize(deserializer)?.map(|stamp| stamp.0))
}

/// A time; absent gives [`Time::ABSENT`].
pub(crate) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    Ok(maybe_time(deserializer)?.unwrap_or(Time::ABSENT))
}

/// Any JSON as compact text with sorted keys; empty when absent, null, or an empty list or object.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(canonical(&Value::deserialize(deserializer)?))
}

/// Compact text with sorted keys (serde_json's own map is sorted); empty for nothing.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    }
}
