//! Every right, and what is next to it.

use machinery::ClusterName;

use super::*;
use crate::auth::Credential;

fn agent() -> Agent {
    let credential = Credential::Certificate { not_before: 0, expires: 1 };
    Agent::new(ClusterName::parse("infra").unwrap(), "east", "u1", credential)
}

const PLACES: [Place; 4] = [Place::Own, Place::Served, Place::All, Place::Foreign];

/// The right to `verb group/resource[/subresource] [namespace/]name` at each of [`PLACES`].
#[track_caller]
fn check(verb: &str, resource: &str, object: &str, expect: [Right; 4]) {
    let (group, rest) = resource.split_once('/').unwrap();
    let (resource, subresource) = rest.split_once('/').unwrap_or((rest, ""));
    let (namespace, name) = object.split_once('/').unwrap_or(("", object));
    let asked = Attributes::Resource { verb, group, resource, name, subresource, namespace };
    let rights = PLACES.map(|place| right(&agent(), place, &asked, &goes_up));
    assert_eq!(rights, expect, "{asked:?}");
}

/// What the SyncTarget lets go up.
fn goes_up(group: &str, resource: &str) -> bool {
    (group, resource) == ("x.io", "rising")
}

const NOTHING: [Right; 4] = [Right::None; 4];

#[test]
fn objects() {
    use Right::{Assigned, None};
    for resource in ["/secrets", "apps/deployments", "/namespaces", "x.io/things", "/events"] {
        check("list", resource, "a/", [Assigned, Assigned, Assigned, None]);
        check("watch", resource, "", [Assigned, Assigned, Assigned, None]);
        check("get", resource, "a/b", [Assigned, Assigned, None, None]);
        check("patch", resource, "a/b", [Assigned, Assigned, None, None]);
        for verb in ["update", "delete", "deletecollection", "impersonate", "bind", "escalate"] {
            check(verb, resource, "a/b", NOTHING);
        }
        for part in ["status", "scale"] {
            let part = format!("{resource}/{part}");
            check("patch", &part, "a/b", [Assigned, Assigned, None, None]);
            check("update", &part, "a/b", NOTHING);
        }
        for part in ["finalize", "token", "approval", "exec", "proxy"] {
            check("patch", &format!("{resource}/{part}"), "a/b", NOTHING);
            check("get", &format!("{resource}/{part}"), "a/b", NOTHING);
        }
    }
    for resource in ["/secrets", "apps/deployments", "x.io/things", "/serviceaccounts/token"] {
        check("create", resource, "a/", NOTHING);
    }
    check("create", "authorization.k8s.io/selfsubjectaccessreviews", "", NOTHING);
    check("create", "authentication.k8s.io/selfsubjectreviews", "", NOTHING);
}

#[test]
fn what_goes_up() {
    use Right::{Assigned, None, Upsynced};
    let rising = "x.io/rising";
    for verb in ["create", "delete"] {
        check(verb, rising, "a/b", [Upsynced, Upsynced, None, None]);
        check(verb, "x.io/rising/status", "a/b", NOTHING);
        check(verb, "y.io/rising", "a/b", NOTHING);
    }
    check("get", rising, "a/b", [Assigned, Assigned, None, None]);
    check("patch", rising, "a/b", [Assigned, Assigned, None, None]);
    for verb in ["update", "deletecollection", "impersonate", "bind", "escalate"] {
        check(verb, rising, "a/b", NOTHING);
    }
}

#[test]
fn its_sync_target() {
    use Right::{None, Whole};
    let own = [Whole, None, None, None];
    check("get", "workload.kcp.io/synctargets", "east", own);
    check("get", "workload.kcp.io/synctargets/status", "east", own);
    check("patch", "workload.kcp.io/synctargets/status", "east", own);
    check("update", "workload.kcp.io/synctargets/status", "east", own);
    check("get", "workload.kcp.io/synctargets", "west", NOTHING);
    check("patch", "workload.kcp.io/synctargets/status", "west", NOTHING);
    for verb in ["list", "watch", "patch", "update", "delete", "create", "use", "sync"] {
        check(verb, "workload.kcp.io/synctargets", "east", NOTHING);
    }
}

#[test]
fn leases_and_events() {
    use Right::{Assigned, Leased, None, Whole};
    let leases = "coordination.k8s.io/leases";
    for verb in ["get", "list", "watch", "patch", "update"] {
        check(verb, leases, "kube-node-lease/synctarget-u1", [Leased, None, None, None]);
    }
    check("create", leases, "kube-node-lease/", [Leased, None, None, None]);
    check("get", leases, "kube-node-lease/synctarget-u2", [Assigned, None, None, None]);
    check("update", leases, "kube-node-lease/synctarget-u2", NOTHING);
    check("delete", leases, "kube-node-lease/synctarget-u1", NOTHING);
    check("create", leases, "default/synctarget-u1", NOTHING);
    check("update", leases, "default/synctarget-u1", NOTHING);
    check("create", "/events", "a/", [Whole, Whole, None, None]);
    check("create", "events.k8s.io/events", "a/", [Whole, Whole, None, None]);
    check("update", "/events", "a/b", NOTHING);
}

#[test]
fn records() {
    use Right::{None, Recorded, Whole};
    let syncs = "workload.kcp.io/objectsyncs";
    check("list", syncs, "", [Recorded, Recorded, Recorded, None]);
    for verb in ["create", "get", "patch", "update", "delete"] {
        check(verb, syncs, "a/b", [Recorded, Recorded, None, None]);
    }
    check("patch", "workload.kcp.io/objectsyncs/status", "a/b", [Recorded, Recorded, None, None]);
    check("deletecollection", syncs, "a/", NOTHING);
    let imports = "apiresource.kcp.io/apiresourceimports";
    for verb in ["list", "create", "get", "delete"] {
        check(verb, imports, "b", [Recorded, None, None, None]);
    }
    let schemas = "apiresource.kcp.io/apiresourceschemas";
    for verb in ["create", "get"] {
        check(verb, schemas, "b", [Whole, None, None, None]);
    }
    for verb in ["list", "watch", "update", "patch", "delete", "deletecollection"] {
        check(verb, schemas, "b", NOTHING);
    }
}

#[test]
fn requests_for_certificates() {
    use Right::{None, Requested};
    let requests = "certificates.k8s.io/certificatesigningrequests";
    check("create", requests, "", [Requested, None, None, None]);
    check("get", requests, "a", [Requested, None, None, None]);
    for verb in ["list", "watch", "patch", "update", "delete"] {
        check(verb, requests, "a", NOTHING);
    }
    for part in ["approval", "status"] {
        let part = format!("{requests}/{part}");
        check("patch", &part, "a", NOTHING);
        check("update", &part, "a", NOTHING);
    }
    let begin = |verb, group, resource| {
        let (name, namespace, subresource) = ("a", "", "");
        let asked = Attributes::Resource { verb, group, resource, name, subresource, namespace };
        right_to_begin(Place::Own, &asked)
    };
    assert_eq!(begin("create", "certificates.k8s.io", "certificatesigningrequests"), Requested);
    assert_eq!(begin("get", "", "secrets"), None);
    assert_eq!(begin("create", "", "events"), None);
}

#[test]
fn documents() {
    use Right::{None, Whole};
    let check = |verb: &str, path: &str, expect: [Right; 4]| {
        let rights =
            PLACES.map(|place| right(&agent(), place, &Attributes::Path { verb, path }, &goes_up));
        assert_eq!(rights, expect, "{verb} {path}");
    };
    for path in ["/api", "/api/v1", "/apis", "/apis/apps/v1", "/openapi/v3/api/v1", "/version"] {
        check("get", path, [Whole, Whole, None, None]);
        check("post", path, NOTHING);
    }
    for path in ["/", "/metrics", "/debug/pprof", "/apisx", "/openapi2", "/logs"] {
        check("get", path, NOTHING);
    }
}
