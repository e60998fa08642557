//! What a leader knows that the next one has to know.

use std::sync::Arc;

use contract::HUB_SEEN;
use serde_json::{Value, json};
use tokio::sync::watch;

/// A text that goes from one leader to the next, in an annotation of the Lease. Clones share it.
///
/// # Flow
/// The leader says what is to be handed over ([`Self::set`], [`Self::set_now`]) → whoever keeps the
/// Lease writes it ([`Self::write`]) and says when that is done ([`Self::written`]), at once if it is
/// [`Self::urgent`] → the next one reads it.
#[derive(Clone, Debug)]
pub struct Handover(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    text: Option<String>,
    /// How many times it was said that a text is to be written at once.
    wanted: u64,
    /// How many of these are written.
    kept: u64,
    /// Nobody writes it.
    lost: bool,
}

/// What was put into a Lease, to be told when that is written.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Written(u64);

// === impl State ===

impl State {
    fn is_urgent(&self) -> bool {
        self.kept < self.wanted && !self.lost
    }
}

// === impl Handover ===

impl Default for Handover {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }
}

impl Handover {
    /// What was handed over, or is to be.
    pub fn text(&self) -> Option<String> {
        self.0.borrow().text.clone()
    }

    /// Says what is to be handed over; it is written with the next renewal.
    pub fn set(&self, text: String) {
        // Nobody waits for that.
        self.0.send_if_modified(|state| {
            state.text = Some(text);
            false
        });
    }

    /// Says what is to be handed over as soon as that can be.
    pub fn set_now(&self, text: String) {
        self.0.send_modify(|state| {
            state.text = Some(text);
            state.wanted += 1;
        });
    }

    /// Whether something that is to be written at once is not written yet.
    pub fn is_urgent(&self) -> bool {
        self.0.borrow().is_urgent()
    }

    /// Waits until there is something that is to be written at once.
    pub async fn urgent(&self) {
        self.wait(State::is_urgent).await;
    }

    /// Waits until nothing is urgent any more.
    pub async fn kept(&self) {
        self.wait(|state| !state.is_urgent()).await;
    }

    /// Nobody will write it.
    pub fn give_up(&self) {
        self.0.send_modify(|state| state.lost = true);
    }

    /// Takes what another leader has left in a Lease. Where there is nothing, what is known stays.
    pub fn read(&self, lease: &Value) {
        if let Some(text) = text(lease) {
            self.set(text.to_owned());
        }
    }

    /// Puts it into a Lease, which is then to be written.
    pub fn write(&self, lease: &mut Value) -> Written {
        let state = self.0.borrow();
        if let Some(text) = &state.text {
            put(lease, text);
        }
        Written(state.wanted)
    }

    /// The Lease is written.
    pub fn written(&self, Written(wanted): Written) {
        self.0.send_if_modified(|state| {
            let before = state.is_urgent();
            state.kept = state.kept.max(wanted);
            before != state.is_urgent()
        });
    }

    async fn wait(&self, condition: impl Fn(&State) -> bool) {
        // It ends no other way: the sender is this one's own.
        drop(self.0.subscribe().wait_for(|state| condition(state)).await);
    }
}

/// What was handed over in a Lease.
pub fn text(lease: &Value) -> Option<&str> {
    lease.pointer("/metadata/annotations")?.get(HUB_SEEN)?.as_str()
}

/// Puts what is to be handed over into a Lease.
pub fn put(lease: &mut Value, text: &str) {
    let Some(metadata) = lease.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Value::Object(annotations) = metadata.entry("annotations").or_insert_with(|| json!({})) {
        annotations.insert(HUB_SEEN.to_owned(), text.into());
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn from_one_to_the_next() {
        let (one, two) = (Handover::default(), Handover::default());
        let mut lease = json!({"metadata": {"name": "a"}});
        let _written = one.write(&mut lease);
        assert_eq!(lease, json!({"metadata": {"name": "a"}}), "there is nothing");
        one.set("x".to_owned());
        let _written = one.write(&mut lease);
        two.read(&lease);
        assert_eq!(two.text().as_deref(), Some("x"));
        // A Lease that somebody has made anew says nothing.
        two.read(&json!({"metadata": {"annotations": {HUB_SEEN: 1}}}));
        assert_eq!(two.text().as_deref(), Some("x"));
        let _written = two.write(&mut json!(null));
    }

    #[test]
    fn what_is_urgent_until_it_is_written() {
        let handover = Handover::default();
        handover.set("x".to_owned());
        assert!(!handover.is_urgent());
        assert_eq!(handover.urgent().now_or_never(), None);
        handover.set_now("y".to_owned());
        assert_eq!(handover.urgent().now_or_never(), Some(()));
        let mut lease = json!({"metadata": {}});
        let first = handover.write(&mut lease);
        // What comes while it is on its way is not in it.
        handover.set_now("z".to_owned());
        handover.written(first);
        assert!(handover.is_urgent());
        assert_eq!(handover.kept().now_or_never(), None);
        let second = handover.write(&mut lease);
        handover.written(second);
        handover.written(first);
        assert_eq!(handover.kept().now_or_never(), Some(()));
        assert_eq!(lease["metadata"]["annotations"][HUB_SEEN], "z");
        handover.set_now("w".to_owned());
        handover.give_up();
        assert!(!handover.is_urgent(), "nobody will ever say that it is written");
    }
}
