//! Kubeconfigs, read as far as they are data.
//!
//! A kubeconfig may name programs to run and addresses to send everything to. Whoever follows those does
//! what the author of the file wants; so they are refused, each with its reason, and what is left is an
//! address, the certificates that vouch for it (the system's, where it names none), and an identity.
//! Files that it names are read by whoever gives a reader for them, which is for kubeconfigs of one's
//! own; without one they are refused, since a stranger's kubeconfig may name any file of this machine.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::json::{self, Limits};

/// How a cluster is reached, and as whom.
#[derive(Clone)]
pub struct Access {
    /// The server's address, `https://HOST[:PORT][/PATH]` without a slash at its end.
    pub server: String,
    /// The name that its certificate must be for, where that is not the host of the address.
    pub server_name: Option<String>,
    /// The certificates that vouch for it, as PEM; `None` for the system's.
    pub authority: Option<Vec<u8>>,
    /// Who calls.
    pub identity: Identity,
}

/// Who calls.
#[derive(Clone)]
pub enum Identity {
    /// A client certificate and its key, as PEM.
    Certificate {
        /// The certificate with its chain.
        chain: Vec<u8>,
        /// Its private key.
        key: Vec<u8>,
    },
    /// A bearer token.
    Token(String),
    /// A file with a bearer token, which may be another one later.
    TokenFile(String),
}

/// Reads a file that a kubeconfig names; says why it can't be read.
pub type Files<'f> = &'f dyn Fn(&str) -> Result<Vec<u8>, String>;

/// Why a kubeconfig can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// It is no YAML.
    #[error("it is no YAML: {0}")]
    Unreadable(String),
    /// It doesn't say which of its clusters or users is meant.
    #[error("it has no current context, and not exactly one cluster and one user")]
    NoContext,
    /// It refers to something that it doesn't hold.
    #[error("it has no {what} named {name:?}")]
    Unknown {
        /// A context, cluster or user.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A field that has to be there isn't.
    #[error("it lacks {0}")]
    Missing(&'static str),
    /// A field holds nonsense.
    #[error("its {field} {problem}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file that it names can't be read.
    #[error("its {field} {path:?} can't be read: {why}")]
    File {
        /// The field.
        field: &'static str,
        /// The file.
        path: String,
        /// Why not.
        why: String,
    },
    /// A field that isn't followed.
    #[error("its {field} is not followed: {reason}")]
    Refused {
        /// The field.
        field: &'static str,
        /// Why not.
        reason: &'static str,
    },
}

/// Names a file with a token.
const TOKEN_FILE: &str = "tokenFile";

/// Fields of a cluster that are refused.
const OF_CLUSTER: [(&str, &str); 2] = [
    ("proxy-url", "requests go to the cluster itself"),
    ("insecure-skip-tls-verify", "whoever answers could be anyone"),
];

/// Why files are refused without a reader.
const NO_FILES: &str = "no files are read; put the content into the kubeconfig";

/// Fields of a user that are refused.
const OF_USER: [(&str, &str); 6] = [
    ("exec", "no programs are run; use a token or a client certificate"),
    ("auth-provider", "it needs a program of its own; use a token or a client certificate"),
    ("username", "Kubernetes has no passwords any more"),
    ("as", "acting for another user is not supported"),
    ("as-uid", "acting for another user is not supported"),
    ("as-groups", "acting for another user is not supported"),
];

// === impl Access ===

impl Access {
    /// Reads the current context of a kubeconfig; without contexts, its only cluster and user. Files that
    /// it names are read by `files`, and refused if there is none. A token's file is not read here.
    ///
    /// # Errors
    /// What is missing, wrong or refused: the first of it.
    pub fn parse(text: &[u8], files: Option<Files<'_>>) -> Result<Self, KubeconfigError> {
        // There is no failure without a problem.
        let unexplained = || KubeconfigError::Unreadable("it is of no use".to_owned());
        Self::judge(text, files)
            .map_err(|problems| problems.into_iter().next().unwrap_or_else(unexplained))
    }

    /// As [`Self::parse`], with everything that is wrong: who wrote it corrects it once.
    ///
    /// # Errors
    /// Everything that is missing, wrong or refused; at least one problem.
    pub fn judge(text: &[u8], files: Option<Files<'_>>) -> Result<Self, Vec<KubeconfigError>> {
        let config = json::yaml(text, &Limits::default())
            .map_err(|error| vec![KubeconfigError::Unreadable(error.message)])?
            .value;
        let (cluster, user) = chosen(&config).map_err(|error| vec![error])?;
        let (mut cluster, mut user) = (cluster.clone(), user.clone());
        let mut problems = Problems::default();
        problems.refuse(&cluster, &OF_CLUSTER);
        problems.refuse(&user, &OF_USER);
        let authority = ("certificate-authority", "certificate-authority-data");
        problems.note(take_in(&mut cluster, authority, files));
        for (file, data) in
            [("client-certificate", "client-certificate-data"), ("client-key", "client-key-data")]
        {
            problems.note(take_in(&mut user, (file, data), files));
        }
        if files.is_none() && field(&user, TOKEN_FILE).is_some() {
            problems.add(KubeconfigError::Refused { field: TOKEN_FILE, reason: NO_FILES });
            user[TOKEN_FILE] = Value::Null;
        }
        let server = problems.note(server(&cluster));
        let authority = problems.note(pem(&cluster, "certificate-authority-data")).flatten();
        let identity = problems.identity(&user);
        match (server, identity, problems.0) {
            (Some(server), Some(identity), problems) if problems.is_empty() => Ok(Self {
                server: server.trim_end_matches('/').to_owned(),
                server_name: field(&cluster, "tls-server-name").map(str::to_owned),
                authority,
                identity,
            }),
            (.., problems) => Err(problems),
        }
    }
}

/// Everything that is wrong with a kubeconfig so far.
#[derive(Default)]
struct Problems(Vec<KubeconfigError>);

// === impl Problems ===

impl Problems {
    fn add(&mut self, problem: KubeconfigError) {
        self.0.push(problem);
    }

    fn note<T>(&mut self, part: Result<T, KubeconfigError>) -> Option<T> {
        part.map_err(|problem| self.add(problem)).ok()
    }

    fn refuse(&mut self, value: &Value, fields: &[(&'static str, &'static str)]) {
        let is_set = |name: &str| match value.get(name) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        };
        let set = fields.iter().filter(|(name, _)| is_set(name));
        self.0.extend(set.map(|&(field, reason)| KubeconfigError::Refused { field, reason }));
    }

    /// Who calls. A certificate is used before a token, as kubectl does.
    fn identity(&mut self, user: &Value) -> Option<Identity> {
        let before = self.0.len();
        let own = self.note(text(user, "token"));
        let chain = self.note(pem(user, "client-certificate-data"));
        let key = self.note(pem(user, "client-key-data"));
        let (Some(own), Some(chain), Some(key)) = (own, chain, key) else { return None };
        let own = own.map(|token| Identity::Token(token.to_owned()));
        let named = || field(user, TOKEN_FILE).map(|path| Identity::TokenFile(path.to_owned()));
        let missing = match (own.or_else(named), chain, key) {
            (_, Some(chain), Some(key)) => return Some(Identity::Certificate { chain, key }),
            (Some(token), None, None) => return Some(token),
            (_, Some(_), None) => "client-key-data",
            (_, None, Some(_)) => "client-certificate-data",
            (None, None, None) => "a token or a client certificate",
        };
        // What was refused is what is missing.
        let refused = self.0.iter().any(|problem| {
            let instead = ["exec", "auth-provider", "username", TOKEN_FILE, "client-key"];
            let instead = [&instead[..], &["client-certificate"]].concat();
            matches!(problem, KubeconfigError::Refused { field, .. }
                | KubeconfigError::File { field, .. } if instead.contains(field))
        });
        if before == self.0.len() && !refused {
            self.add(KubeconfigError::Missing(missing));
        }
        None
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The identity is a secret.
        f.debug_struct("Access").field("server", &self.server).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Certificate { .. } => "Certificate",
            Self::Token(_) => "Token",
            Self::TokenFile(_) => "TokenFile",
        })
    }
}

/// The cluster and the user that are meant.
fn chosen(config: &Value) -> Result<(&Value, &Value), KubeconfigError> {
    let Some(context) = field(config, "current-context") else {
        let only = |list: &'static str, entry: &str| match entries(config, list) {
            [one] => Ok(&one[entry]),
            _ => Err(KubeconfigError::NoContext),
        };
        return Ok((only("clusters", "cluster")?, only("users", "user")?));
    };
    let context = &named(config, "contexts", "context", context)?["context"];
    let cluster = field(context, "cluster").ok_or(KubeconfigError::Missing("a cluster"))?;
    let user = field(context, "user").ok_or(KubeconfigError::Missing("a user"))?;
    let cluster = &named(config, "clusters", "cluster", cluster)?["cluster"];
    Ok((cluster, &named(config, "users", "user", user)?["user"]))
}

fn named<'c>(
    config: &'c Value,
    list: &'static str,
    what: &'static str,
    name: &str,
) -> Result<&'c Value, KubeconfigError> {
    let found = entries(config, list).iter().find(|entry| entry["name"] == name);
    found.ok_or_else(|| KubeconfigError::Unknown { what, name: name.to_owned() })
}

fn entries<'c>(config: &'c Value, list: &str) -> &'c [Value] {
    config.get(list).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Puts the content of a file in the place of its name. What a kubeconfig holds itself goes before the
/// files that it names, as kubectl has it.
fn take_in(
    value: &mut Value,
    (file, data): (&'static str, &'static str),
    files: Option<Files<'_>>,
) -> Result<(), KubeconfigError> {
    let Some(path) = field(value, file).map(str::to_owned) else { return Ok(()) };
    value[file] = Value::Null;
    let Some(read) = files else {
        return Err(KubeconfigError::Refused { field: file, reason: NO_FILES });
    };
    if field(value, data).is_none() {
        let told = |why| KubeconfigError::File { field: file, path: path.clone(), why };
        value[data] = STANDARD.encode(read(&path).map_err(told)?).into();
    }
    Ok(())
}

/// A text that is there and not empty.
fn field<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The server's address.
fn server(cluster: &Value) -> Result<&str, KubeconfigError> {
    let server = text(cluster, "server")?.ok_or(KubeconfigError::Missing("a server"))?;
    if server.starts_with("https://") {
        return Ok(server);
    }
    Err(KubeconfigError::Invalid { field: "server", problem: "does not begin with https://" })
}

/// A text that is there and not empty; dots stand for one that is still to be filled in.
fn text<'v>(value: &'v Value, name: &'static str) -> Result<Option<&'v str>, KubeconfigError> {
    let text = field(value, name);
    let is_placeholder =
        |text: &str| matches!(text.trim().trim_matches(['<', '>']), "..." | "\u{2026}");
    match text {
        Some(text) if is_placeholder(text) => {
            Err(KubeconfigError::Invalid { field: name, problem: "is a placeholder" })
        }
        _ => Ok(text),
    }
}

/// The PEM text that a field holds as base64.
fn pem(value: &Value, name: &'static str) -> Result<Option<Vec<u8>>, KubeconfigError> {
    let Some(text) = text(value, name)? else { return Ok(None) };
    let invalid = |problem| KubeconfigError::Invalid { field: name, problem };
    let bytes = STANDARD.decode(text.trim()).map_err(|_| invalid("is no base64"))?;
    let begins = bytes.windows(11).any(|window| window == b"-----BEGIN ");
    if begins { Ok(Some(bytes)) } else { Err(invalid("holds no PEM")) }
}

#[cfg(test)]
mod tests;
