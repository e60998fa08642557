//! The order of API versions: `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, then the rest.

use std::cmp::Ordering;

/// A version that follows Kubernetes' naming.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct KubeVersion {
    stability: Stability,
    major: i64,
    minor: i64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Stable,
}

/// Compares two versions so that sorting puts the most preferred first.
///
/// Stable before beta before alpha, the higher number first; names that don't follow the scheme
/// come last, in alphabetical order (`CompareKubeAwareVersionStrings`, reversed).
pub fn compare(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a_version), Some(b_version)) => b_version.cmp(&a_version).then_with(|| a.cmp(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// `v1`, `v1beta2`, `v3alpha1`; numbers fit an `i64` as Go's `Atoi` demands.
fn parse(version: &str) -> Option<KubeVersion> {
    let rest = version.strip_prefix('v')?;
    let (major, rest) = split_number(rest)?;
    let (stability, rest) = if rest.is_empty() {
        return Some(KubeVersion { stability: Stability::Stable, major, minor: 0 });
    } else if let Some(rest) = rest.strip_prefix("alpha") {
        (Stability::Alpha, rest)
    } else {
        (Stability::Beta, rest.strip_prefix("beta")?)
    };
    let (minor, rest) = split_number(rest)?;
    rest.is_empty().then_some(KubeVersion { stability, major, minor })
}

fn split_number(text: &str) -> Option<(i64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_most_preferred_comes_first() {
        let order = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v1beta10",
            "v1beta2",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v1beta",
            "v1gamma1",
            "v99999999999999999999",
        ];
        let mut sorted = order;
        sorted.reverse();
        sorted.sort_by(|a, b| compare(a, b));
        assert_eq!(sorted, order);
    }

    proptest! {
        #[test]
        fn it_is_an_order(a in "v[0-9]{0,2}(alpha|beta)?[0-9]{0,2}", b: String, c in "v[0-9]{1,2}") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &a), Ordering::Equal);
            let mut three = [a.as_str(), b.as_str(), c.as_str()];
            three.sort_by(|a, b| compare(a, b));
            prop_assert_ne!(compare(three[0], three[2]), Ordering::Greater);
        }
    }
}
