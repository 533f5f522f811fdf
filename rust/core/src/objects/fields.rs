//! How values are read and written whose form is not that of their type.
//!
//! The types of this room derive the rest from their fields. They rely on readers that take null as absent and on
//! writers that leave out what is empty, as those of `kueuecore-wire` do; [`always`] writes a field even so. Values
//! that are only passed through, or compared, are kept as text: see [`WHOLE`].

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::base::quantity::Quantity;
use crate::base::shared::Shared;
use crate::base::text::Text;

/// The newtype struct that stands for any value as canonical text: a reader gives a sequence of this text, which is
/// empty for an empty value, and the value; a writer takes the text.
pub const WHOLE: &str = "kueuecore::Whole";

/// Reads text.
pub(super) fn read_text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: impl FnOnce(&str) -> T,
) -> Result<T, D::Error> {
    struct Read<F>(F);
    impl<T, F: FnOnce(&str) -> T> Visitor<'_> for Read<F> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            Ok((self.0)(text))
        }
    }
    deserializer.deserialize_str(Read(read))
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer, Text::copied)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Shared::from)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

/// A string or a plain number.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }
            fn visit_none<E>(self) -> Result<Quantity, E> {
                Ok(Quantity::default())
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
        deserializer.deserialize_any(Text)
    }
}

/// A resource list: the error for another shape names what it maps.
#[derive(Default)]
struct Listed(BTreeMap<String, Quantity>);

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Listed;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of resource names to quantities")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Listed, A::Error> {
                let mut entries = BTreeMap::new();
                while let Some((name, quantity)) = map.next_entry()? {
                    entries.insert(name, quantity);
                }
                Ok(Listed(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Reads a resource list.
///
/// # Errors
/// It has another shape, or one of its values is not a quantity.
pub fn resources<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Quantity>, D::Error> {
    Listed::deserialize(deserializer).map(|listed| listed.0)
}

/// Reads a resource list that may be absent, which differs from empty.
///
/// # Errors
/// As [`resources`].
pub fn maybe_resources<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, Quantity>>, D::Error> {
    Ok(Option::<Listed>::deserialize(deserializer)?.map(|listed| listed.0))
}

/// Reads `overhead` of a RuntimeClass.
pub(super) fn pod_fixed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Quantity>, D::Error> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Overhead {
        #[serde(rename = "podFixed")]
        pod_fixed: Listed,
    }
    Overhead::deserialize(deserializer).map(|overhead| overhead.pod_fixed.0)
}

/// Writes a value even if it is empty.
pub(super) fn always<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_some(value)
}

/// Is there any value?
pub(super) fn presence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::<de::IgnoredAny>::deserialize(deserializer).map(|value| value.is_some())
}

/// `None` is an empty list, and an empty list `None`.
pub(super) mod unless_empty {
    use super::*;

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        list: &Option<Shared<Vec<T>>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(list.as_deref().into_iter().flatten())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<Option<Shared<Vec<T>>>, D::Error> {
        Vec::deserialize(deserializer).map(|list| Some(list).filter(|list| !list.is_empty()).map(Shared::from))
    }
}

/// `restartPolicy` of a container: is it `Always`?
pub(super) mod is_always {
    use super::*;

    const ALWAYS: &str = "Always";

    pub(crate) fn serialize<S: Serializer>(is_always: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if *is_always { ALWAYS } else { "" })
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        read_text(deserializer, |text| text == ALWAYS)
    }
}

/// An object of which only one field counts.
macro_rules! only_field {
    ($($module:ident = $field:literal;)*) => {$(
        pub(super) mod $module {
            use super::*;

            #[derive(Serialize, Deserialize)]
            struct Only<T> {
                #[serde(rename = $field, default, bound(deserialize = "T: Deserialize<'de> + Default"))]
                value: T,
            }

            pub(crate) fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
                Only { value }.serialize(serializer)
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
                deserializer: D,
            ) -> Result<T, D::Error> {
                Only::deserialize(deserializer).map(|only| only.value)
            }
        }
    )*};
}

only_field! {
    admission_checks = "admissionChecks";
    admission_mode = "admissionMode";
    evictions = "evictions";
    weight = "weight";
}

/// `admissionScope`: is usage what its admission mode asks for?
pub(super) mod admission_scope {
    use super::*;

    const USAGE_BASED: &str = "UsageBasedAdmissionFairSharing";

    pub(crate) fn serialize<S: Serializer>(is_usage_based: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        admission_mode::serialize(if *is_usage_based { &USAGE_BASED } else { &"" }, serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        admission_mode::deserialize(deserializer).map(|mode: Text| &*mode == USAGE_BASED)
    }
}

/// A list of objects of which only one text counts.
macro_rules! only_text_of_each {
    ($($module:ident = $field:literal;)*) => {$(
        pub mod $module {
            //! A list of objects of which only this text counts.

            use super::*;

            #[derive(Serialize, Deserialize, Default)]
            #[serde(default)]
            struct Only<T> {
                #[serde(rename = $field, serialize_with = "always", bound(serialize = "T: Serialize"))]
                text: T,
            }

            pub(crate) fn serialize<S: Serializer>(texts: &[String], serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(texts.iter().map(|text| Only { text }))
            }

            /// Reads the list.
            ///
            /// # Errors
            /// It has another shape.
            pub fn deserialize<'de, D: Deserializer<'de>, T: From<Vec<String>>>(
                deserializer: D,
            ) -> Result<T, D::Error> {
                let texts = Vec::<Only<String>>::deserialize(deserializer)?;
                Ok(texts.into_iter().map(|only| only.text).collect::<Vec<_>>().into())
            }
        }
    )*};
}

only_text_of_each! {
    names = "name";
    node_labels = "nodeLabel";
}

/// Any value, kept as text.
pub(super) mod as_text {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(WHOLE, text)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        whole::<D, de::IgnoredAny>(deserializer).map(|(text, _)| text)
    }
}

/// Reads a part of a [`whole`]; one of another shape counts as absent.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(T::deserialize(deserializer).unwrap_or_default())
}

/// Reads a value as text and as what it says.
pub(super) fn whole<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<(String, T), D::Error> {
    struct Both<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Both<T> {
        type Value = (String, T);
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value, as text and as it is")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut both: A) -> Result<(String, T), A::Error> {
            let missing = || de::Error::invalid_length(0, &self);
            let text = both.next_element()?.ok_or_else(missing)?;
            let value = both.next_element()?.ok_or_else(missing)?;
            Ok((text, value))
        }
    }
    deserializer.deserialize_newtype_struct(WHOLE, Both(PhantomData))
}
