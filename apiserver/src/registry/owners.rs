//! Owner references that are given twice.

use machinery::meta::get_str;
use serde_json::Value;

use crate::registry::Context;

/// Keeps the first of equal owner references, and warns about the others. `patched` says whether
/// they stand in the outcome of a patch, for which upstream has words of its own.
pub(super) fn dedup_owners(ctx: &Context, object: &mut Value, patched: bool) {
    let Some(Value::Array(owners)) = object.pointer_mut("/metadata/ownerReferences") else {
        return;
    };
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut twice: Vec<String> = Vec::new();
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            let uid = get_str(&owner, &["uid"]).unwrap_or_default();
            if !twice.iter().any(|known| known == uid) {
                twice.push(uid.to_owned());
            }
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    if twice.is_empty() {
        return;
    }
    let when = if patched { " after mutating admission happens" } else { "" };
    let twice = twice.join(", ");
    ctx.warn(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
         references in 1.20+, and may reject such requests as early as 1.24; please fix your \
         requests; duplicate UID(s) observed: {twice}"
    ));
}
