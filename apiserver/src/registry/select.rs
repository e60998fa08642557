//! Selection by labels and fields.

use std::borrow::Cow;
use std::sync::Arc;

use machinery::selector::{FieldSelector, LabelSelector};
use schema::resource::ResourceDef;
use serde_json::Value;
use store::cache::{Event, Filter, Object};

use super::agents::Reach;
use crate::registry::{Error, Registry, conversion};

/// The objects that a list or a watch is about.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    resource: Arc<ResourceDef>,
    /// Whether a field is asked for that only the body has.
    parses: bool,
    /// The logical clusters of which an agent sees objects, unless it is none that asks.
    reach: Option<Arc<Reach>>,
}

/// Upstream has other words for kinds that have no fields of their own to be selected by.
fn unsupported(resource: &ResourceDef, path: &str) -> String {
    if resource.field_selectors.is_empty() {
        return format!(
            "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
    }
    format!("field label not supported: {path}")
}

// === impl Selection ===

impl Selection {
    /// Checks that the fields are ones that the resource can be selected by.
    ///
    /// # Errors
    /// 400 for any other.
    pub(super) fn new(
        labels: LabelSelector,
        fields: FieldSelector,
        resource: Arc<ResourceDef>,
    ) -> Result<Self, Error> {
        let mut parses = false;
        for requirement in fields.requirements() {
            if matches!(&*requirement.path, "metadata.name" | "metadata.namespace") {
                continue;
            }
            if resource.field_selector(&requirement.path).is_none() {
                return Err(Error::bad_request(unsupported(&resource, &requirement.path)));
            }
            parses = true;
        }
        Ok(Self { labels, fields, resource, parses, reach: None })
    }

    /// The same of the logical clusters that an agent sees.
    pub(super) fn within(self, reach: Option<Arc<Reach>>) -> Self {
        Self { reach, ..self }
    }

    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.reach.is_none()
    }

    /// The one name that can be selected, if the selector says so.
    pub(super) fn name(&self) -> Option<&str> {
        self.fields.exact("metadata.name")
    }

    pub(super) fn matches(&self, object: &Object) -> bool {
        self.matches_header(object)
            && (!self.parses || self.matches_body(object))
            && self.reach.as_ref().is_none_or(|reach| reach.contains(&object.key.object().cluster))
    }

    /// What can be told without parsing, and without looking at anything else.
    fn matches_header(&self, object: &Object) -> bool {
        let header = &object.header;
        self.labels.matches(|key| header.label(key))
            && self.fields.requirements().iter().all(|requirement| {
                let one = FieldSelector::new(vec![requirement.clone()]);
                match &*requirement.path {
                    "metadata.name" => one.matches(|_| Some(Cow::Borrowed(header.name()))),
                    "metadata.namespace" => {
                        one.matches(|_| Some(Cow::Borrowed(header.namespace())))
                    }
                    _ => true,
                }
            })
    }

    fn matches_body(&self, object: &Object) -> bool {
        let Ok(mut value) = serde_json::from_slice::<Value>(&object.json()) else {
            return false;
        };
        if self.resource.view_of.is_some() {
            let kind = Registry::kind(&self.resource, "");
            value = conversion::from_stored(&self.resource, value, &kind);
        }
        self.fields.matches(|path| match path {
            "metadata.name" => Some(Cow::Borrowed(object.header.name())),
            "metadata.namespace" => Some(Cow::Borrowed(object.header.namespace())),
            path => {
                let selector = self.resource.field_selector(path)?;
                Some(Cow::Owned(selector.value(&value).into_owned()))
            }
        })
    }

    /// A filter for the cache's feeder: it parses nothing, so it may let too much through.
    pub(super) fn filter(&self) -> Option<Filter> {
        if self.is_everything() {
            return None;
        }
        let selection = self.clone();
        Some(Arc::new(move |event: &Event| {
            let sides = [&event.previous, &event.current];
            sides.into_iter().flatten().any(|object| selection.matches_header(object))
        }))
    }
}
