//! JSON as Kubernetes reads it: a field that is null is absent, and an object is an object: derived readers would also
//! take a list of the fields in order, which no API server does.
//!
//! Values that the core only passes through become text here: see [`WHOLE`].

use std::fmt;
use std::iter::empty;
use std::marker::PhantomData;

use kueuecore::objects::fields::WHOLE;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

/// Reads a value and all its parts in this way; it must be an object if it is a struct.
pub(crate) struct Shaped<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shaped<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(Json::<D, false>(deserializer)).map(Shaped)
    }
}

/// A value. Only that of a field may be null: it is then read as the empty value of its type.
struct Json<D, const IS_FIELD: bool>(D);

/// What is expected of a value. A type and not a variant, so that each reader is compiled for its own shape alone.
trait Shape {
    /// Reads a value that is not null.
    fn read<'de, D: Deserializer<'de>, V: Visitor<'de>>(inner: D, visitor: V) -> Result<V::Value, D::Error>;

    /// Reads null.
    fn empty<'de, V: Visitor<'de>, E: Error>(visitor: V) -> Result<V::Value, E>;
}

macro_rules! shapes {
    ($($shape:ident: |$inner:ident, $visitor:ident| $read:expr, $empty:expr;)*) => {$(
        struct $shape;

        impl Shape for $shape {
            fn read<'de, D: Deserializer<'de>, V: Visitor<'de>>($inner: D, $visitor: V) -> Result<V::Value, D::Error> {
                $read
            }

            fn empty<'de, V: Visitor<'de>, E: Error>($visitor: V) -> Result<V::Value, E> {
                $empty
            }
        }
    )*};
}

shapes! {
    Any: |inner, visitor| inner.deserialize_any(visitor), visitor.visit_none();
    Boolean: |inner, visitor| inner.deserialize_bool(visitor), visitor.visit_bool(false);
    Int32: |inner, visitor| inner.deserialize_i32(visitor), visitor.visit_i64(0);
    Int64: |inner, visitor| inner.deserialize_i64(visitor), visitor.visit_i64(0);
    Text: |inner, visitor| inner.deserialize_str(visitor), visitor.visit_str("");
    Optional: |inner, visitor| visitor.visit_some(Json::<D, false>(inner)), visitor.visit_none();
    List: |inner, visitor| inner.deserialize_seq(OfParts::<V, false>(visitor)),
        visitor.visit_seq(SeqDeserializer::new(empty::<()>()));
    Entries: |inner, visitor| inner.deserialize_map(OfParts::<V, false>(visitor)),
        visitor.visit_map(MapDeserializer::new(empty::<((), ())>()));
    Fields: |inner, visitor| inner.deserialize_map(OfParts::<V, true>(visitor)),
        visitor.visit_map(MapDeserializer::new(empty::<((), ())>()));
}

macro_rules! read_as {
    ($($method:ident: $shape:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.read::<$shape, V>(visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>, const IS_FIELD: bool> Json<D, IS_FIELD> {
    fn read<S: Shape, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        if IS_FIELD { self.0.deserialize_option(OrNull(visitor, PhantomData::<S>)) } else { S::read(self.0, visitor) }
    }
}

impl<'de, D: Deserializer<'de>, const IS_FIELD: bool> Deserializer<'de> for Json<D, IS_FIELD> {
    type Error = D::Error;

    read_as! {
        deserialize_any: Any;
        deserialize_bool: Boolean;
        deserialize_i32: Int32;
        deserialize_i64: Int64;
        deserialize_str: Text;
        deserialize_string: Text;
        deserialize_seq: List;
        deserialize_map: Entries;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(OrNull(visitor, PhantomData::<Optional>))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.read::<Fields, V>(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        if name != WHOLE {
            return visitor.visit_newtype_struct(self);
        }
        let value = Value::deserialize(self.0)?;
        visitor.visit_seq(Both { text: Some(canonical(&value)), value, error: PhantomData })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_ignored_any(visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
    }
}

/// A visitor of a value of this shape, or of null.
struct OrNull<V, S>(V, PhantomData<S>);

impl<'de, V: Visitor<'de>, S: Shape> Visitor<'de> for OrNull<V, S> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        S::read(inner, self.0)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        S::empty(self.0)
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        S::empty(self.0)
    }
}

/// The parts of a list or a map, or the fields of a struct; and a visitor or a seed of them.
struct OfParts<T, const ARE_FIELDS: bool>(T);

impl<'de, V: Visitor<'de>, const ARE_FIELDS: bool> Visitor<'de> for OfParts<V, ARE_FIELDS> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if ARE_FIELDS { f.write_str("an object") } else { self.0.expecting(f) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(OfParts::<A, ARE_FIELDS>(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(OfParts::<A, ARE_FIELDS>(entries))
    }
}

impl<'de, A: SeqAccess<'de>, const ARE_FIELDS: bool> SeqAccess<'de> for OfParts<A, ARE_FIELDS> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(OfParts::<T, ARE_FIELDS>(seed))
    }
}

impl<'de, A: MapAccess<'de>, const ARE_FIELDS: bool> MapAccess<'de> for OfParts<A, ARE_FIELDS> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(OfParts::<T, ARE_FIELDS>(seed))
    }
}

impl<'de, T: DeserializeSeed<'de>, const ARE_FIELDS: bool> DeserializeSeed<'de> for OfParts<T, ARE_FIELDS> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<T::Value, D::Error> {
        self.0.deserialize(Json::<D, ARE_FIELDS>(inner))
    }
}

/// A value as text, and then as it is.
struct Both<E> {
    text: Option<String>,
    value: Value,
    error: PhantomData<E>,
}

impl<'de, E: Error> SeqAccess<'de> for Both<E> {
    type Error = E;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, E> {
        match self.text.take() {
            Some(text) => seed.deserialize(text.into_deserializer()).map(Some),
            None => OfParts::<T, true>(seed).deserialize(self.value.take()).map(Some).map_err(E::custom),
        }
    }
}

/// Compact text with sorted keys (serde_json's own map is sorted); empty for nothing.
fn canonical(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    }
}
