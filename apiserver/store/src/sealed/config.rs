//! The file that says what is sealed by what: `apiserver.config.k8s.io/v1`
//! EncryptionConfiguration, with the providers `aesgcm` and `identity`.

use std::path::Path;

use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, RandomizedNonceKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machinery::json::Limits;
use serde::Deserialize;
use serde_json::Value;

use super::{Keyring, Pattern, Provider, Rule, SealingKey};

/// Why a file can't be used. It never tells of keys.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file.
    #[error("read {path}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// What is in it.
    #[error("{path} is no encryption configuration: {why}")]
    Content {
        /// The file.
        path: String,
        /// What is wrong.
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Config {
    api_version: String,
    kind: String,
    #[serde(default)]
    resources: Vec<Resources>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resources {
    resources: Vec<String>,
    providers: Vec<serde_json::Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    keys: Vec<NamedKey>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedKey {
    name: String,
    secret: String,
}

/// Reads a file.
///
/// # Errors
/// When it can't be read, or is no such configuration.
pub fn read_config(path: &Path) -> Result<Keyring, ConfigError> {
    let name = || path.display().to_string();
    let text = std::fs::read(path).map_err(|source| ConfigError::Read { path: name(), source })?;
    parse(&text).map_err(|why| ConfigError::Content { path: name(), why })
}

pub(super) fn parse(text: &[u8]) -> Result<Keyring, String> {
    let parsed = machinery::json::yaml(text, &Limits::default()).map_err(|error| error.message)?;
    let config: Config = serde_json::from_value(parsed.value).map_err(|_| {
        // The deserializer's own text might repeat a key.
        "a field is missing, unknown, or of the wrong type".to_owned()
    })?;
    if config.api_version != "apiserver.config.k8s.io/v1"
        || config.kind != "EncryptionConfiguration"
    {
        return Err(
            "it is not of apiserver.config.k8s.io/v1 and kind EncryptionConfiguration".into()
        );
    }
    if config.resources.is_empty() {
        return Err("it names no resources".into());
    }
    let rules = config.resources.iter().enumerate();
    let rules = rules.map(|(at, one)| rule(one).map_err(|why| format!("resources[{at}]: {why}")));
    Ok(Keyring { rules: rules.collect::<Result<_, _>>()? })
}

fn rule(given: &Resources) -> Result<Rule, String> {
    let resources: Vec<Pattern> =
        given.resources.iter().map(|text| pattern(text)).collect::<Result<_, _>>()?;
    if resources.is_empty() {
        return Err("it names no resource".into());
    }
    let mut providers = Vec::new();
    for provider in &given.providers {
        let mut entries = provider.iter();
        let (Some((name, value)), None) = (entries.next(), entries.next()) else {
            return Err("a provider is not one of aesgcm and identity".into());
        };
        match name.as_str() {
            "identity" => providers.push(Provider::Identity),
            "aesgcm" => {
                let Ok(Keys { keys }) = serde_json::from_value(value.clone()) else {
                    return Err("aesgcm: not keys with name and secret".into());
                };
                if keys.is_empty() {
                    return Err("aesgcm: there is no key".into());
                }
                for key in &keys {
                    providers.push(Provider::AesGcm(sealing_key(key)?));
                }
            }
            other => {
                return Err(format!("{other:?} is not supported: aesgcm and identity are"));
            }
        }
    }
    if providers.is_empty() {
        return Err("it has no provider".into());
    }
    Ok(Rule { resources, providers })
}

/// `secrets`, `things.example.com`, `*.example.com`, `*.` for the core group, `*.*`.
fn pattern(text: &str) -> Result<Pattern, String> {
    let (resource, group) = text.split_once('.').unwrap_or((text, ""));
    let bad = resource.is_empty()
        || text.contains('/')
        || (resource == "*" && !text.contains('.'))
        || (resource != "*" && resource.contains('*'))
        || (group != "*" && group.contains('*'))
        || (group == "*" && resource != "*");
    if bad {
        return Err(format!("{text:?} names no resources"));
    }
    let group = if group.is_empty() { "core" } else { group };
    Ok(Pattern {
        group: (group != "*").then(|| group.to_owned()),
        resource: (resource != "*").then(|| resource.to_owned()),
    })
}

fn sealing_key(given: &NamedKey) -> Result<SealingKey, String> {
    let NamedKey { name, secret } = given;
    if name.is_empty() || name.contains(':') {
        return Err("a key's name is empty, or has a colon".into());
    }
    let secret = STANDARD.decode(secret).map_err(|_| format!("key {name:?} is not base64"))?;
    let algorithm = match secret.len() {
        16 => &AES_128_GCM,
        24 => &AES_192_GCM,
        32 => &AES_256_GCM,
        _ => return Err(format!("key {name:?} is not of 16, 24 or 32 bytes")),
    };
    let key = RandomizedNonceKey::new(algorithm, &secret)
        .map_err(|_| format!("key {name:?} can't be used"))?;
    Ok(SealingKey { prefix: format!("k8s:enc:aesgcm:v1:{name}:").into(), key })
}
