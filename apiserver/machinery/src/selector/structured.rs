//! `metav1.LabelSelector`: the selector inside objects, as `matchLabels` and `matchExpressions`.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

use super::{LabelOperator, LabelRequirement, LabelSelector, SelectorError};
use crate::field::aggregate;
use crate::json::Object;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Structured {
    #[serde(default)]
    match_labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    match_expressions: Option<Vec<Object<Expression>>>,
}

#[derive(Deserialize)]
struct Expression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Option<Vec<Box<str>>>,
}

impl LabelSelector {
    /// Reads a `metav1.LabelSelector`. Null selects nothing, an empty one everything.
    ///
    /// # Errors
    /// [`SelectorError`] with upstream's text; the shape is checked too.
    pub fn from_value(value: &Value) -> Result<Self, SelectorError> {
        if value.is_null() {
            return Ok(Self::nothing());
        }
        let Object(structured) =
            Object::<Structured>::deserialize(value).map_err(|e| SelectorError(e.to_string()))?;
        let mut requirements = Vec::new();
        for (key, value) in structured.match_labels.into_iter().flatten() {
            requirements.push(checked(&key, LabelOperator::Equals, vec![value.into()])?);
        }
        for Object(expression) in structured.match_expressions.into_iter().flatten() {
            let operator = match &*expression.operator {
                "In" => LabelOperator::In,
                "NotIn" => LabelOperator::NotIn,
                "Exists" => LabelOperator::Exists,
                "DoesNotExist" => LabelOperator::DoesNotExist,
                other => {
                    let text = format!("{other:?} is not a valid label selector operator");
                    return Err(SelectorError(text));
                }
            };
            let values = expression.values.unwrap_or_default();
            requirements.push(checked(&expression.key, operator, values)?);
        }
        Ok(Self::new(requirements))
    }
}

fn checked(
    key: &str,
    operator: LabelOperator,
    values: Vec<Box<str>>,
) -> Result<LabelRequirement, SelectorError> {
    LabelRequirement::new(key, operator, values).map_err(|e| SelectorError(aggregate(&e)))
}
