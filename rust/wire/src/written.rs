//! Values of the core as JSON, the way Go writes Kubernetes' objects: fields that are empty are left out.

use kueuecore::objects::fields::WHOLE;
use serde::ser::{Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};
use serde_json::{Error, Map, Value};

/// A value of the core as JSON, if only `{}`. A field without a name stands for its fields.
///
/// # Panics
/// If it has parts that JSON lacks, as no value of the core does.
pub(crate) fn written(value: &(impl Serialize + ?Sized)) -> Value {
    WHATEVER.write(value).expect("the core's values are texts, numbers, lists and structs")
}

const WHATEVER: Written = Written { even_if_empty: true };

/// Writes a value; nothing for an empty one, unless that is to be written, too.
#[derive(Clone, Copy)]
struct Written {
    even_if_empty: bool,
}

impl Written {
    fn write(self, value: &(impl Serialize + ?Sized)) -> Result<Value, Error> {
        Ok(value.serialize(self)?.unwrap_or_default())
    }

    fn unless(self, is_empty: bool, value: impl Into<Value>) -> Result<Option<Value>, Error> {
        Ok((self.even_if_empty || !is_empty).then(|| value.into()))
    }
}

/// Methods for what no value of the core consists of.
macro_rules! not_in_the_core {
    ($($method:ident($($of:ty),*): $result:ty;)*) => {$(
        fn $method(self, $(_: $of),*) -> Result<$result, Error> {
            Err(Error::custom(concat!("no value of the core is written by ", stringify!($method))))
        }
    )*};
}

type Never = Impossible<Option<Value>, Error>;

impl Serializer for Written {
    type Ok = Option<Value>;
    type Error = Error;
    type SerializeSeq = List;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Object;
    type SerializeStruct = Object;
    type SerializeStructVariant = Never;

    fn serialize_bool(self, value: bool) -> Result<Option<Value>, Error> {
        self.unless(!value, value)
    }

    fn serialize_i32(self, value: i32) -> Result<Option<Value>, Error> {
        self.unless(value == 0, value)
    }

    fn serialize_i64(self, value: i64) -> Result<Option<Value>, Error> {
        self.unless(value == 0, value)
    }

    fn serialize_str(self, value: &str) -> Result<Option<Value>, Error> {
        self.unless(value.is_empty(), value)
    }

    fn serialize_none(self) -> Result<Option<Value>, Error> {
        Ok(None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Option<Value>, Error> {
        value.serialize(WHATEVER)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Option<Value>, Error> {
        if name != WHOLE {
            return value.serialize(self);
        }
        let written = value.serialize(self)?;
        // Invalid JSON did not come from us and is left out.
        Ok(written.as_ref().and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok()))
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Self::SerializeSeq, Error> {
        Ok(List { of: self, items: Vec::new() })
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Object, Error> {
        Ok(Object { of: self, fields: Map::new(), key: String::new() })
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Object, Error> {
        self.serialize_map(None)
    }

    not_in_the_core! {
        serialize_i8(i8): Option<Value>;
        serialize_i16(i16): Option<Value>;
        serialize_u8(u8): Option<Value>;
        serialize_u16(u16): Option<Value>;
        serialize_u32(u32): Option<Value>;
        serialize_u64(u64): Option<Value>;
        serialize_f32(f32): Option<Value>;
        serialize_f64(f64): Option<Value>;
        serialize_char(char): Option<Value>;
        serialize_bytes(&[u8]): Option<Value>;
        serialize_unit(): Option<Value>;
        serialize_unit_struct(&'static str): Option<Value>;
        serialize_unit_variant(&'static str, u32, &'static str): Option<Value>;
        serialize_tuple(usize): Never;
        serialize_tuple_struct(&'static str, usize): Never;
        serialize_tuple_variant(&'static str, u32, &'static str, usize): Never;
        serialize_struct_variant(&'static str, u32, &'static str, usize): Never;
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        _value: &T,
    ) -> Result<Option<Value>, Error> {
        self.serialize_unit_variant(name, index, variant)
    }
}

struct List {
    of: Written,
    items: Vec<Value>,
}

impl SerializeSeq for List {
    type Ok = Option<Value>;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.items.push(WHATEVER.write(value)?);
        Ok(())
    }

    fn end(self) -> Result<Option<Value>, Error> {
        self.of.unless(self.items.is_empty(), self.items)
    }
}

/// A map, whose values are all written, or a struct.
struct Object {
    of: Written,
    fields: Map<String, Value>,
    key: String,
}

impl SerializeMap for Object {
    type Ok = Option<Value>;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = WHATEVER.write(key)?.as_str().map(str::to_owned).ok_or_else(|| Error::custom("a key is text"))?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.fields.insert(std::mem::take(&mut self.key), WHATEVER.write(value)?);
        Ok(())
    }

    fn end(self) -> Result<Option<Value>, Error> {
        self.of.unless(self.fields.is_empty(), self.fields)
    }
}

impl SerializeStruct for Object {
    type Ok = Option<Value>;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        match value.serialize(Written { even_if_empty: false })? {
            Some(Value::Object(fields)) if name.is_empty() => self.fields.extend(fields),
            Some(value) => {
                self.fields.insert(name.to_owned(), value);
            }
            None => {}
        }
        Ok(())
    }

    fn end(self) -> Result<Option<Value>, Error> {
        SerializeMap::end(self)
    }
}
