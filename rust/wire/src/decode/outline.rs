//! What must be known of an object before reading it, collected on a first pass over its text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// One JSON value of a batch, by its shape. Only invalid JSON is an error here, so that one odd object does not hide
/// the objects after it.
pub(super) enum Item<'a> {
    Object(Outline<'a>),
    List,
    Other,
}

/// The fields that identify an object.
#[derive(Default)]
pub(super) struct Outline<'a> {
    api_version: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    pub metadata: Option<&'a RawValue>,
    pub items: Option<&'a RawValue>,
    /// One of them that occurs twice.
    twice: Option<&'static str>,
}

/// Version and kind of an object.
pub(super) type Identity<'a> = (Option<Cow<'a, str>>, Option<Cow<'a, str>>);

impl<'a> Outline<'a> {
    /// The version and the kind, if present.
    ///
    /// # Errors
    /// serde's message for a field that is not text, or that occurs twice.
    pub fn identity(&self) -> Result<Identity<'a>, String> {
        match self.twice {
            Some(field) => Err(format!("duplicate field `{field}`")),
            None => Ok((text(self.api_version)?, text(self.kind)?)),
        }
    }
}

fn text(raw: Option<&RawValue>) -> Result<Option<Cow<'_, str>>, String> {
    let Some(raw) = raw else { return Ok(None) };
    let text: Option<Text<'_>> = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    Ok(text.map(|text| text.0))
}

/// Text, copied only if it contains escapes.
#[derive(Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Field {
    ApiVersion,
    Kind,
    Metadata,
    Items,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Item<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ByShape)
    }
}

struct ByShape;

impl<'de> Visitor<'de> for ByShape {
    type Value = Item<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item<'de>, A::Error> {
        let mut outline = Outline::default();
        while let Some(field) = map.next_key()? {
            let (place, name) = match field {
                Field::ApiVersion => (&mut outline.api_version, "apiVersion"),
                Field::Kind => (&mut outline.kind, "kind"),
                Field::Metadata => (&mut outline.metadata, "metadata"),
                Field::Items => (&mut outline.items, "items"),
                Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if place.replace(map.next_value()?).is_some() {
                outline.twice.get_or_insert(name);
            }
        }
        Ok(Item::Object(outline))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Item<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Item::List)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Item<'de>, E> {
        Ok(Item::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Item<'de>, E> {
        Ok(Item::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Item<'de>, E> {
        Ok(Item::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Item<'de>, E> {
        Ok(Item::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Item<'de>, E> {
        Ok(Item::Other)
    }

    fn visit_unit<E>(self) -> Result<Item<'de>, E> {
        Ok(Item::Other)
    }
}
