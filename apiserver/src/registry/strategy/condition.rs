//! The conditions of webhooks and policies, which are compiled before they are stored.

use machinery::{FieldError, FieldPath, name};
use serde_json::{Value, json};

use super::check::{named, text};
use super::webhook::required;
use crate::admission::Conditions;

/// The most conditions that one webhook or policy may have.
const MOST: usize = 64;

/// What is wrong with `matchConditions`. `params` says whether they belong to a policy that has some.
pub(super) fn match_conditions(
    conditions: &[Value],
    params: bool,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut problems = Vec::new();
    if conditions.len() > MOST {
        problems.push(FieldError::too_many(path, conditions.len(), MOST));
        return problems;
    }
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let expression = text(condition, "expression").trim();
        problems.extend(required(condition, "expression", "", &path));
        if !expression.is_empty()
            && let Some(why) = Conditions::problem(expression, params)
        {
            problems.push(FieldError::invalid_str(&path.child("expression"), expression, why));
        }
        let given = text(condition, "name");
        let path = path.child("name");
        if given.is_empty() {
            problems.push(FieldError::required(&path, ""));
        } else {
            problems.extend(named(&path, given, name::qualified_name));
            if conditions.iter().take(index).any(|other| text(other, "name") == given) {
                problems.push(FieldError::duplicate(&path, &json!(given)));
            }
        }
    }
    problems
}
