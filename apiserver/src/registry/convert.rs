//! Conversion of custom resources between versions, where a webhook has to be asked.
//!
//! # Guarantees
//! - The webhook of a logical cluster sees objects of that logical cluster only, also when a
//!   request is about all of them.
//! - What it made of an object is kept with the object, so that it is asked once for each object
//!   and version, however many watch it. Only lists that run at once may ask twice.
//! - A batch is of one logical cluster, and bounded.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use machinery::{ClusterName, Gvk};
use parking_lot::Mutex;
use schema::crd::{Conversion, CustomType, Webhook};
use serde_json::Value;
use store::cache::Object;
use store::{Key, Revision};

use super::typing::Typing;
use super::view::{Lens, Shown};
use crate::registry::{Error, Reason, Registry, Target, View, conversion};
use crate::webhook;

/// Most objects of one review.
const BATCH: usize = 500;

/// Most bytes of objects in one review: about what a request may have.
const BATCH_BYTES: usize = 3 * 1024 * 1024;

/// Conversions that are being asked for, so that others wait for their outcome.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<Turns>);

type Turns = BTreeMap<(Key, Revision, Arc<str>), Weak<tokio::sync::Mutex<()>>>;

impl Registry {
    /// An object as `lens` shows it.
    ///
    /// # Errors
    /// 500 if a webhook has to convert it and does not.
    pub(super) async fn view(&self, lens: &Lens, object: Arc<Object>) -> Result<View, Error> {
        if let Some(view) = self.ready(lens, &object)? {
            return Ok(view);
        }
        let turn = match lens.kind() {
            Some(kind) => self.asked.turn(&object, &kind.group_version.version),
            None => Arc::default(),
        };
        let _turn = turn.lock().await;
        // Whoever had the turn before may have got it.
        match self.ready(lens, &object)? {
            Some(view) => Ok(view),
            None => {
                let views = Box::pin(self.views(lens, vec![object])).await?;
                let view = views.into_iter().next();
                view.ok_or_else(|| Error::internal("an object without a view"))
            }
        }
    }

    /// Objects as `lens` shows them. Webhooks are asked in batches.
    ///
    /// # Errors
    /// 500 if a webhook has to convert one and does not.
    pub(super) async fn views(
        &self,
        lens: &Lens,
        objects: Vec<Arc<Object>>,
    ) -> Result<Vec<View>, Error> {
        let mut views = Vec::with_capacity(objects.len());
        let mut missing: BTreeMap<ClusterName, Vec<usize>> = BTreeMap::new();
        for (index, object) in objects.iter().enumerate() {
            let view = self.ready(lens, object)?;
            if view.is_none() {
                missing.entry(object.key.object().cluster).or_default().push(index);
            }
            views.push(view);
        }
        for (cluster, places) in missing {
            for batch in batches(&objects, &places) {
                let originals: Vec<_> =
                    batch.iter().filter_map(|at| objects.get(*at).cloned()).collect();
                let converted = Box::pin(self.ask(lens, &cluster, &originals)).await?;
                for (at, json) in batch.iter().zip(converted) {
                    if let (Some(view), Some(object)) = (views.get_mut(*at), objects.get(*at)) {
                        *view = Some(Self::seen(lens, json, object.clone()));
                    }
                }
            }
        }
        let all = views.into_iter().collect::<Option<Vec<_>>>();
        all.ok_or_else(|| Error::internal("an object without a view"))
    }

    /// Asks the webhook of a logical cluster for objects of one kind and version. Keeps the
    /// answers with the objects.
    async fn ask(
        &self,
        lens: &Lens,
        cluster: &ClusterName,
        objects: &[Arc<Object>],
    ) -> Result<Vec<Bytes>, Error> {
        let own = objects.first().and_then(|object| self.own_typing(lens, object));
        let (Some(kind), Some(typing)) = (lens.kind(), own.as_deref()) else {
            return Err(Error::internal("a conversion without a type"));
        };
        let Some(custom) = typing.custom_type() else {
            return Err(Error::internal("a conversion of a built-in type"));
        };
        let values = objects.iter().map(|object| serde_json::from_slice(&object.json()));
        let values = values.collect::<Result<Vec<Value>, _>>().map_err(Error::internal)?;
        let converted = self.converted_by(custom, cluster, values, kind).await?;
        let mut all = Vec::with_capacity(objects.len());
        for (object, value) in objects.iter().zip(converted) {
            let json = Self::repaired(typing, kind, value)?;
            all.push(Shown::keep(object, typing.hash(), kind, Arc::downgrade(custom), json));
        }
        Ok(all)
    }

    /// An object of the target's version as its storage has it.
    ///
    /// # Errors
    /// 500 if a webhook has to convert it and does not.
    pub(super) async fn to_storage(
        &self,
        target: &Target,
        object: Value,
        stored: &Gvk,
    ) -> Result<Value, Error> {
        match &target.custom {
            Some(custom) if matches!(custom.conversion, Conversion::Webhook(_)) => {
                let cluster = Self::cluster(target)?;
                Box::pin(self.converted_one(custom, cluster, object, stored)).await
            }
            _ => Ok(conversion::to_stored(&target.resource, object, stored)),
        }
    }

    /// One object, converted by the webhook of its type, if it has one.
    pub(super) async fn converted_one(
        &self,
        custom: &Arc<CustomType>,
        cluster: &ClusterName,
        object: Value,
        kind: &Gvk,
    ) -> Result<Value, Error> {
        let converted = self.converted_by(custom, cluster, vec![object], kind).await?;
        converted.into_iter().next().ok_or_else(|| Error::internal("an answer without its object"))
    }

    async fn converted_by(
        &self,
        custom: &CustomType,
        cluster: &ClusterName,
        mut values: Vec<Value>,
        kind: &Gvk,
    ) -> Result<Vec<Value>, Error> {
        let Conversion::Webhook(webhook) = &custom.conversion else {
            values.iter_mut().for_each(|value| conversion::relabel(value, kind));
            return Ok(values);
        };
        let wanted = kind.group_version.to_string();
        let hook: &Webhook = webhook;
        let asked = webhook::conversion::convert(&self.dialer, cluster, hook, values, &wanted);
        asked.await.map_err(|why| Error::new(Reason::Unknown, why))
    }

    /// The bytes of a converted object: what its version doesn't know is left out.
    pub(super) fn repaired(typing: &Typing, kind: &Gvk, mut value: Value) -> Result<Bytes, Error> {
        let resource_version = conversion::resource_version(&value);
        conversion::relabel(&mut value, kind);
        typing.repair(&mut value).map_err(Error::internal)?;
        let json = store::object::encode(&value);
        Ok(match resource_version {
            Some(version) => store::object::with_resource_version(&json, version),
            None => json,
        })
    }
}

/// The type whose webhook has to convert an object to the version of `kind`, if one has to.
pub(super) fn converter<'t>(
    typing: &'t Typing,
    kind: &Gvk,
    object: &Object,
) -> Option<&'t Arc<CustomType>> {
    let custom = typing.custom_type()?;
    let asks = matches!(custom.conversion, Conversion::Webhook(_)) && !is_of_version(object, kind);
    asks.then_some(custom)
}

/// Whether an object is stored in the version of `kind`.
fn is_of_version(object: &Object, kind: &Gvk) -> bool {
    let stored = object.header.api_version();
    let version = stored.rsplit_once('/').map_or(stored, |(_, version)| version);
    *version == *kind.group_version.version
}

/// Cuts places of objects of one stored version each into batches.
fn batches(objects: &[Arc<Object>], places: &[usize]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut bytes = 0;
    let mut version = "";
    for at in places {
        let Some(object) = objects.get(*at) else { continue };
        bytes += object.json().len();
        let same = version == object.header.api_version() && bytes <= BATCH_BYTES;
        match batches.last_mut().filter(|batch| same && batch.len() < BATCH) {
            Some(batch) => batch.push(*at),
            None => {
                bytes = object.json().len();
                version = object.header.api_version();
                batches.push(vec![*at]);
            }
        }
    }
    batches
}

// === impl Asked ===

impl Asked {
    /// The right to ask for an object in a version, held by one at a time.
    fn turn(&self, object: &Object, version: &Arc<str>) -> Arc<tokio::sync::Mutex<()>> {
        /// Entries at which those that nobody holds are forgotten.
        const MANY: usize = 1024;
        let mut turns = self.0.lock();
        let key = (object.key.clone(), object.revision, version.clone());
        if let Some(turn) = turns.get(&key).and_then(Weak::upgrade) {
            return turn;
        }
        if turns.len() >= MANY {
            turns.retain(|_, turn| turn.strong_count() > 0);
        }
        let turn = Arc::default();
        turns.insert(key, Arc::downgrade(&turn));
        turn
    }
}
