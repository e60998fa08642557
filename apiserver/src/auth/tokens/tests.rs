//! What is believed of tokens of ServiceAccounts, and what is not.

use machinery::meta::set;
use serde_json::{Value, json};

use super::*;
use crate::auth::objects::tests::Fixed;
use crate::auth::recent::digest;
use crate::registry::ClusterScope;

const NOW: i64 = 1_800_000_000;

fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW + seconds).unwrap()
}

fn object(namespace: &str, name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Object",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
    })
}

/// A ServiceAccount `shop/app`, Secret, Pod and Node in the logical cluster `a`.
fn objects() -> Fixed {
    let mut objects = Fixed::default();
    for (plural, namespace, name, uid) in [
        ("serviceaccounts", "shop", "app", "uid-app"),
        ("secrets", "shop", "held", "uid-held"),
        ("pods", "shop", "pod", "uid-pod"),
        ("nodes", "", "node", "uid-node"),
    ] {
        objects.put(&cluster("a"), plural, &object(namespace, name, uid));
    }
    objects
}

fn tokens_of(keys: Keys, settings: TokenSettings, objects: Fixed) -> AccountTokens {
    AccountTokens::new(keys, settings, Arc::new(objects))
}

fn keys() -> Keys {
    Keys::open(None, &KeyFiles::default()).unwrap()
}

fn grant<'g>(home: &'g ClusterName, audiences: &'g [String]) -> Grant<'g> {
    Grant {
        cluster: home,
        namespace: "shop",
        name: "app",
        uid: "uid-app",
        bound: None,
        audiences,
        seconds: 3600,
        now: at(0),
    }
}

fn reference(name: &str, uid: &str) -> Reference {
    Reference { name: name.to_owned(), uid: uid.to_owned() }
}

fn identify(tokens: &AccountTokens, token: &str, now: i64) -> Result<Known, String> {
    let known = tokens.identify(token, &digest(token), Place::Unnamed, None, at(now));
    known.map_err(|refusal| refusal.to_string())?.ok_or_else(|| "of another issuer".to_owned())
}

fn refused(why: &str) -> Result<Known, String> {
    Err(format!("[invalid bearer token, {why}]"))
}

#[test]
fn who_a_token_is() {
    let tokens = tokens_of(keys(), TokenSettings::default(), objects());
    let home = cluster("a");
    let audiences = tokens.audiences(&home);
    assert_eq!(audiences, ["https://kubernetes.default.svc/clusters/a"]);
    let bound = Bound {
        kind: BoundKind::Pod,
        object: reference("pod", "uid-pod"),
        node: Some(reference("node", "uid-of-then")),
    };
    let token = tokens.mint(&Grant { bound: Some(bound), ..grant(&home, &audiences) }).unwrap();
    let known = identify(&tokens, &token, 0).unwrap();
    assert_eq!(known.audiences, audiences);
    let user = &known.user;
    assert_eq!((&*user.name, &*user.uid), ("system:serviceaccount:shop:app", "uid-app"));
    let groups = ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"];
    assert_eq!(user.groups, groups);
    assert_eq!(user.home, Some(home));
    let extra = |key: &str| &*user.extra[&format!("authentication.kubernetes.io/{key}")][0];
    assert!(extra("credential-id").starts_with("JTI="));
    assert_eq!((extra("pod-name"), extra("pod-uid")), ("pod", "uid-pod"));
    assert_eq!((extra("node-name"), extra("node-uid")), ("node", "uid-of-then"));
    // The second time it is remembered.
    assert!(Arc::ptr_eq(user, &identify(&tokens, &token, 1).unwrap().user));
}

#[test]
fn a_token_is_known_in_its_own_logical_cluster_alone() {
    let mut everywhere = objects();
    for other in ["b", "root"] {
        // The same by name and UID, as in a copy of the logical cluster.
        let other = cluster(other);
        everywhere.put(&other, "serviceaccounts", &object("shop", "app", "uid-app"));
    }
    let tokens = tokens_of(keys(), TokenSettings::default(), everywhere);
    for home in ["a", "root"] {
        let home = cluster(home);
        let token = tokens.mint(&grant(&home, &tokens.audiences(&home))).unwrap();
        let check = |scope: ClusterScope| {
            let place = Place::Named(&scope);
            let known = tokens.identify(&token, &digest(&token), place, None, at(0));
            let own = scope == ClusterScope::One(home.clone());
            assert_eq!(known.is_ok(), own, "{home} {scope:?}");
            if let Err(refusal) = known {
                assert_eq!(refusal, Refusal::unknown(), "nothing is told of it");
            }
        };
        for scope in ["a", "b", "root"] {
            check(ClusterScope::One(cluster(scope)));
        }
        check(ClusterScope::All);
    }
}

#[test]
fn times() {
    let tokens = tokens_of(keys(), TokenSettings::default(), objects());
    let home = cluster("a");
    let token = tokens.mint(&grant(&home, &tokens.audiences(&home))).unwrap();
    let check = |now: i64, expect: Option<&str>| {
        let known = identify(&tokens, &token, now);
        match expect {
            None => assert!(known.is_ok(), "{now} {known:?}"),
            Some(why) => assert_eq!(known, refused(why), "{now}"),
        }
    };
    check(-61, Some("service account token is not valid yet"));
    check(-60, None);
    check(3660, None);
    check(3661, Some("service account token has expired"));
}

#[test]
fn audiences() {
    let settings =
        TokenSettings { audiences: vec!["api".into(), "hub".into()], ..TokenSettings::default() };
    let tokens = tokens_of(keys(), settings, objects());
    let home = cluster("a");
    let check = |given: &[&str], wanted: Option<&[&str]>, expect: Result<&[&str], &str>| {
        let owned = |texts: &[&str]| texts.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let token = tokens.mint(&grant(&home, &owned(given))).unwrap();
        let wanted = wanted.map(owned);
        let known =
            tokens.identify(&token, &digest(&token), Place::Unnamed, wanted.as_deref(), at(0));
        let found = known.map(|known| known.unwrap().audiences);
        let expect = expect.map(owned).map_err(|why| Refusal::wrong(why.to_owned()));
        assert_eq!(found, expect, "{given:?} {wanted:?}");
    };
    check(&["api"], None, Ok(&["api"]));
    check(&["hub", "vault", "api"], None, Ok(&["hub", "api"]));
    let why = "token audiences [\"vault\"] is invalid for the target audiences [\"api\" \"hub\"]";
    check(&["vault"], None, Err(why));
    check(&["vault"], Some(&["vault"]), Ok(&["vault"]));
    let why = "token audiences [\"api\"] is invalid for the target audiences [\"vault\"]";
    check(&["api"], Some(&["vault"]), Err(why));
}

/// What becomes of a token when an object that it rests on changes.
#[test]
fn a_token_dies_with_what_it_rests_on() {
    let home = cluster("a");
    let kinds = [
        (None, "serviceaccounts", "shop", "app", "uid-app"),
        (Some(BoundKind::Secret), "secrets", "shop", "held", "uid-held"),
        (Some(BoundKind::Pod), "pods", "shop", "pod", "uid-pod"),
        (Some(BoundKind::Node), "nodes", "", "node", "uid-node"),
    ];
    for (kind, plural, namespace, name, uid) in kinds {
        let shared = tempfile::tempdir().unwrap();
        std::fs::create_dir(shared.path().join("pki")).unwrap();
        let with = |change: &dyn Fn(&mut Fixed)| {
            let mut objects = objects();
            change(&mut objects);
            let keys = Keys::open(Some(shared.path()), &KeyFiles::default()).unwrap();
            tokens_of(keys, TokenSettings::default(), objects)
        };
        let first = with(&|_| {});
        let bound = kind.map(|kind| Bound { kind, object: reference(name, uid), node: None });
        let audiences = first.audiences(&home);
        let token = first.mint(&Grant { bound, ..grant(&home, &audiences) }).unwrap();
        assert!(identify(&first, &token, 0).is_ok(), "{plural}");

        let gone = with(&|objects| objects.remove(&home, plural, namespace, name));
        let known = gone.identify(&token, &digest(&token), Place::Unnamed, None, at(0));
        assert!(known.unwrap_err().is_absent(), "{plural}");

        let again = with(&|objects| {
            objects.put(&home, plural, &object(namespace, name, "another"));
        });
        let why = identify(&again, &token, 0).unwrap_err();
        assert!(why.contains("(another) does not match"), "{why}");

        let deleted = |at: &str| {
            let mut going = object(namespace, name, uid);
            set(&mut going, &["metadata", "deletionTimestamp"], json!(at));
            with(&|objects| objects.put(&home, plural, &going))
        };
        // NOW is 2027-01-15T08:00:00Z.
        assert!(identify(&deleted("2027-01-15T07:59:00Z"), &token, 0).is_ok(), "{plural}");
        for time in ["2027-01-15T07:58:59Z", "some time"] {
            let why = identify(&deleted(time), &token, 0).unwrap_err();
            assert!(why.contains("deleted") || why.contains("invalidated"), "{plural} {why}");
        }
    }
}

#[test]
fn only_what_our_keys_have_signed_is_believed() {
    let home = cluster("a");
    let tokens = tokens_of(keys(), TokenSettings::default(), objects());
    let audiences = tokens.audiences(&home);
    let foreign = tokens_of(keys(), TokenSettings::default(), objects());
    let token = foreign.mint(&grant(&home, &audiences)).unwrap();
    assert_eq!(identify(&tokens, &token, 0), refused("invalid signature"));
    // Another issuer's tokens are not ours to judge.
    let issuers = vec!["https://elsewhere.example".to_owned()];
    let elsewhere =
        tokens_of(keys(), TokenSettings { issuers, ..TokenSettings::default() }, objects());
    let token = elsewhere.mint(&grant(&home, &audiences)).unwrap();
    assert_eq!(identify(&tokens, &token, 0), Err("of another issuer".to_owned()));
    assert_eq!(identify(&tokens, "no.token", 0), Err("of another issuer".to_owned()));
}

/// Claims that our own key has signed, and that are no token for all that.
#[test]
fn claims_that_do_not_fit() {
    let home = cluster("a");
    let tokens = tokens_of(keys(), TokenSettings::default(), objects());
    let good = grant(&home, &tokens.audiences(&home)).claims(&tokens.issuer(&home));
    let check = |change: &[&str], value: Value, why: &str| {
        let mut claims = good.clone();
        if value.is_null() {
            machinery::meta::remove(&mut claims, change);
        } else {
            set(&mut claims, change, value);
        }
        let token = tokens.keys.signing().sign(&claims).unwrap();
        assert_eq!(identify(&tokens, &token, 0), refused(why), "{change:?}");
    };
    check(&["exp"], Value::Null, "service account token has expired");
    check(&["sub"], json!("system:admin"), "sub claim is invalid");
    check(&["kubernetes.io", "namespace"], json!("other"), "sub claim is invalid");
    let why = "the token names no logical cluster";
    check(&["kubernetes.io", "clusterName"], Value::Null, why);
    check(&["kubernetes.io", "clusterName"], json!("*"), why);
    check(&["kubernetes.io", "clusterName"], json!("A/b"), why);
    let why = "the issuer is not that of the token's logical cluster";
    check(&["kubernetes.io", "clusterName"], json!("b"), why);
    check(&["iss"], json!(DEFAULT_ISSUER), why);
    check(&["iss"], json!("https://kubernetes.default.svc/clusters/b"), why);
    check(&["iat"], json!(NOW + 61), "service account token is issued in the future");
    check(&["kubernetes.io"], Value::Null, "namespace claim is missing");
    let token = tokens.keys.signing().sign(&good).unwrap();
    assert!(identify(&tokens, &token, 0).is_ok());
}

#[test]
fn issuers_change_and_old_ones_are_believed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("pki")).unwrap();
    let with = |issuers: &[&str]| {
        let issuers = issuers.iter().map(|issuer| (*issuer).to_owned()).collect();
        let keys = Keys::open(Some(folder.path()), &KeyFiles::default()).unwrap();
        tokens_of(keys, TokenSettings { issuers, ..TokenSettings::default() }, objects())
    };
    let home = cluster("a");
    let old = with(&["https://old.example/"]);
    assert_eq!(old.issuer(&home), "https://old.example/clusters/a");
    assert_eq!(old.issuer(&ClusterName::root()), "https://old.example/");
    let token = old.mint(&grant(&home, &old.audiences(&home))).unwrap();
    assert!(identify(&with(&["https://new.example", "https://old.example/"]), &token, 0).is_ok());
    let why = Err("of another issuer".to_owned());
    assert_eq!(identify(&with(&["https://new.example"]), &token, 0), why);
}

#[test]
fn keys_change_and_old_ones_are_believed() {
    let folder = tempfile::tempdir().unwrap();
    let pki = folder.path().join("pki");
    std::fs::create_dir(&pki).unwrap();
    let open = |files: &KeyFiles| Keys::open(Some(folder.path()), files).unwrap();
    let none = KeyFiles::default();
    let first = open(&none).signing().id().to_owned();
    assert_eq!(open(&none).signing().id(), first, "kept over a restart");
    let home = cluster("a");
    let tokens = |keys| tokens_of(keys, TokenSettings::default(), objects());
    let old = tokens(open(&none));
    let token = old.mint(&grant(&home, &old.audiences(&home))).unwrap();

    std::fs::rename(pki.join("sa.key"), pki.join("sa-old.key")).unwrap();
    let second = open(&none);
    assert_ne!(second.signing().id(), first);
    assert_eq!(second.verifying().count(), 2);
    assert!(identify(&tokens(second), &token, 0).is_ok());

    // The same by files of the operator.
    let files = KeyFiles {
        signing: Some(pki.join("sa.key")),
        verifying: vec![pki.join("sa-old.key"), pki.join("sa.key")],
    };
    let named = Keys::open(None, &files).unwrap();
    assert_eq!(named.verifying().count(), 2);
    assert!(identify(&tokens(named), &token, 0).is_ok());
    std::fs::remove_file(pki.join("sa-old.key")).unwrap();
    assert_eq!(identify(&tokens(open(&none)), &token, 0), refused("invalid signature"));

    std::fs::write(pki.join("sa-broken.pub"), "no key").unwrap();
    let error = Keys::open(Some(folder.path()), &none).unwrap_err().to_string();
    assert!(error.contains("sa-broken.pub holds no usable key"), "{error}");
}

#[test]
fn tokens_in_secrets() {
    use base64::Engine;
    let home = cluster("a");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("pki")).unwrap();
    let tokens = |objects| {
        let keys = Keys::open(Some(folder.path()), &KeyFiles::default()).unwrap();
        tokens_of(keys, TokenSettings::default(), objects)
    };
    let grant = LegacyGrant {
        cluster: &home,
        namespace: "shop",
        account: "app",
        account_uid: "uid-app",
        secret: "held",
    };
    let token = tokens(objects()).mint_legacy(&grant).unwrap();
    let with = |content: &str, change: &dyn Fn(&mut Value)| {
        let mut secret = object("shop", "held", "uid-held");
        let content = base64::engine::general_purpose::STANDARD.encode(content);
        set(&mut secret, &["data"], json!({"token": content}));
        change(&mut secret);
        let mut objects = objects();
        objects.put(&home, "secrets", &secret);
        tokens(objects)
    };
    let held = with(&token, &|_| {});
    let ten_years = 10 * 365 * 86_400;
    let known = identify(&held, &token, ten_years).unwrap();
    assert_eq!(known.user.name, "system:serviceaccount:shop:app");
    assert_eq!(known.user.home, Some(home.clone()));
    assert!(known.user.extra.is_empty());
    let elsewhere = ClusterScope::One(cluster("b"));
    let foreign = held.identify(&token, &digest(&token), Place::Named(&elsewhere), None, at(0));
    assert_eq!(foreign, Err(Refusal::unknown()));

    let check = |tokens: &AccountTokens, why: &str| {
        assert_eq!(identify(tokens, &token, 0), refused(why));
    };
    check(&with("another", &|_| {}), "Token does not match server's copy");
    check(&tokens(objects()), "Token does not match server's copy");
    let going = with(&token, &|secret| {
        set(secret, &["metadata", "deletionTimestamp"], json!("2027-01-15T08:00:00Z"));
    });
    check(&going, "Token has been invalidated");
    let marked = with(&token, &|secret| {
        set(secret, &["metadata", "labels"], json!({legacy::INVALID_SINCE: "2027-01-01"}));
    });
    check(
        &marked,
        "the token in secret shop/held for service account shop/app has been marked invalid",
    );
    let mut without = Fixed::default();
    without.put(&home, "serviceaccounts", &object("shop", "app", "uid-app"));
    check(&tokens(without), "Token has been invalidated");
}

/// What a token costs: its signature once, then a digest and two looks into the cache. Prints both.
#[test]
fn a_token_that_was_seen_costs_no_signature() {
    const TOKENS: u32 = 200;
    let tokens = tokens_of(keys(), TokenSettings::default(), objects());
    let home = cluster("a");
    let audiences = tokens.audiences(&home);
    let minted = (0..TOKENS).map(|seconds| {
        let seconds = 3600 + i64::from(seconds);
        tokens.mint(&Grant { seconds, ..grant(&home, &audiences) }).unwrap()
    });
    let minted: Vec<String> = minted.collect();
    let round = || {
        let begin = tokio::time::Instant::now();
        for token in &minted {
            identify(&tokens, token, 0).unwrap();
        }
        begin.elapsed() / TOKENS
    };
    let first = round();
    let again = (0..5).map(|_| round()).min().unwrap();
    println!("a token costs {first:?} at first and {again:?} afterwards");
    assert!(again < first, "{again:?} is no less than {first:?}");
}
