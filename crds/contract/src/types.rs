//! Names of types, and of the objects that tell about them.

/// What the core group is called where a name needs a group.
pub const CORE: &str = "core";

/// How many hexadecimal digits of a digest stand in a name made of it.
pub const SCHEMA_DIGEST_LENGTH: usize = 64;

/// The longest name of an object.
const LONGEST_OBJECT_NAME: usize = 253;

/// A resource of one version of a group, as `v1`'s `deployments` of `apps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeName<'a> {
    /// The group; empty for core.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The resource.
    pub plural: &'a str,
}

/// The name of the APIResourceSchema whose content has this SHA-256 digest, `sha256-` and 64
/// hexadecimal digits.
///
/// What is digested is `spec` as canonical JSON: members sorted by the bytes of their names, no
/// white space, numbers without fraction or exponent where they are whole and fit 64 bits, texts
/// escaped no further than JSON asks. That is what `serde_json` writes of a map that sorts. The
/// server digests what it is about to store, so whoever writes one leaves out what is empty.
pub fn schema_name(digest: &[u8; 32]) -> String {
    let mut name = String::with_capacity(7 + SCHEMA_DIGEST_LENGTH);
    name.push_str("sha256-");
    hexadecimal(digest, &mut name);
    name
}

/// The name of a CustomResourceDefinition: `<plural>.<group>`, core being called [`CORE`].
pub fn type_name(group: &str, plural: &str) -> String {
    format!("{plural}.{}", if group.is_empty() { CORE } else { group })
}

/// The group and the plural of a type by its name, as people write it too: [`type_name`] the other way
/// round. A name without a group is one of core.
pub fn parse_type_name(name: &str) -> (&str, &str) {
    let (plural, group) = name.split_once('.').unwrap_or((name, CORE));
    (if group == CORE { "" } else { group }, plural)
}

/// The name of the NegotiatedAPIResource of a type: `<plural>.<version>.<group>`, core being called
/// [`CORE`]. Names of types leave room for a version only up to a point; past it, the end is
/// replaced by `digest` (SHA-256) of the whole.
pub fn type_object_name(name: TypeName<'_>, digest: impl FnOnce(&str) -> [u8; 32]) -> String {
    bounded(whole(name), digest)
}

/// The name of what a target tells of a type: `<plural>.<version>.<group>--<target>`, shortened as
/// [`type_object_name`] is.
pub fn import_name(
    name: TypeName<'_>,
    target: &str,
    digest: impl FnOnce(&str) -> [u8; 32],
) -> String {
    bounded(format!("{}--{target}", whole(name)), digest)
}

fn whole(name: TypeName<'_>) -> String {
    let TypeName { group, version, plural } = name;
    format!("{plural}.{version}.{}", if group.is_empty() { CORE } else { group })
}

/// A name with the digest of the whole at its end, if it is too long. Twenty digits tell names apart
/// that nobody made to collide; names that somebody made are of one logical cluster.
fn bounded(name: String, digest: impl FnOnce(&str) -> [u8; 32]) -> String {
    const DIGITS: usize = 20;
    if name.len() <= LONGEST_OBJECT_NAME {
        return name;
    }
    let mut hash = String::new();
    hexadecimal(&digest(&name), &mut hash);
    let head: String = name.chars().take(LONGEST_OBJECT_NAME - DIGITS - 1).collect();
    let hash: String = hash.chars().take(DIGITS).collect();
    format!("{}-{hash}", head.trim_end_matches(['.', '-']))
}

fn hexadecimal(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        for half in [byte >> 4, byte & 15] {
            text.push(char::from_digit(half.into(), 16).unwrap_or('0'));
        }
    }
}

/// The group and the plural of definitions of types, CustomResourceDefinitions.
pub const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Whether the names in a SyncTarget's `spec.resources` ask for definitions of types. They go down
/// only where they are named by their own name: what stands for all types does not stand for them.
pub fn asks_for_definitions<'a>(resources: impl IntoIterator<Item = &'a str>) -> bool {
    resources.into_iter().any(|name| parse_type_name(name) == DEFINITIONS)
}

/// Why objects of a type are not sent to a SyncTarget whose namespaces are called by hashes, if they
/// aren't.
pub fn why_not_hashed(group: &str, plural: &str) -> Option<&'static str> {
    match (group, plural) {
        ("networking.k8s.io", "networkpolicies") => Some(
            "with namespaceMapping Hashed its namespace selectors would let in other logical \
             clusters' pods",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENTS: TypeName<'_> =
        TypeName { group: "apps", version: "v1", plural: "deployments" };

    #[test]
    fn names() {
        let none = |_: &str| [0; 32];
        assert_eq!(type_object_name(DEPLOYMENTS, none), "deployments.v1.apps");
        assert_eq!(import_name(DEPLOYMENTS, "east", none), "deployments.v1.apps--east");
        let core = TypeName { group: "", version: "v1", plural: "services" };
        assert_eq!(type_object_name(core, none), "services.v1.core");
        assert_eq!(type_name("", "services"), "services.core");
        assert_eq!(type_name("apps", "deployments"), "deployments.apps");
        assert_eq!(parse_type_name("deployments.apps"), ("apps", "deployments"));
        assert_eq!(parse_type_name("things.x.io"), ("x.io", "things"));
        for core in ["services", "services.core"] {
            assert_eq!(parse_type_name(core), ("", "services"));
        }
        let name = schema_name(&[0xa5; 32]);
        assert_eq!(name, format!("sha256-{}", "a5".repeat(32)));
    }

    #[test]
    fn definitions_are_asked_for_by_name() {
        assert_eq!(type_name(DEFINITIONS.0, DEFINITIONS.1), DEFINITIONS_NAME);
        for (resources, expect) in [
            (&[][..], false),
            (&["*"], false),
            (&["*.apiextensions.k8s.io"], false),
            (&["customresourcedefinitions"], false),
            (&["services", DEFINITIONS_NAME], true),
        ] {
            let asked = asks_for_definitions(resources.iter().copied());
            assert_eq!(asked, expect, "{resources:?}");
        }
    }

    const DEFINITIONS_NAME: &str = "customresourcedefinitions.apiextensions.k8s.io";

    #[test]
    fn long_names_end_with_a_digest() {
        let group = "g".repeat(240);
        let long = TypeName { group: &group, version: "v1", plural: "things" };
        let name = import_name(long, "east", |whole| {
            assert!(whole.ends_with("--east"));
            [0x12; 32]
        });
        assert_eq!(name.len(), LONGEST_OBJECT_NAME);
        assert!(name.starts_with("things.v1.ggg"), "{name}");
        assert!(name.ends_with(&format!("-{}", "12".repeat(10))), "{name}");
    }
}
