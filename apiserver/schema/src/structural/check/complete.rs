//! Value validations speak of parts that are declared: what stands in `allOf` and the like stands
//! outside of them too.

use machinery::{FieldError, FieldPath};

use super::super::json::{self, Keywords};

/// Collects the parts that are only spoken of.
pub(super) fn check(schema: &Keywords, at: &FieldPath, problems: &mut Vec<FieldError>) {
    let mut completeness = Completeness { declared: at.clone(), spoken: at.clone(), problems };
    completeness.validations(schema, schema);
}

struct Completeness<'p> {
    /// Where the part is or should be declared.
    declared: FieldPath,
    /// Where it is spoken of.
    spoken: FieldPath,
    problems: &'p mut Vec<FieldError>,
}

// === impl Completeness ===

impl Completeness<'_> {
    fn validations(&mut self, validations: &Keywords, structure: &Keywords) {
        if let Some(part) = json::object(validations, "not") {
            let mark = self.spoken.enter_child("not");
            self.nested(part, Some(structure));
            self.spoken.leave(mark);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for (at, part) in json::schemas(validations, keyword) {
                let mark = self.spoken.enter_child(keyword);
                self.spoken.enter_index(at);
                self.nested(part, Some(structure));
                self.spoken.leave(mark);
            }
        }
    }

    fn nested(&mut self, part: &Keywords, structure: Option<&Keywords>) {
        let Some(structure) = structure else {
            let why = format!("because it is defined in {}", self.spoken);
            self.problems.push(FieldError::required(&self.declared, why));
            return;
        };
        self.validations(part, structure);
        if let Some(items) = json::object(part, "items") {
            let marks = (self.declared.enter_child("items"), self.spoken.enter_child("items"));
            self.nested(items, json::object(structure, "items"));
            self.declared.leave(marks.0);
            self.spoken.leave(marks.1);
        }
        let declared = json::object(structure, "properties");
        for (name, part) in json::properties(part) {
            let marks =
                (self.declared.enter_child("properties"), self.spoken.enter_child("properties"));
            self.declared.enter_key(name);
            self.spoken.enter_key(name);
            self.nested(part, declared.and_then(|d| json::object(d, name)));
            self.declared.leave(marks.0);
            self.spoken.leave(marks.1);
        }
    }
}
