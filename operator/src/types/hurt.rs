//! Stored objects that a narrower type would hurt.

use crds::Hurt;
use machinery::FieldPath;
use negotiation::Type;
use schema::CoerceMode;
use schema::structural::Structural;
use serde_json::Value;

use super::descriptions::text;

/// The most objects that are named.
pub(super) const MOST: usize = 20;

/// What judges objects by a type.
pub(super) struct Judge {
    schema: std::sync::Arc<Structural>,
    pub(super) hurt: Vec<Hurt>,
    pub(super) count: usize,
}

// === impl Judge ===

impl Judge {
    /// One for a type.
    ///
    /// # Errors
    /// When the schema isn't one of objects.
    pub(super) fn new(ty: &Type) -> Result<Self, String> {
        let schema = Structural::compile(&ty.schema, &FieldPath::root("schema"));
        let schema = schema
            .map_err(|problems| problems.first().map(ToString::to_string).unwrap_or_default())?;
        Ok(Self { schema, hurt: Vec::new(), count: 0 })
    }

    /// Looks at an object as it is stored.
    pub(super) fn see(&mut self, object: &Value) {
        let Some(why) = self.why(object) else { return };
        self.count += 1;
        if self.hurt.len() < MOST {
            self.hurt.push(Hurt {
                namespace: text(object, "/metadata/namespace").to_owned(),
                name: text(object, "/metadata/name").to_owned(),
                why: why.chars().take(1_000).collect(),
            });
        }
    }

    fn why(&self, object: &Value) -> Option<String> {
        let mut pruned = object.clone();
        let unknown = self.schema.prune(&mut pruned, CoerceMode::Report);
        if let Some(field) = unknown.first() {
            return Some(format!("{} would be lost", field.path));
        }
        if pruned != *object {
            return Some("a field would be lost".to_owned());
        }
        let problems = self.schema.validate(object, None);
        problems.first().map(ToString::to_string)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_would_be_lost_or_invalid() {
        let ty: Type = serde_json::from_value(json!({
            "group": "x.io", "version": "v1", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing",
                      "listKind": "ThingList"},
            "schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "a": {"type": "string", "maxLength": 2}}}}},
        }))
        .unwrap();
        let mut judge = Judge::new(&ty).unwrap();
        let object = |spec: Value| {
            json!({"apiVersion": "x.io/v1", "kind": "Thing",
                   "metadata": {"name": "n", "namespace": "s"}, "spec": spec})
        };
        judge.see(&object(json!({"a": "xy"})));
        assert_eq!(judge.count, 0, "{:?}", judge.hurt);
        judge.see(&object(json!({"a": "xyz"})));
        judge.see(&object(json!({"b": 1})));
        assert_eq!(judge.count, 2);
        assert!(judge.hurt[0].why.contains("spec.a"), "{:?}", judge.hurt);
        assert_eq!(judge.hurt[1].why, "spec.b would be lost");
        assert_eq!((&*judge.hurt[1].namespace, &*judge.hurt[1].name), ("s", "n"));
    }
}
