//! Fast path for objects as API servers write them: version and kind come first, so the rest is read in the same pass.
//! Anything else fails here and takes the slow path.

use std::fmt;
use std::marker::PhantomData;

use kueuecore::base::changes::Changes;
use kueuecore::base::releases::Release;
use kueuecore::objects::Object;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor,
};

use super::outline::Text;
use super::{Source, find_kind, object};
use crate::kinds::is_read_as_it_is;
use crate::shaped::Shaped;

/// An object of a kind that is read, of its preferred version.
pub(super) struct Direct(pub Object);

impl<'de> Deserialize<'de> for Direct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByKind)
    }
}

struct ByKind;

impl<'de> Visitor<'de> for ByKind {
    type Value = Direct;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Direct, A::Error> {
        let (mut api_version, mut kind) = (None, None);
        while api_version.is_none() || kind.is_none() {
            let place = match map.next_key()? {
                Some(Text(key)) if key == "apiVersion" && api_version.is_none() => &mut api_version,
                Some(Text(key)) if key == "kind" && kind.is_none() => &mut kind,
                _ => return Err(A::Error::custom("version and kind do not come first")),
            };
            *place = Some(map.next_value::<Text<'de>>()?.0);
        }
        let (api_version, kind) = (api_version.unwrap_or_default(), kind.unwrap_or_default());
        // Which kinds there are depends on the release, which is unknown here: new ones take the slow path.
        match find_kind(&api_version, &kind, Changes::of(Release::DEVELOPMENT)) {
            Ok(Some(found)) if is_read_as_it_is(found, &api_version) => {
                object(found, Rest(map, PhantomData)).map(Direct)
            }
            _ => Err(A::Error::custom("not a kind that is read as it is")),
        }
    }
}

/// The fields after version and kind, neither of which may occur again.
struct Rest<'de, A>(A, PhantomData<&'de ()>);

impl<'de, A: MapAccess<'de>> Source for Rest<'de, A> {
    type Error = A::Error;

    fn read<W: DeserializeOwned>(self) -> Result<W, A::Error> {
        Shaped::<W>::deserialize(MapAccessDeserializer::new(self)).map(|shaped| shaped.0)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<'de, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        match self.0.next_key()? {
            None => Ok(None),
            Some(Text(key)) if matches!(&*key, "apiVersion" | "kind" | "items") => {
                Err(A::Error::custom("unexpected apiVersion, kind or items"))
            }
            Some(Text(key)) => seed.deserialize(key.into_deserializer()).map(Some),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}
