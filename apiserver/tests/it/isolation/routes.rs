//! Who may ask for what: every line of `data/routes.txt` is asked by everybody in each place.
//!
//! That the table has every route, a test beside the routes sees to. `KCP_WRITE_ROUTES` names a
//! file to write what was found to, for a new route: what stands there is then to be judged.

use std::collections::BTreeMap;
use std::fmt::Write;

use futures::{StreamExt, stream};
use http::Method;

use super::world::{EVERYBODY, World};
use crate::client::Ask;

const TABLE: &str = include_str!("../data/routes.txt");

/// Names a file to write the table to.
const WRITE_VARIABLE: &str = "KCP_WRITE_ROUTES";

/// Places by the names of their columns: the logical cluster of most callers, another one, `root`,
/// and all at once.
const PLACES: [(&str, &str); 4] = [
    ("a", "/clusters/a"),
    ("b", "/clusters/b"),
    ("root", "/clusters/root"),
    ("all", "/clusters/*"),
];

/// How many requests are under way for each caller.
const AT_ONCE: usize = 8;

struct Line<'t> {
    verb: &'t str,
    route: &'t str,
    /// Who may, by place.
    may: BTreeMap<&'t str, &'t str>,
    /// Why anybody may.
    reason: &'t str,
}

impl<'t> Line<'t> {
    fn parse(line: &'t str) -> Self {
        let (line, reason) = line.split_once('#').unwrap_or((line, ""));
        let mut words = line.split_whitespace();
        let (verb, route) = (words.next().unwrap(), words.next().unwrap());
        let may = words.map(|word| word.split_once('=').unwrap()).collect();
        Self { verb, route, may, reason: reason.trim() }
    }

    fn all() -> impl Iterator<Item = Line<'static>> {
        let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(Line::parse)
    }

    fn ask(&self, place: &str) -> Ask {
        if let Some(page) = self.route.strip_prefix('/') {
            let page = page.replace("healthz/*", "healthz/ping").replace("livez/*", "livez/ping");
            let page = page.replace("readyz/*", "readyz/ping").replace("v3/*", "v3/api/v1");
            let page = page.replace("api/*", "api/v1").replace("apis/*", "apis/apps");
            let page = page.replace("pprof/*", "pprof/cmdline");
            let method = self.verb.to_uppercase().parse().unwrap();
            return Ask::new(method, &format!("{place}/{page}"));
        }
        let parts: Vec<&str> = self.route.split('/').collect();
        let (group, version, plural, part) = match parts.as_slice() {
            ["v1", plural, rest @ ..] => ("", "v1", *plural, rest.first()),
            [group, version, plural, rest @ ..] => (*group, *version, *plural, rest.first()),
            _ => panic!("{} is no route", self.route),
        };
        let types = schema::Types::builtin();
        let resource = types.resource(group, plural).expect("the table has known resources");
        let base = if group.is_empty() { "api".to_owned() } else { format!("apis/{group}") };
        let namespace = if resource.namespaced { "/namespaces/default" } else { "" };
        let collection = format!("{place}/{base}/{version}{namespace}/{plural}");
        let part = part.map(|part| format!("/{part}")).unwrap_or_default();
        let one = format!("{collection}/none{part}");
        let patch = "application/merge-patch+json";
        match self.verb {
            "get" => Ask::get(&one),
            "list" => Ask::get(&format!("{collection}?limit=1")),
            "watch" => Ask::get(&format!("{collection}?watch=true&timeoutSeconds=1")),
            "create" if part.is_empty() => {
                let path = format!("{collection}?dryRun=All");
                Ask::new(Method::POST, &path).json(&serde_json::json!({}))
            }
            "create" => Ask::new(Method::POST, &one).json(&serde_json::json!({})),
            "update" => Ask::new(Method::PUT, &one).json(&serde_json::json!({})),
            "patch" => Ask::new(Method::PATCH, &one).header("content-type", patch).body("{}"),
            "delete" => Ask::new(Method::DELETE, &one),
            "deletecollection" => Ask::new(Method::DELETE, &format!("{collection}?dryRun=All")),
            verb => panic!("{verb} is no verb"),
        }
    }
}

/// Whether the answer is that of rights: 401, or 403 in the words of the authorizer.
fn is_refused(letter: char, code: u16, text: &str, what: &str) -> bool {
    // Whose token is foreign here is not known at all; others are told that they may not.
    let foreign = matches!(letter, 'P' | 'S' | 'F');
    match code {
        401 => {
            assert!(foreign, "{what}: {text}");
            true
        }
        403 => text.contains(" cannot "),
        _ => false,
    }
}

#[tokio::test]
async fn who_may_ask_for_what() {
    let world = World::new().await;
    let lines: Vec<Line<'_>> = Line::all().collect();
    let mut found = BTreeMap::<(usize, &str), String>::new();
    for letter in EVERYBODY.chars() {
        let caller = world.by(letter);
        let asks = lines.iter().enumerate().flat_map(|(index, line)| {
            PLACES.map(|(place, prefix)| (index, place, line.ask(prefix)))
        });
        let answers = stream::iter(asks)
            .map(async |(index, place, ask)| (index, place, caller.code(ask).await))
            .buffered(AT_ONCE);
        let answers: Vec<_> = answers.collect().await;
        for (index, place, (code, text)) in answers {
            let Line { verb, route, .. } = &lines[index];
            let what = format!("{letter} {verb} {route} in {place}");
            let may = found.entry((index, place)).or_default();
            if !is_refused(letter, code, &text, &what) {
                may.push(letter);
            }
        }
    }
    let mut table = String::new();
    let mut wrong = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Line { verb, route, may, reason } = line;
        write!(table, "{verb:16} {route:72}").unwrap();
        for (place, _) in PLACES {
            let found = &found[&(index, place)];
            let shown = if found.is_empty() { "-" } else { found };
            write!(table, " {:14}", format!("{place}={shown}")).unwrap();
            let decided = may.get(place).copied().unwrap_or_default();
            if decided != shown {
                wrong.push(format!("{verb} {route} in {place}: may {decided}, did {shown}"));
            }
            // Nobody who is unknown gets anywhere without a reason.
            assert!(!decided.contains('X') || !reason.is_empty(), "{verb} {route} has no reason");
        }
        let reason = if reason.is_empty() { String::new() } else { format!(" # {reason}") };
        table = table.trim_end().to_owned();
        writeln!(table, "{reason}").unwrap();
    }
    if let Ok(path) = std::env::var(WRITE_VARIABLE) {
        std::fs::write(path, table).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    world.end().await;
}
