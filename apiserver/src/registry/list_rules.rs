//! Rules between the options of lists and watches (upstream's `ValidateListOptions`).

use machinery::{FieldError, FieldPath, GroupVersion};
use serde_json::Value;

use crate::registry::{Error, ListOptions, VersionMatch};

/// Checks the options of a list.
///
/// # Errors
/// 422 with all that is wrong.
pub(super) fn check_list(options: &ListOptions) -> Result<(), Error> {
    let path = FieldPath::root("resourceVersionMatch");
    let mut problems = Vec::new();
    if let Some(asked) = &options.version_match {
        if options.resource_version.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            problems.push(FieldError::forbidden(&path, why));
        }
        if !options.continue_token.is_empty() {
            problems.push(continued(&path));
        }
        if let VersionMatch::Unknown(other) = asked {
            let valid = ["Exact", "NotOlderThan", ""];
            problems.push(FieldError::not_supported(&path, &Value::from(&**other), &valid));
        }
        if *asked == VersionMatch::Exact && options.resource_version == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            problems.push(FieldError::forbidden(&path, why));
        }
    }
    if options.send_initial_events.is_some() {
        let path = FieldPath::root("sendInitialEvents");
        let why = "sendInitialEvents is forbidden for list";
        problems.push(FieldError::forbidden(&path, why));
    }
    judged(&problems)
}

/// Checks the options of a watch.
///
/// # Errors
/// 422 with all that is wrong.
pub(super) fn check_watch(options: &ListOptions) -> Result<(), Error> {
    let path = FieldPath::root("resourceVersionMatch");
    let not_older = options.version_match == Some(VersionMatch::NotOlderThan);
    let mut problems = Vec::new();
    if options.send_initial_events.is_some() && !not_older {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        problems.push(FieldError::forbidden(&path, why));
    }
    // Without a version, upstream sets the two itself.
    let begins = matches!(options.resource_version.as_str(), "" | "0");
    let asked = match &options.version_match {
        None if options.send_initial_events.is_none() && begins => {
            Some(&VersionMatch::NotOlderThan)
        }
        asked => asked.as_ref(),
    };
    if let Some(asked) = asked {
        if options.send_initial_events.is_none() && options.version_match.is_some() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                       provided";
            problems.push(FieldError::forbidden(&path, why));
        }
        let text = match asked {
            VersionMatch::NotOlderThan => None,
            VersionMatch::Exact => Some("Exact"),
            VersionMatch::Unknown(other) => Some(&**other),
        };
        if let Some(text) = text {
            let valid = ["NotOlderThan"];
            problems.push(FieldError::not_supported(&path, &Value::from(text), &valid));
        }
        if !options.continue_token.is_empty() {
            problems.push(continued(&path));
        }
    }
    judged(&problems)
}

fn continued(path: &FieldPath) -> FieldError {
    let why = "resourceVersionMatch is forbidden when continue is provided";
    FieldError::forbidden(path, why)
}

fn judged(problems: &[FieldError]) -> Result<(), Error> {
    if problems.is_empty() {
        return Ok(());
    }
    let kind = GroupVersion::new("meta.k8s.io", "v1").kind("ListOptions");
    Err(Error::invalid(&kind, "", problems))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(version: &str, asked: Option<VersionMatch>) -> ListOptions {
        ListOptions {
            resource_version: version.into(),
            version_match: asked,
            ..ListOptions::default()
        }
    }

    #[test]
    fn lists() {
        let check = |options: ListOptions, causes: usize| {
            let found = check_list(&options).err().map_or(0, |e| e.details().causes.len());
            assert_eq!(found, causes, "{options:?}");
        };
        let odd = || Some(VersionMatch::Unknown("Odd".into()));
        check(options("", None), 0);
        check(options("7", Some(VersionMatch::Exact)), 0);
        check(options("", Some(VersionMatch::Exact)), 1);
        check(options("0", Some(VersionMatch::Exact)), 1);
        check(options("", odd()), 2);
        check(ListOptions { continue_token: "t".into(), ..options("", odd()) }, 3);
        check(ListOptions { send_initial_events: Some(false), ..options("", None) }, 1);
    }

    #[test]
    fn watches() {
        let check = |options: ListOptions, causes: usize| {
            let found = check_watch(&options).err().map_or(0, |e| e.details().causes.len());
            assert_eq!(found, causes, "{options:?}");
        };
        let not_older = Some(VersionMatch::NotOlderThan);
        check(options("", None), 0);
        check(options("7", None), 0);
        check(options("7", not_older.clone()), 1);
        check(options("7", Some(VersionMatch::Exact)), 2);
        let initial = |given| ListOptions { send_initial_events: Some(true), ..given };
        check(initial(options("", not_older.clone())), 0);
        check(initial(options("", None)), 1);
        check(initial(options("1", Some(VersionMatch::Exact))), 2);
        let continued = |given| ListOptions { continue_token: "t".into(), ..given };
        check(continued(options("", None)), 1);
        check(continued(options("7", None)), 0);
    }
}
