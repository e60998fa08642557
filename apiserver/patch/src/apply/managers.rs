//! Who owns what: `metadata.managedFields`, decoded.
//!
//! A manager is known by its name, operation, subresource and, for updates, apiVersion. Whoever
//! applies and updates under one name is two managers.

use std::cmp::Ordering;

use machinery::time::Time;
use serde_json::{Map, Value};

use super::set::{FieldSet, InvalidSet};
use super::value::push_string;

/// How a manager came to its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

/// What identifies a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerId {
    /// The name that it gives itself.
    pub name: Box<str>,
    /// How it writes.
    pub operation: Operation,
    /// The version of its fields; empty for [`Operation::Apply`], where all are one manager.
    pub api_version: Box<str>,
    /// The subresource that it writes to; empty for the object itself.
    pub subresource: Box<str>,
}

/// One manager and its fields.
#[derive(Clone, Debug)]
pub struct Owner {
    /// Who it is.
    pub id: ManagerId,
    /// The version that the fields are of.
    pub api_version: Box<str>,
    /// What it owns.
    pub fields: FieldSet,
    /// When it last changed something.
    pub time: Option<Time>,
    /// Its wire form, as long as nothing of it has changed: most owners outlive most writes.
    pub(super) source: Option<Box<Value>>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default)]
pub struct Managers {
    owners: Vec<Owner>,
}

/// Why a value is no list of managed fields, as upstream words it.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidManagers {
    /// It is no list, or an item is no object.
    #[error("managed fields are no list of objects")]
    NoList,
    /// Of an item.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// Of an item.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// Of an item.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// Of an item.
    #[error("invalid fieldsType {1:?} in managed fields entry {0}")]
    FieldsType(usize, Box<str>),
    /// Of an item.
    #[error("time is no time")]
    Time,
    /// Of an item.
    #[error("error decoding set: {0}")]
    Set(#[from] InvalidSet),
}

/// The only type of fields that there is.
const FIELDS_V1: &str = "FieldsV1";

// === impl Operation ===

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

// === impl ManagerId ===

impl ManagerId {
    /// The text by which upstream keeps and sorts managers.
    pub(super) fn sort_key(&self) -> String {
        let mut out = String::from("{");
        let parts = [
            ("manager", &*self.name),
            ("operation", self.operation.as_str()),
            ("apiVersion", &*self.api_version),
            ("subresource", &*self.subresource),
        ];
        for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
            if out.len() > 1 {
                out.push(',');
            }
            push_string(&mut out, name, true);
            out.push(':');
            push_string(&mut out, value, true);
        }
        out.push('}');
        out
    }
}

// === impl Owner ===

impl Owner {
    fn parse(at: usize, entry: &Value) -> Result<Self, InvalidManagers> {
        let entry = entry.as_object().ok_or(InvalidManagers::NoList)?;
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(InvalidManagers::Operation),
        };
        let api_version = text("apiVersion");
        if api_version.is_empty() {
            return Err(InvalidManagers::ApiVersion);
        }
        match text("fieldsType") {
            FIELDS_V1 => {}
            "" => return Err(InvalidManagers::NoFieldsType(at)),
            other => return Err(InvalidManagers::FieldsType(at, other.into())),
        }
        let fields = entry.get("fieldsV1").map(FieldSet::from_value).transpose()?;
        let time = match text("time") {
            "" => None,
            time => Some(Time::parse(time).map_err(|_| InvalidManagers::Time)?),
        };
        let of_id = if operation == Operation::Apply { "" } else { api_version };
        let id = ManagerId {
            name: text("manager").into(),
            operation,
            api_version: of_id.into(),
            subresource: text("subresource").into(),
        };
        let (api_version, fields) = (api_version.into(), fields.unwrap_or_default());
        Ok(Self { id, api_version, fields, time, source: None })
    }

    /// Takes fields away.
    pub(super) fn lose(&mut self, fields: &FieldSet) {
        if self.fields.subtract(fields) {
            self.source = None;
        }
    }

    fn into_value(self) -> Value {
        if let Some(source) = self.source {
            return *source;
        }
        let mut entry = Map::new();
        let time = self.time.map(|time| time.to_string()).unwrap_or_default();
        let parts = [
            ("manager", &*self.id.name),
            ("operation", self.id.operation.as_str()),
            ("apiVersion", &*self.api_version),
            ("time", &*time),
            ("fieldsType", FIELDS_V1),
            ("subresource", &*self.id.subresource),
        ];
        for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
            entry.insert(name.to_owned(), Value::String(value.to_owned()));
        }
        entry.insert("fieldsV1".to_owned(), self.fields.to_value());
        Value::Object(entry)
    }

    /// Its time in seconds, as entries are sorted by.
    pub(super) fn seconds(&self) -> i64 {
        self.time.map_or(0, |time| time.timestamp().as_second())
    }

    /// The order on the wire.
    fn order(&self, other: &Self) -> Ordering {
        let operation = self.id.operation.cmp(&other.id.operation);
        operation
            .then_with(|| self.seconds().cmp(&other.seconds()))
            .then_with(|| self.id.name.cmp(&other.id.name))
            .then_with(|| self.api_version.cmp(&other.api_version))
            .then_with(|| self.id.subresource.cmp(&other.id.subresource))
    }
}

// === impl Managers ===

impl Managers {
    /// Reads `metadata.managedFields`. Of two entries for one manager the later counts.
    ///
    /// # Errors
    /// [`InvalidManagers`] for the first entry that is none.
    pub fn from_value(value: &Value) -> Result<Self, InvalidManagers> {
        let entries = value.as_array().ok_or(InvalidManagers::NoList)?;
        let mut managers = Self { owners: Vec::with_capacity(entries.len()) };
        for (at, entry) in entries.iter().enumerate() {
            managers.owners.push(Owner::parse(at, entry)?);
        }
        managers.join_equal();
        Ok(managers)
    }

    /// As [`from_value`](Self::from_value), of what this module has written: what doesn't change is
    /// written again as it is.
    ///
    /// # Errors
    /// As there.
    pub(super) fn from_written(value: Value) -> Result<Self, InvalidManagers> {
        let Value::Array(entries) = value else { return Err(InvalidManagers::NoList) };
        let mut managers = Self { owners: Vec::with_capacity(entries.len()) };
        for (at, entry) in entries.into_iter().enumerate() {
            let owner = Owner::parse(at, &entry)?;
            managers.owners.push(Owner { source: Some(Box::new(entry)), ..owner });
        }
        managers.join_equal();
        Ok(managers)
    }

    fn join_equal(&mut self) {
        const FEW: usize = 32;
        if self.owners.len() <= FEW {
            let mut kept: Vec<Owner> = Vec::with_capacity(self.owners.len());
            for owner in self.owners.drain(..) {
                match kept.iter_mut().find(|other| other.id == owner.id) {
                    Some(other) => *other = owner,
                    None => kept.push(owner),
                }
            }
            self.owners = kept;
            return;
        }
        // So many come from nobody who means well, and shall not cost the square of their number.
        let mut keyed: Vec<(String, Owner)> =
            self.owners.drain(..).map(|owner| (owner.id.sort_key(), owner)).collect();
        keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (key, owner) in keyed {
            match self.owners.last_mut().filter(|last| last.id.sort_key() == key) {
                Some(last) => *last = owner,
                None => self.owners.push(owner),
            }
        }
    }

    /// The wire form, sorted; `None` when there are none.
    pub fn into_value(self) -> Option<Value> {
        let mut owners = self.owners;
        if owners.is_empty() {
            return None;
        }
        owners.sort_by(Owner::order);
        Some(Value::Array(owners.into_iter().map(Owner::into_value).collect()))
    }

    /// Whether nobody owns anything.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The managers, in no order.
    pub fn owners(&self) -> &[Owner] {
        &self.owners
    }

    pub(super) fn owners_mut(&mut self) -> &mut Vec<Owner> {
        &mut self.owners
    }

    /// The manager of that identity.
    pub fn get(&self, id: &ManagerId) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.id == *id)
    }

    pub(super) fn get_mut(&mut self, id: &ManagerId) -> Option<&mut Owner> {
        self.owners.iter_mut().find(|owner| owner.id == *id)
    }

    pub(super) fn take(&mut self, id: &ManagerId) -> Option<Owner> {
        let at = self.owners.iter().position(|owner| owner.id == *id)?;
        Some(self.owners.swap_remove(at))
    }

    /// Gives a manager these fields instead of its own; it keeps its time.
    pub(super) fn set(&mut self, id: &ManagerId, api_version: &str, fields: FieldSet) {
        if let Some(owner) = self.get_mut(id) {
            owner.api_version = api_version.into();
            owner.fields = fields;
            owner.source = None;
            return;
        }
        let (id, api_version) = (id.clone(), api_version.into());
        self.owners.push(Owner { id, api_version, fields, time: None, source: None });
    }
}
