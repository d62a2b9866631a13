//! Fields that stand twice in the text of an object. A tree does not know any more, so the text is read once for this alone.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use rustc_hash::FxHashSet;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::fields::join;

/// Paths of fields that stand more than once in an object's JSON, in the order of the text. Empty for what is not JSON.
pub fn duplicate_fields(text: &[u8]) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_slice(text);
    // What cannot be read is told by whoever reads it for good.
    let _ = Place { at: At::Root, found: &found }.deserialize(&mut reader);
    found.into_inner()
}

/// Where a value stands. Spelt out only for a field that stands twice: every write is read here.
#[derive(Clone, Copy)]
enum At<'a> {
    Root,
    Field(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

impl At<'_> {
    fn path(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field(parent, name) => join(&parent.path(), name),
            Self::Item(parent, index) => format!("{}[{index}]", parent.path()),
        }
    }
}

/// A value, and where it stands.
struct Place<'a> {
    at: At<'a>,
    found: &'a RefCell<Vec<String>>,
}

/// The name of a field: borrowed from the text unless it has escapes.
#[derive(Deserialize)]
struct Name<'text>(#[serde(borrow)] Cow<'text, str>);

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen: FxHashSet<Cow<'de, str>> = FxHashSet::default();
        while let Some(Name(name)) = fields.next_key()? {
            let at = At::Field(&self.at, &name);
            if seen.contains(&*name) {
                let (path, mut found) = (at.path(), self.found.borrow_mut());
                if !found.contains(&path) {
                    found.push(path);
                }
            }
            fields.next_value_seed(Place { at, found: self.found })?;
            seen.insert(name);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while items.next_element_seed(Place { at: At::Item(&self.at, index), found: self.found })?.is_some() {
            index += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_stand_twice_are_named_by_their_paths() {
        let text = br#"{"a":{"b":1,"b":2,"b":3},"l":[{"x":1},{"x":1,"x":null}],"a":{}}"#;
        assert_eq!(duplicate_fields(text), ["a.b", "l[1].x", "a"]);
        assert!(duplicate_fields(b"{nope").is_empty() && duplicate_fields(b"").is_empty());
    }
}
