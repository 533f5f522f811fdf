//! The names, in the order of their ids.

use super::{Damage, Reader, Stored, Writer};
use crate::base::ids::{FlavorId, Id, ResourceId};
use crate::base::names::Names;
use crate::base::text::Text;

impl Stored for Names {
    fn write_to(&self, out: &mut Writer<'_>) {
        fn texts<'a>(out: &mut Writer<'_>, texts: impl Iterator<Item = &'a str>) {
            let texts: Vec<&str> = texts.collect();
            out.count(texts.len());
            texts.into_iter().for_each(|text| out.string(text));
        }
        texts(out, self.queues.iter().map(Text::as_str));
        texts(out, self.cohorts.iter().map(String::as_str));
        texts(out, self.flavors.iter().map(String::as_str));
        texts(out, self.namespaces.iter().map(String::as_str));
        texts(out, self.resources().map(String::as_str));
        out.count(self.local_queues.len());
        for (namespace, name) in self.local_queues.iter() {
            out.string(namespace);
            out.string(name);
        }
        out.count(self.n_flavor_resources());
        for (flavor, resource) in self.flavor_resources() {
            flavor.write_to(out);
            resource.write_to(out);
        }
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut names = Names::default();
        /// Checks that each name is new, so that its id is its index.
        fn is_new<I: Id>(from: &Reader<'_>, id: I, index: usize) -> Result<(), Damage> {
            from.check(id.index() == index, "a duplicate name")
        }
        for index in 0..from.count()? {
            let id = names.queue(&String::read_from(from)?);
            is_new(from, id, index)?;
        }
        for index in 0..from.count()? {
            let id = names.cohorts.intern(String::read_from(from)?.as_str());
            is_new(from, id, index)?;
        }
        for index in 0..from.count()? {
            let id = names.flavors.intern(String::read_from(from)?.as_str());
            is_new(from, id, index)?;
        }
        for index in 0..from.count()? {
            let id = names.namespaces.intern(String::read_from(from)?.as_str());
            is_new(from, id, index)?;
        }
        for index in 0..from.count()? {
            let id = names.resource(&String::read_from(from)?);
            is_new(from, id, index)?;
        }
        for index in 0..from.count()? {
            let id = names.local_queue(&String::read_from(from)?, &String::read_from(from)?);
            is_new(from, id, index)?;
        }
        let (n_flavors, n_resources) = (names.flavors.len(), names.n_resources());
        for index in 0..from.count()? {
            let flavor: FlavorId = from.id(n_flavors, "flavor")?;
            let resource: ResourceId = from.id(n_resources, "resource")?;
            is_new(from, names.flavor_resource(flavor, resource), index)?;
        }
        Ok(names)
    }
}
