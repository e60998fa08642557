//! What a leader knows that the next one has to know.

use std::sync::Arc;

use contract::HUB_SEEN;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// A text that goes from one leader to the next, in an annotation of the Lease. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Handover(Arc<Mutex<Option<String>>>);

// === impl Handover ===

impl Handover {
    /// What was handed over, or is to be.
    pub fn text(&self) -> Option<String> {
        self.0.lock().clone()
    }

    /// Says what is to be handed over; it is written with the next renewal.
    pub fn set(&self, text: String) {
        *self.0.lock() = Some(text);
    }

    /// Takes what another leader has left in a Lease. Where there is nothing, what is known stays.
    pub fn read(&self, lease: &Value) {
        let annotations = lease.pointer("/metadata/annotations");
        let text = annotations.and_then(|all| all.get(HUB_SEEN)).and_then(Value::as_str);
        if let Some(text) = text {
            self.set(text.to_owned());
        }
    }

    /// Puts it into a Lease.
    pub fn write(&self, lease: &mut Value) {
        let Some(text) = self.text() else { return };
        let Some(metadata) = lease.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Value::Object(annotations) = annotations {
            annotations.insert(HUB_SEEN.to_owned(), text.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_one_to_the_next() {
        let (one, two) = (Handover::default(), Handover::default());
        let mut lease = json!({"metadata": {"name": "a"}});
        one.write(&mut lease);
        assert_eq!(lease, json!({"metadata": {"name": "a"}}), "there is nothing");
        one.set("x".to_owned());
        one.write(&mut lease);
        two.read(&lease);
        assert_eq!(two.text().as_deref(), Some("x"));
        // A Lease that somebody has made anew says nothing.
        two.read(&json!({"metadata": {"annotations": {HUB_SEEN: 1}}}));
        assert_eq!(two.text().as_deref(), Some("x"));
        two.write(&mut json!(null));
    }
}
