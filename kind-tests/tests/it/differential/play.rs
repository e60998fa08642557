//! Plays a case to both servers.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::case::{Case, Step};
use super::compare::{self, Difference};
use super::{answer, mask};
use kind_tests::client::{Client, Request, Response};
use kind_tests::eventually;

/// What one server has answered so far in one case.
#[derive(Debug)]
struct Play<'a> {
    client: &'a Client,
    saved: BTreeMap<String, String>,
    answers: Vec<Value>,
}

/// Plays a case to both servers, the real one first, and tells what differs.
///
/// # Errors
/// When a server does not answer, or a step uses what no step before it saves.
pub(crate) fn case(case: &Case, servers: [&Client; 2]) -> Result<Vec<Difference>> {
    let [real, ours] = servers;
    // Some steps wait for what does not come: the servers do so at the same time.
    let (real, ours) = std::thread::scope(|scope| {
        let real = scope.spawn(|| play(case, real, true).context("the real server"));
        let ours = play(case, ours, false).context("our server");
        let real =
            real.join().unwrap_or_else(|_| Err(anyhow!("the real server's script panicked")));
        (real, ours)
    });
    let mut found = Vec::new();
    for ((step, mut real), ours) in case.steps.iter().zip(real?).zip(ours?) {
        for list in &step.common {
            compare::keep_common(&mut real["body"], &ours["body"], list)?;
        }
        found.extend(compare::differences(&case.name, step.name(), &real, &ours));
    }
    Ok(found)
}

/// Plays a case to one server. Returns its masked answers.
fn play(case: &Case, client: &Client, bare: bool) -> Result<Vec<Value>> {
    let saved = BTreeMap::from([("ns".to_owned(), case.name.clone())]);
    let mut play = Play { client, saved, answers: Vec::new() };
    if case.namespace {
        play.make_namespace(&case.name)?;
        if bare {
            play.furnish(&case.name)?;
        }
    }
    for step in &case.steps {
        play.step(step).with_context(|| format!("step {}", step.name()))?;
    }
    Ok(mask::all(play.answers))
}

// === impl Play ===

impl Play<'_> {
    fn make_namespace(&self, name: &str) -> Result<()> {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.post("/api/v1/namespaces", &body)
    }

    /// Makes what a cluster's controllers would make in a new namespace: the real server runs
    /// without them, and ours has these objects from the start.
    fn furnish(&self, namespace: &str) -> Result<()> {
        let base = format!("/api/v1/namespaces/{namespace}");
        let account = json!({"metadata": {"name": "default"}});
        self.post(&format!("{base}/serviceaccounts"), &account)?;
        let why = "Contains a CA bundle that can be used to verify the kube-apiserver when using \
                   internal endpoints such as the internal service IP or \
                   kubernetes.default.svc. No other usage is guaranteed across distributions of \
                   Kubernetes clusters.";
        let roots = json!({
            "metadata": {
                "name": "kube-root-ca.crt",
                "annotations": {"kubernetes.io/description": why},
            },
            "data": {"ca.crt": "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"},
        });
        self.post(&format!("{base}/configmaps"), &roots)
    }

    fn post(&self, path: &str, body: &Value) -> Result<()> {
        let bytes = serde_json::to_vec(body)?;
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        let request =
            Request { method: "POST", path, headers: &headers, body: Some(&bytes), lines: None };
        let response = self.client.ask(&request)?;
        let text = String::from_utf8_lossy(&response.body);
        ensure!(response.status == 201, "POST {path}: {} {text}", response.status);
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let answer = if step.until.is_empty() {
            answer::of(&self.ask(step)?, step.events)?
        } else {
            eventually(step.name(), || {
                let answer = answer::of(&self.ask(step)?, step.events)?;
                for (pointer, value) in &step.until {
                    ensure!(answer.pointer(pointer) == Some(value), "{pointer}: {answer}");
                }
                Ok(answer)
            })?
        };
        for (name, pointer) in &step.save {
            // Where nothing is found the answer differs or the script is wrong; what follows
            // shows it.
            let found = answer["body"].pointer(pointer).and_then(Value::as_str);
            self.saved.insert(name.clone(), found.unwrap_or("nothing").to_owned());
        }
        self.answers.push(answer);
        Ok(())
    }

    fn ask(&self, step: &Step) -> Result<Response> {
        let request = self.fill(&step.request)?;
        let (method, path) = request.split_once(' ').context("no method and path")?;
        let mut headers = Vec::new();
        if let Some(accept) = &step.accept {
            headers.push(("Accept".to_owned(), accept.clone()));
        }
        let body = match (&step.body, &step.text) {
            (Some(body), None) => Some(self.fill(&body.to_string())?),
            (None, Some(text)) => Some(self.fill(text)?),
            (None, None) => None,
            (Some(_), Some(_)) => anyhow::bail!("both a body and a text"),
        };
        match &step.content_type {
            Some(media) if !media.is_empty() => {
                headers.push(("Content-Type".to_owned(), media.clone()));
            }
            None if body.is_some() => {
                headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            }
            _ => {}
        }
        for (name, value) in &step.headers {
            headers.push((name.clone(), self.fill(value)?));
        }
        let body = body.as_deref().map(str::as_bytes);
        self.client.ask(&Request { method, path, headers: &headers, body, lines: step.events })
    }

    /// Puts what was saved in place of its name.
    fn fill(&self, text: &str) -> Result<String> {
        let mut parts = text.split("${");
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let ends = part.match_indices('}').map(|(at, _)| part.split_at(at));
            let found = ends.filter_map(|(name, rest)| Some((self.value(name)?, rest))).next();
            let (value, rest) = found.with_context(|| format!("nothing is saved as {part:?}"))?;
            filled += &value;
            filled += rest.strip_prefix('}').unwrap_or(rest);
        }
        Ok(filled)
    }

    /// What stands between `${` and `}`: a saved value, or a text that is repeated.
    fn value(&self, name: &str) -> Option<String> {
        match name.rsplit_once('*') {
            Some((text, times)) => Some(text.repeat(times.parse().ok()?)),
            None => self.saved.get(name).cloned(),
        }
    }
}
