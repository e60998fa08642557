//! Messages of OpenAPI v2.

use serde_json::Value;

use super::Kind::{Choice, Double, Flag, Integer, Many, One, Present, Text, Yaml};
use super::{Field, Kind, Message, Rest, is_reference};

/// Numbers of the fields of a document that are written apart.
pub(super) const PATHS_FIELD: u32 = 8;
pub(super) const DEFINITIONS_FIELD: u32 = 9;

pub(super) static DOCUMENT: Message = Message {
    fields: &[
        Field("swagger", 1, Text),
        Field("info", 2, One(&INFO)),
        Field("paths", PATHS_FIELD, One(&PATHS)),
        Field("definitions", DEFINITIONS_FIELD, One(&DEFINITIONS)),
        Field("parameters", 10, One(&PARAMETERS)),
        Field("security", 12, Many(&One(&REQUIREMENT))),
        Field("securityDefinitions", 13, One(&SECURITY)),
    ],
    rest: Rest::Extensions(16),
};

static INFO: Message = Message {
    fields: &[Field("title", 1, Text), Field("version", 2, Text), Field("description", 3, Text)],
    rest: Rest::Extensions(7),
};

pub(super) static PATHS: Message = Message { fields: &[], rest: Rest::Both(1, 2, One(&PATH)) };

static PATH: Message = Message {
    fields: &[
        Field("get", 2, One(&OPERATION)),
        Field("put", 3, One(&OPERATION)),
        Field("post", 4, One(&OPERATION)),
        Field("delete", 5, One(&OPERATION)),
        Field("patch", 8, One(&OPERATION)),
        Field("parameters", 9, Many(&Choice(parameter_item))),
    ],
    rest: Rest::Extensions(10),
};

static OPERATION: Message = Message {
    fields: &[
        Field("tags", 1, Many(&Text)),
        Field("summary", 2, Text),
        Field("description", 3, Text),
        Field("operationId", 5, Text),
        Field("produces", 6, Many(&Text)),
        Field("consumes", 7, Many(&Text)),
        Field("parameters", 8, Many(&Choice(parameter_item))),
        Field("responses", 9, One(&RESPONSES)),
        Field("schemes", 10, Many(&Text)),
        Field("deprecated", 11, Flag),
    ],
    rest: Rest::Extensions(13),
};

static RESPONSES: Message = Message { fields: &[], rest: Rest::Both(2, 1, Choice(response)) };

static RESPONSE: Message = Message {
    fields: &[Field("description", 1, Text), Field("schema", 2, Choice(whole_schema))],
    rest: Rest::Extensions(5),
};

static PARAMETERS: Message = Message { fields: &[], rest: Rest::Named(1, Choice(parameter)) };

static BODY_PARAMETER: Message = Message {
    fields: &[
        Field("description", 1, Text),
        Field("name", 2, Text),
        Field("in", 3, Text),
        Field("required", 4, Flag),
        Field("schema", 5, One(&SCHEMA)),
    ],
    rest: Rest::Extensions(6),
};

static QUERY_PARAMETER: Message = Message {
    fields: &[
        Field("required", 1, Flag),
        Field("in", 2, Text),
        Field("description", 3, Text),
        Field("name", 4, Text),
        Field("type", 6, Text),
        Field("format", 7, Text),
        Field("uniqueItems", 20, Flag),
    ],
    rest: Rest::Extensions(23),
};

static PATH_PARAMETER: Message = Message {
    fields: &[
        Field("required", 1, Flag),
        Field("in", 2, Text),
        Field("description", 3, Text),
        Field("name", 4, Text),
        Field("type", 5, Text),
        Field("format", 6, Text),
        Field("uniqueItems", 19, Flag),
    ],
    rest: Rest::Extensions(22),
};

pub(super) static DEFINITIONS: Message =
    Message { fields: &[], rest: Rest::Named(1, One(&SCHEMA)) };

static SCHEMA: Message = Message {
    fields: &[
        Field("$ref", 1, Text),
        Field("format", 2, Text),
        Field("title", 3, Text),
        Field("description", 4, Text),
        Field("default", 5, Yaml),
        Field("multipleOf", 6, Double),
        Field("maximum", 7, Double),
        Field("exclusiveMaximum", 8, Flag),
        Field("minimum", 9, Double),
        Field("exclusiveMinimum", 10, Flag),
        Field("maxLength", 11, Integer),
        Field("minLength", 12, Integer),
        Field("pattern", 13, Text),
        Field("maxItems", 14, Integer),
        Field("minItems", 15, Integer),
        Field("uniqueItems", 16, Flag),
        Field("maxProperties", 17, Integer),
        Field("minProperties", 18, Integer),
        Field("required", 19, Many(&Text)),
        Field("enum", 20, Many(&Yaml)),
        Field("additionalProperties", 21, Choice(additional)),
        Field("type", 22, Choice(kind)),
        Field("items", 23, Choice(whole_schema)),
        Field("allOf", 24, Many(&One(&SCHEMA))),
        Field("properties", 25, One(&DEFINITIONS)),
        Field("externalDocs", 29, One(&EXTERNAL_DOCS)),
        Field("example", 30, Yaml),
    ],
    rest: Rest::Extensions(31),
};

static EXTERNAL_DOCS: Message = Message {
    fields: &[Field("description", 1, Text), Field("url", 2, Text)],
    rest: Rest::Extensions(3),
};

static REFERENCE: Message = Message {
    fields: &[Field("$ref", 1, Text), Field("description", 2, Text)],
    rest: Rest::Dropped,
};

static SECURITY: Message = Message { fields: &[], rest: Rest::Named(1, Choice(security)) };

static API_KEY: Message = Message {
    fields: &[
        Field("type", 1, Text),
        Field("name", 2, Text),
        Field("in", 3, Text),
        Field("description", 4, Text),
    ],
    rest: Rest::Extensions(5),
};

/// Names of schemes, with the scopes that are needed.
static REQUIREMENT: Message = Message { fields: &[], rest: Rest::Named(1, Choice(scopes)) };

fn parameter_item(value: &Value) -> Option<(u32, Kind)> {
    Some(if is_reference(value) { (2, One(&REFERENCE)) } else { (1, Choice(parameter)) })
}

fn parameter(value: &Value) -> Option<(u32, Kind)> {
    let body = value.get("in").is_some_and(|place| place == "body");
    Some(if body { (1, One(&BODY_PARAMETER)) } else { (2, Choice(plain_parameter)) })
}

fn plain_parameter(value: &Value) -> Option<(u32, Kind)> {
    let path = value.get("in").is_some_and(|place| place == "path");
    Some(if path { (4, One(&PATH_PARAMETER)) } else { (3, One(&QUERY_PARAMETER)) })
}

fn response(value: &Value) -> Option<(u32, Kind)> {
    Some(if is_reference(value) { (2, One(&REFERENCE)) } else { (1, One(&RESPONSE)) })
}

/// The only schema of a list's items, or the schema of a response.
fn whole_schema(_: &Value) -> Option<(u32, Kind)> {
    Some((1, One(&SCHEMA)))
}

fn additional(value: &Value) -> Option<(u32, Kind)> {
    Some(if value.is_boolean() { (2, Present(&Flag)) } else { (1, One(&SCHEMA)) })
}

/// A type is a list of one.
fn kind(_: &Value) -> Option<(u32, Kind)> {
    Some((1, Text))
}

fn scopes(_: &Value) -> Option<(u32, Kind)> {
    Some((1, Many(&Text)))
}

fn security(_: &Value) -> Option<(u32, Kind)> {
    Some((2, One(&API_KEY)))
}
