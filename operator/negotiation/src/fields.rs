//! Which fields of an object a type lacks.

use serde_json::Value;

use crate::kind::Kind;
use crate::node::{MAX_DEPTH, Node};
use crate::view::View;

/// The most fields that are told.
const MOST: usize = 20;

/// The most values that are looked at.
const MAX_STEPS: usize = 1_000_000;

struct Walk {
    path: String,
    lacking: Vec<String>,
    steps: usize,
}

/// The fields of an object that objects of a type can't have, as `.spec.template.spec.hostUsers`; at
/// most 20, in the order of their names. Status and metadata are nobody's wish, and are passed over.
///
/// A type whose schema can't be read lacks everything: the path is then `.`.
pub fn missing(schema: &Value, object: &Value) -> Vec<String> {
    let Ok(node) = Node::read(schema) else { return vec![".".to_owned()] };
    let mut walk = Walk { path: String::new(), lacking: Vec::new(), steps: 0 };
    if let Value::Object(fields) = object {
        for (name, value) in fields.iter().filter(|(name, _)| *name != "status") {
            walk.field(View::Node(&node), name, value, 1);
        }
    }
    walk.lacking
}

// === impl Walk ===

impl Walk {
    fn value(&mut self, view: View<'_>, value: &Value, depth: usize) {
        self.steps += 1;
        if depth > 2 * MAX_DEPTH || self.steps > MAX_STEPS || self.lacking.len() >= MOST {
            return;
        }
        match (view, value) {
            (View::Free, _) => {}
            (View::Node(node), Value::Object(_)) if !Kind::OBJECT.is_within(node.kind) => {
                self.lack();
            }
            (_, Value::Object(fields)) => {
                for (name, value) in fields {
                    self.field(view, name, value, depth + 1);
                }
            }
            (_, Value::Array(items)) => {
                let view = view.items();
                for (at, item) in items.iter().enumerate() {
                    self.inside(&format!("[{at}]"), |walk| walk.value(view, item, depth + 1));
                }
            }
            _ => {}
        }
    }

    fn field(&mut self, view: View<'_>, name: &str, value: &Value, depth: usize) {
        self.inside(&format!(".{name}"), |walk| match view.field(name) {
            Some(view) => walk.value(view, value, depth),
            None => walk.lack(),
        });
    }

    fn lack(&mut self) {
        if self.lacking.len() < MOST {
            self.lacking.push(self.path.clone());
        }
    }

    fn inside(&mut self, step: &str, run: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        run(self);
        self.path.truncate(length);
    }
}
