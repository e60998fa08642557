//! What agents may do: a pure function of who, where and what.
//!
//! It says under which condition on the object something is allowed; the registry looks at the
//! object, within the write that changes it (`registry/agents.rs`).

use contract::{
    API_RESOURCE_IMPORTS, API_RESOURCE_SCHEMAS, APIRESOURCE_GROUP, LEASE_NAMESPACE, OBJECT_SYNCS,
    SYNC_TARGETS, WORKLOAD_GROUP, lease_name,
};

use super::Agent;
use crate::auth::authz::{Attributes, is_below};
use crate::certificates;

/// Where something is to be done, as an agent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the logical cluster of its SyncTarget.
    Own,
    /// In another one that its SyncTarget serves.
    Served,
    /// In all logical clusters together.
    All,
    /// In a logical cluster that is none of its business.
    Foreign,
}

/// What an agent may do, and with which objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Nothing.
    None,
    /// It may, whatever the object.
    Whole,
    /// It may, with objects that carry its state label or finalizer. Lists and watches must require
    /// the label. Of the objects it may change its own marks, the status, and by `scale` the number
    /// of replicas of those that yield it.
    ///
    /// Of types that its SyncTarget lets go up, it may see and change what it has made, too, as
    /// [`Right::Upsynced`] says.
    Assigned,
    /// It may, with objects that go up from its physical cluster: they are labelled with its
    /// SyncTarget's UID, must stay so, and carry no marks beside.
    Upsynced,
    /// It may, with objects that are labelled with its SyncTarget's UID, and must stay so. Lists and
    /// watches must require the label.
    Recorded,
    /// It may, with requests for certificates that it has made.
    Requested,
    /// It may, with its Lease.
    Leased,
}

/// The right of an agent with a certificate.
///
/// `goes_up` tells whether objects of a group and resource go up from its physical cluster.
pub(crate) fn right(
    agent: &Agent,
    place: Place,
    asked: &Attributes<'_>,
    goes_up: &dyn Fn(&str, &str) -> bool,
) -> Right {
    match *asked {
        Attributes::Path { verb, path } => of_path(place, verb, path),
        Attributes::Resource { verb, group, resource, name, subresource, namespace } => {
            if place == Place::Foreign {
                return Right::None;
            }
            let what = What { verb, subresource, name };
            match (group, resource) {
                (WORKLOAD_GROUP, SYNC_TARGETS) => of_target(agent, place, &what),
                (certificates::GROUP, certificates::REQUESTS) => of_request(place, &what),
                ("coordination.k8s.io", "leases") if namespace == LEASE_NAMESPACE => {
                    of_lease(agent, place, &what)
                }
                ("" | "events.k8s.io", "events") if verb == "create" && subresource.is_empty() => {
                    if place == Place::All {
                        Right::None
                    } else {
                        Right::Whole
                    }
                }
                (WORKLOAD_GROUP, OBJECT_SYNCS) => of_record(place, &what),
                (APIRESOURCE_GROUP, API_RESOURCE_IMPORTS) => match place {
                    Place::Own => of_record(place, &what),
                    _ => Right::None,
                },
                (APIRESOURCE_GROUP, API_RESOURCE_SCHEMAS) => of_schema(place, &what),
                _ => of_object(place, &what, &|| goes_up(group, resource)),
            }
        }
    }
}

/// The right of who has a bootstrap token for the agent: to ask for the certificate. Others come
/// from roles and bindings.
pub(crate) fn right_to_begin(place: Place, asked: &Attributes<'_>) -> Right {
    match *asked {
        Attributes::Resource {
            verb,
            group: certificates::GROUP,
            resource: certificates::REQUESTS,
            name,
            subresource,
            ..
        } => of_request(place, &What { verb, subresource, name }),
        _ => Right::None,
    }
}

/// What is to be done with one resource.
struct What<'a> {
    verb: &'a str,
    subresource: &'a str,
    name: &'a str,
}

/// Documents about the API. Those of all logical clusters together tell what others have.
fn of_path(place: Place, verb: &str, path: &str) -> Right {
    let document = is_below(path, &["/api", "/apis", "/openapi", "/version"]);
    match place {
        Place::Own | Place::Served if verb == "get" && document => Right::Whole,
        _ => Right::None,
    }
}

fn of_target(agent: &Agent, place: Place, what: &What<'_>) -> Right {
    let own = place == Place::Own && *what.name == *agent.name;
    match (what.verb, what.subresource) {
        ("get", "" | "status") | ("patch" | "update", "status") if own => Right::Whole,
        _ => Right::None,
    }
}

fn of_request(place: Place, what: &What<'_>) -> Right {
    match (what.verb, what.subresource) {
        ("create" | "get", "") if place == Place::Own => Right::Requested,
        _ => Right::None,
    }
}

fn of_lease(agent: &Agent, place: Place, what: &What<'_>) -> Right {
    let own = what.name == lease_name(&agent.uid);
    match (what.verb, what.subresource) {
        _ if place != Place::Own => Right::None,
        ("get" | "list" | "watch" | "patch" | "update", "") if own => Right::Leased,
        ("create", "") => Right::Leased,
        _ => of_object(place, what, &|| false),
    }
}

fn of_record(place: Place, what: &What<'_>) -> Right {
    match (what.verb, what.subresource) {
        ("list" | "watch", "") => Right::Recorded,
        _ if place == Place::All => Right::None,
        ("create" | "delete", "") | ("get" | "patch" | "update", "" | "status") => Right::Recorded,
        _ => Right::None,
    }
}

/// Descriptions of types. The server holds their names to their content (`registry/content.rs`), so
/// it does no harm that they are nobody's own.
fn of_schema(place: Place, what: &What<'_>) -> Right {
    match (what.verb, what.subresource) {
        ("create" | "get", "") if place == Place::Own => Right::Whole,
        _ => Right::None,
    }
}

fn of_object(place: Place, what: &What<'_>, goes_up: &dyn Fn() -> bool) -> Right {
    match (what.verb, what.subresource) {
        ("create" | "delete", "") if place != Place::All && goes_up() => Right::Upsynced,
        ("list" | "watch", "") => Right::Assigned,
        ("get" | "patch", "" | "status" | "scale") if place != Place::All => Right::Assigned,
        _ => Right::None,
    }
}

#[cfg(test)]
mod tests;
