//! What is read of the headers. What is allowed is tested with a whole server, in `tests/it`.

use http::{HeaderName, HeaderValue};

use super::*;
use crate::auth::AUTHENTICATED;

fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers
}

#[test]
fn whom_a_caller_acts_as() {
    type Given<'a> = &'a [(&'static str, &'static str)];
    let check = |given: Given<'_>, name: &str, groups: &[&str]| {
        let user = read(&headers(given)).unwrap().unwrap().user();
        assert_eq!((&*user.name, &*user.groups.join(",")), (name, &*groups.join(",")), "{given:?}");
        user
    };
    assert_eq!(read(&headers(&[("x-remote-user", "a")])).unwrap(), None);
    assert_eq!(read(&headers(&[(USER, "")])).unwrap(), None);
    check(&[(USER, "ann")], "ann", &[AUTHENTICATED]);
    check(&[(USER, "ann"), (USER, "bob")], "ann", &[AUTHENTICATED]);
    check(&[(USER, "ann"), (GROUP, "a"), (GROUP, "b")], "ann", &["a", "b", AUTHENTICATED]);
    check(&[(USER, "ann"), (GROUP, AUTHENTICATED)], "ann", &[AUTHENTICATED]);
    check(&[(USER, "ann"), (GROUP, UNAUTHENTICATED)], "ann", &[UNAUTHENTICATED]);
    check(&[(USER, ANONYMOUS)], ANONYMOUS, &[UNAUTHENTICATED]);
    check(&[(USER, ANONYMOUS), (GROUP, "a")], ANONYMOUS, &["a", UNAUTHENTICATED]);
    let app = "system:serviceaccount:shop:app";
    let own = ["system:serviceaccounts", "system:serviceaccounts:shop", AUTHENTICATED];
    check(&[(USER, app)], app, &own);
    check(&[(USER, app), (GROUP, "a")], app, &["a", AUTHENTICATED]);
    let user = check(
        &[
            (USER, "ann"),
            (UID, "7"),
            ("impersonate-extra-scopes", "one"),
            ("impersonate-extra-scopes", "two"),
            ("impersonate-extra-example.org%2fteam", "blue"),
        ],
        "ann",
        &[AUTHENTICATED],
    );
    assert_eq!((&*user.uid, user.home), ("7", None));
    assert_eq!(user.extra["scopes"], ["one", "two"]);
    assert_eq!(user.extra["example.org/team"], ["blue"]);
}

#[test]
fn what_must_be_allowed() {
    let check = |name: &'static str, value: &'static str, expect: [&str; 5]| {
        let read = read(&headers(&[(USER, "ann"), (name, value)])).unwrap().unwrap();
        let Some(Attributes::Resource { verb, group, resource, name, subresource, namespace }) =
            read.said.last().map(Said::attributes)
        else {
            panic!("{read:?}")
        };
        assert_eq!(verb, "impersonate");
        assert_eq!([group, resource, subresource, namespace, name], expect);
    };
    check("accept", "", ["", "users", "", "", "ann"]);
    check(GROUP, "g", ["", "groups", "", "", "g"]);
    check(UID, "7", [API_GROUP, "uids", "", "", "7"]);
    check("impersonate-extra-a%2fb", "v", [API_GROUP, "userextras", "a/b", "", "v"]);
    let account = read(&headers(&[(USER, "system:serviceaccount:shop:app")])).unwrap().unwrap();
    let expect = Said::ServiceAccount { namespace: "shop".into(), name: "app".into() };
    assert_eq!(account.said, [expect]);
    for odd in
        ["system:serviceaccount:shop", "system:serviceaccount:S:a", "system:serviceaccount:a:b:c"]
    {
        let read = read(&headers(&[(USER, odd)])).unwrap().unwrap();
        assert_eq!(read.said, [Said::User(odd.to_owned())]);
    }
}

#[test]
fn nothing_without_a_name() {
    let check = |name: &'static str, value: &'static str, printed: &str| {
        let error = read(&headers(&[(name, value)])).unwrap_err();
        let expect = format!("requested [{printed}] without impersonating a user name");
        assert_eq!(error.message(), expect);
    };
    check(GROUP, "g", "{Group  g    }");
    check(UID, "7", "{UID  7  authentication.k8s.io/v1  }");
    check("impersonate-extra-k", "v", "{UserExtra  v  authentication.k8s.io/v1  k}");
}

#[test]
fn identities_of_the_server() {
    for ours in [
        "system:masters",
        "system:syncers",
        "system:kcp:operators",
        "system:kcp:operator",
        "system:syncer:6f",
    ] {
        assert!(is_ours(ours), "{ours}");
    }
    for other in ["system:master", "masters", "system:authenticated", "system:nodes", "kcp:a", ""] {
        assert!(!is_ours(other), "{other}");
    }
}
