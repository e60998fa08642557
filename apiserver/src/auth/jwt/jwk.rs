//! Key sets (RFC 7517): those of issuers are read, our own is written.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::key::Curve;
use super::{Algorithm, PublicKey};

/// Keys of one set that are held. Issuers have a few.
const MAX_KEYS: usize = 64;

/// The keys of an issuer that signatures can be checked by.
#[derive(Clone, Debug, Default)]
pub(crate) struct JwkSet {
    keys: Vec<Held>,
}

#[derive(Clone, Debug)]
struct Held {
    id: Option<String>,
    /// The one algorithm that it is for, where its set says so.
    algorithm: Option<Algorithm>,
    key: PublicKey,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default, rename = "use")]
    usage: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
}

// === impl JwkSet ===

impl JwkSet {
    /// Reads a key set; keys of other kinds and for other uses are passed over.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set = serde_json::from_slice(bytes).ok()?;
        let keys = set.keys.into_iter().filter_map(|value| {
            let jwk: Jwk = serde_json::from_value(value).ok()?;
            if jwk.usage.as_deref().is_some_and(|usage| usage != "sig") {
                return None;
            }
            let algorithm = match &jwk.alg {
                Some(name) => Some(Algorithm::parse(name)?),
                None => None,
            };
            let key = jwk.key()?;
            Some(Held { id: jwk.kid, algorithm, key })
        });
        Some(Self { keys: keys.take(MAX_KEYS).collect() })
    }

    /// The keys that may have signed a token with this key id and algorithm.
    pub(crate) fn candidates(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &PublicKey> {
        let fits = move |held: &&Held| {
            let same = id.is_none() || held.id.is_none() || held.id.as_deref() == id;
            same && held.algorithm.is_none_or(|own| own == algorithm)
        };
        self.keys.iter().filter(fits).map(|held| &held.key)
    }

    /// Whether it has a key of this id.
    pub(crate) fn knows(&self, id: Option<&str>) -> bool {
        self.keys.iter().any(|held| id.is_none() || held.id.as_deref() == id)
    }
}

// === impl Jwk ===

impl Jwk {
    fn key(&self) -> Option<PublicKey> {
        let bytes = |part: &Option<String>| URL_SAFE_NO_PAD.decode(part.as_ref()?).ok();
        match &*self.kty {
            "RSA" => PublicKey::rsa(&bytes(&self.n)?, &bytes(&self.e)?).ok(),
            "EC" => {
                let named = |curve: &Curve| Some(curve.name()) == self.crv.as_deref();
                let curve = [Curve::P256, Curve::P384, Curve::P521].into_iter().find(named)?;
                let mut point = vec![4];
                for part in [bytes(&self.x)?, bytes(&self.y)?] {
                    // Coordinates have their full width, zeros included.
                    point.extend((part.len() == curve.width()).then_some(part)?);
                }
                PublicKey::ec(curve, &point).ok()
            }
            "OKP" if self.crv.as_deref() == Some("Ed25519") => {
                bytes(&self.x).filter(|key| key.len() == 32).map(PublicKey::Ed25519)
            }
            _ => None,
        }
    }
}

// === impl PublicKey ===

impl PublicKey {
    /// The key as a member of a key set.
    pub(crate) fn jwk(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = json!({"use": "sig", "kid": id, "alg": self.algorithm().name()});
        match self {
            Self::Rsa { modulus, exponent } => {
                jwk["kty"] = json!("RSA");
                jwk["n"] = json!(text(modulus));
                jwk["e"] = json!(text(exponent));
            }
            Self::Ec { curve, point } => {
                let (x, y) = point.get(1..).unwrap_or_default().split_at(curve.width());
                jwk["kty"] = json!("EC");
                jwk["crv"] = json!(curve.name());
                jwk["x"] = json!(text(x));
                jwk["y"] = json!(text(y));
            }
            Self::Ed25519(key) => {
                jwk["kty"] = json!("OKP");
                jwk["crv"] = json!("Ed25519");
                jwk["x"] = json!(text(key));
            }
        }
        jwk
    }
}
