//! In which order keys come in a document.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize as _;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Limits;
use super::path::Path;

/// A key that a document doesn't have.
const NOWHERE: usize = usize::MAX;

/// Where each of `paths` comes in a JSON document for the first and for the second time, as the
/// number of keys before it; what isn't there comes last.
///
/// Values are maps that know no order, while upstream tells problems in the order of the document;
/// who needs that order, which is only where there are several problems, reads it from the
/// document. What is no JSON ends the search.
pub fn appearances(bytes: &[u8], paths: &[&str], limits: &Limits) -> Vec<[usize; 2]> {
    let wanted = paths.iter().enumerate().map(|(at, &path)| (path, at)).collect();
    let mut search = Search { wanted, found: vec![[NOWHERE; 2]; paths.len()], keys: 0 };
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let node = Node { search: &mut search, path: &Path::Root, levels: limits.max_depth };
    // What has been found before an error is right all the same.
    drop(node.deserialize(&mut deserializer));
    // The same path may be asked for twice.
    paths.iter().filter_map(|path| search.found.get(*search.wanted.get(path)?).copied()).collect()
}

struct Search<'p> {
    wanted: HashMap<&'p str, usize>,
    found: Vec<[usize; 2]>,
    keys: usize,
}

/// One value; `levels` more may open inside.
struct Node<'a, 'p> {
    search: &'a mut Search<'p>,
    path: &'a Path<'a>,
    levels: usize,
}

// === impl Search ===

impl Search<'_> {
    fn visit(&mut self, path: &Path<'_>, key: &str) {
        let found = self.wanted.get(&*path.render(key)).and_then(|at| self.found.get_mut(*at));
        match found {
            Some([first, _]) if *first == NOWHERE => *first = self.keys,
            Some([_, second]) if *second == NOWHERE => *second = self.keys,
            _ => {}
        }
        self.keys += 1;
    }
}

// === impl Node ===

impl<'de> DeserializeSeed<'de> for Node<'_, '_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.levels == 0 {
            return IgnoredAny::deserialize(deserializer).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let path = Path::Index(self.path, index);
            let node = Node { search: self.search, path: &path, levels: self.levels - 1 };
            if items.next_element_seed(node)?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(key) = entries.next_key::<String>()? {
            self.search.visit(self.path, &key);
            let path = Path::Key(self.path, &key);
            let node = Node { search: self.search, path: &path, levels: self.levels - 1 };
            entries.next_value_seed(node)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(document: &str, paths: &[&str], expect: &[[usize; 2]]) {
        let found = appearances(document.as_bytes(), paths, &Limits::default());
        assert_eq!(found, expect, "{document}");
    }

    #[test]
    fn keys_are_counted_as_they_come() {
        let none = NOWHERE;
        let document = r#"{"b":{"x":1},"a":[{"x":1,"x":2},{"y":null}],"b":2,"a":"t"}"#;
        check(document, &["a", "b"], &[[2, 7], [0, 6]]);
        check(document, &["a[0].x", "a[1].y", "b.x"], &[[3, 4], [5, none], [1, none]]);
        check(document, &["c", "b", "b"], &[[none; 2], [0, 6], [0, 6]]);
    }

    #[test]
    fn what_is_no_json_ends_the_search() {
        check(r#"{"a":1,"b":x,"a":1}"#, &["a", "b"], &[[0, NOWHERE], [1, NOWHERE]]);
        check("", &["a"], &[[NOWHERE; 2]]);
        let deep = format!("{}{}", r#"{"a":"#.repeat(5_000), "1");
        check(&deep, &["a.a", "b"], &[[1, NOWHERE], [NOWHERE; 2]]);
    }
}
