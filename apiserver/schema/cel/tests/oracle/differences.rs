//! Where an outcome differs from upstream's on purpose: the expression, and why.

const RECOVERY: &str = "one syntax error is the same, its words or what upstream's parser says after \
                        recovering from it are not";

/// Expression and reason.
pub(crate) const DIFFERENT: &[(&str, &str)] = &[
    ("optional_type", "the name of the type has a parameter, which nothing but this text shows"),
    ("duration", "the name of no type: upstream refuses it when it makes the program"),
    ("google.protobuf.Duration{}", "messages of protobuf can't be made"),
    ("{'a', 1}", RECOVERY),
    ("a.in", RECOVERY),
    ("!", RECOVERY),
    ("-", RECOVERY),
    ("!!", RECOVERY),
    ("--", RECOVERY),
    ("a.?[0]", RECOVERY),
    ("T{1: 2}", RECOVERY),
];
