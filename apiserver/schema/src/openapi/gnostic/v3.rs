//! Messages of OpenAPI v3.

use serde_json::Value;

use super::Kind::{Choice, Double, Flag, Integer, Many, One, Present, Text, Yaml};
use super::{Field, Kind, Message, Rest, is_reference};

pub(super) static DOCUMENT: Message = Message {
    fields: &[
        Field("openapi", 1, Text),
        Field("info", 2, One(&INFO)),
        Field("paths", 4, One(&PATHS)),
        Field("components", 5, One(&COMPONENTS)),
    ],
    rest: Rest::Extensions(9),
};

static INFO: Message = Message {
    fields: &[Field("title", 1, Text), Field("description", 2, Text), Field("version", 6, Text)],
    rest: Rest::Extensions(7),
};

static PATHS: Message = Message { fields: &[], rest: Rest::Both(2, 1, One(&PATH)) };

static PATH: Message = Message {
    fields: &[
        Field("get", 4, One(&OPERATION)),
        Field("put", 5, One(&OPERATION)),
        Field("post", 6, One(&OPERATION)),
        Field("delete", 7, One(&OPERATION)),
        Field("patch", 10, One(&OPERATION)),
        Field("parameters", 13, Many(&Choice(parameter))),
    ],
    rest: Rest::Extensions(14),
};

static OPERATION: Message = Message {
    fields: &[
        Field("tags", 1, Many(&Text)),
        Field("summary", 2, Text),
        Field("description", 3, Text),
        Field("operationId", 5, Text),
        Field("parameters", 6, Many(&Choice(parameter))),
        Field("requestBody", 7, Choice(request)),
        Field("responses", 8, One(&RESPONSES)),
        Field("deprecated", 10, Flag),
    ],
    rest: Rest::Extensions(13),
};

static PARAMETER: Message = Message {
    fields: &[
        Field("name", 1, Text),
        Field("in", 2, Text),
        Field("description", 3, Text),
        Field("required", 4, Flag),
        Field("schema", 10, Choice(schema)),
    ],
    rest: Rest::Extensions(14),
};

static REQUEST: Message = Message {
    fields: &[
        Field("description", 1, Text),
        Field("content", 2, One(&CONTENT)),
        Field("required", 3, Flag),
    ],
    rest: Rest::Extensions(4),
};

static RESPONSES: Message = Message { fields: &[], rest: Rest::Both(3, 2, Choice(response)) };

static RESPONSE: Message = Message {
    fields: &[Field("description", 1, Text), Field("content", 3, One(&CONTENT))],
    rest: Rest::Extensions(5),
};

static CONTENT: Message = Message { fields: &[], rest: Rest::Named(1, One(&MEDIA)) };

static MEDIA: Message =
    Message { fields: &[Field("schema", 1, Choice(schema))], rest: Rest::Extensions(5) };

static COMPONENTS: Message = Message {
    fields: &[
        Field("schemas", 1, One(&SCHEMAS)),
        Field("securitySchemes", 7, One(&SECURITY_SCHEMES)),
    ],
    rest: Rest::Extensions(10),
};

static SCHEMAS: Message = Message { fields: &[], rest: Rest::Named(1, Choice(schema)) };

static SECURITY_SCHEMES: Message =
    Message { fields: &[], rest: Rest::Named(1, Choice(security_scheme)) };

static SECURITY_SCHEME: Message = Message {
    fields: &[
        Field("type", 1, Text),
        Field("description", 2, Text),
        Field("name", 3, Text),
        Field("in", 4, Text),
    ],
    rest: Rest::Extensions(9),
};

static SCHEMA: Message = Message {
    fields: &[
        Field("nullable", 1, Flag),
        Field("externalDocs", 6, One(&EXTERNAL_DOCS)),
        Field("example", 7, Yaml),
        Field("title", 9, Text),
        Field("multipleOf", 10, Double),
        Field("maximum", 11, Double),
        Field("exclusiveMaximum", 12, Flag),
        Field("minimum", 13, Double),
        Field("exclusiveMinimum", 14, Flag),
        Field("maxLength", 15, Integer),
        Field("minLength", 16, Integer),
        Field("pattern", 17, Text),
        Field("maxItems", 18, Integer),
        Field("minItems", 19, Integer),
        Field("uniqueItems", 20, Flag),
        Field("maxProperties", 21, Integer),
        Field("minProperties", 22, Integer),
        Field("required", 23, Many(&Text)),
        Field("enum", 24, Many(&Yaml)),
        Field("type", 25, Text),
        Field("allOf", 26, Many(&Choice(schema))),
        Field("oneOf", 27, Many(&Choice(schema))),
        Field("anyOf", 28, Many(&Choice(schema))),
        Field("not", 29, One(&SCHEMA)),
        Field("items", 30, Choice(items)),
        Field("properties", 31, One(&SCHEMAS)),
        Field("additionalProperties", 32, Choice(additional)),
        Field("default", 33, Choice(default)),
        Field("description", 34, Text),
        Field("format", 35, Text),
    ],
    rest: Rest::Extensions(36),
};

static EXTERNAL_DOCS: Message = Message {
    fields: &[Field("description", 1, Text), Field("url", 2, Text)],
    rest: Rest::Extensions(3),
};

static REFERENCE: Message = Message {
    fields: &[Field("$ref", 1, Text), Field("description", 3, Text)],
    rest: Rest::Dropped,
};

/// What is given, or a reference to it.
fn or_reference(value: &Value, message: &'static Message) -> Option<(u32, Kind)> {
    Some(if is_reference(value) { (2, One(&REFERENCE)) } else { (1, One(message)) })
}

fn schema(value: &Value) -> Option<(u32, Kind)> {
    or_reference(value, &SCHEMA)
}

fn parameter(value: &Value) -> Option<(u32, Kind)> {
    or_reference(value, &PARAMETER)
}

fn request(value: &Value) -> Option<(u32, Kind)> {
    or_reference(value, &REQUEST)
}

fn response(value: &Value) -> Option<(u32, Kind)> {
    or_reference(value, &RESPONSE)
}

fn security_scheme(value: &Value) -> Option<(u32, Kind)> {
    or_reference(value, &SECURITY_SCHEME)
}

/// A list has one schema for its items.
fn items(_: &Value) -> Option<(u32, Kind)> {
    Some((1, Choice(schema)))
}

fn additional(value: &Value) -> Option<(u32, Kind)> {
    Some(if value.is_boolean() { (2, Present(&Flag)) } else { (1, Choice(schema)) })
}

/// Defaults that are lists or objects can't be said.
fn default(value: &Value) -> Option<(u32, Kind)> {
    match value {
        Value::Number(_) => Some((1, Present(&Double))),
        Value::Bool(_) => Some((2, Present(&Flag))),
        Value::String(_) => Some((3, Present(&Text))),
        _ => None,
    }
}
