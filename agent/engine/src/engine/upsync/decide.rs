//! What a mirror needs next.

use contract::{DOWNSTREAM, UPSYNCER};
use serde_json::{Value, json};

use super::{Locator, Mirror, Source, There};
use crate::brake::Turn;
use crate::digest::Digest;
use crate::engine::answers::{Ask, Subject};
use crate::engine::entry::Place;
use crate::engine::remove::FRESH;
use crate::engine::requests::{add_label, applied, deletion};
use crate::engine::{Engine, millis, side};
use crate::status::{Generations, difference, translate};
use crate::{Action, GroupResource, Method, Now, Request, Side, fields};

type Step = (Ask, Request);

/// A resource version that no object has.
const NEVER: &str = "1";

const JSON: &str = "application/json";

impl Engine {
    /// The next request for a mirror.
    pub(in crate::engine) fn plan_mirror(&mut self, now: Now) -> Option<Action> {
        let clock = millis(now.clock);
        self.mirrors.agenda.advance(clock);
        while let Some(place) = self.mirrors.agenda.pop() {
            if let Some((ask, request)) = self.mirror_step(&place, clock) {
                if let Some(mirror) = self.mirrors.all.get_mut(&place) {
                    mirror.in_flight = true;
                }
                let kind = ask.kind();
                return Some(self.launch(Subject::Mirror(place), ask, kind, request));
            }
        }
        None
    }

    fn mirror_later(&mut self, place: &Place, at: u64) {
        self.mirrors.agenda.at(at, place.clone());
    }

    fn mirror_step(&mut self, place: &Place, clock: u64) -> Option<Step> {
        self.upsync_of(place.kind)?;
        let complete = self.mirrors.streams.get(&place.kind);
        if !complete.is_some_and(|streams| streams.iter().all(|stream| stream.complete)) {
            return None;
        }
        if !self.place_mirror(place) {
            let idle = self.mirrors.all.get(place).is_some_and(|mirror| mirror.source.is_none());
            if idle {
                self.forget_mirror(place);
            }
            return None;
        }
        let missing = self.kind(place.kind).map_or(0, |kind| kind.missing[1].until);
        let closed = [Side::Upstream, Side::Downstream].map(|which| self.gates[side(which)].until);
        let mirror = self.mirrors.all.get(place).filter(|mirror| !mirror.in_flight)?;
        let until = closed.into_iter().chain([missing, mirror.hold.until]).max().unwrap_or(0);
        if until > clock {
            self.mirror_later(place, until);
            return None;
        }
        let going = mirror.source.as_ref().is_none_or(|source| source.deleting);
        match (&mirror.there, going) {
            (There::Unknown, _) if mirror.source.is_some() => {
                Some((Ask::MirrorGet, self.mirror_request(place, Method::Get)?))
            }
            (There::Ours(_), true) => self.lower_step(place, clock),
            (There::Absent, false) | (There::Ours(_), false) => self.raise_step(place, clock),
            // It may have gone.
            (There::Foreign, false) => {
                Some((Ask::MirrorGet, self.mirror_request(place, Method::Get)?))
            }
            (_, true) if mirror.source.is_none() => {
                self.forget_mirror(place);
                None
            }
            _ => None,
        }
    }

    fn forget_mirror(&mut self, place: &Place) {
        if let Some(mirror) = self.mirrors.all.remove(place) {
            self.mirrors.brake.forget(mirror.id, true);
            if let Some(key) = &mirror.key {
                self.mirrors.places.remove(key);
            }
        }
    }

    /// What a mirror of a source that is there needs.
    fn raise_step(&mut self, place: &Place, clock: u64) -> Option<Step> {
        let Some(cluster) = self.mirrors.cluster.clone() else {
            // One asks for all.
            let asked = std::mem::replace(&mut self.mirrors.identifying, true);
            return (!asked).then(|| (Ask::Identify, identify()));
        };
        let target = self.target.identity.target.clone();
        let mirror = self.mirrors.all.get_mut(place)?;
        let source = mirror.source.as_ref()?;
        if let There::Ours(risen) = &mut mirror.there {
            if risen.deleting {
                // It is made again when it has gone.
                return None;
            }
            if risen.locator.cluster != *cluster {
                let why = "it was made of an object of another physical cluster";
                return self.keep_mirror(place, "OtherCluster", why, clock);
            }
            if *risen.locator.uid != *source.uid {
                // Another object has its name now: the mirror is one of what was there before.
                return self.lower_step(place, clock);
            }
            if risen.locator.digest == source.digest.to_string() {
                if let Some(live) = risen.live.take() {
                    let desired = serde_json::from_slice::<Value>(&source.body).ok();
                    let live = serde_json::from_slice::<Value>(&live).ok();
                    if let (Some(mut desired), Some(live)) = (desired, live) {
                        add_label(&mut desired, &target);
                        if fields::matches_of(&desired, &live, UPSYNCER, DOWNSTREAM) {
                            risen.good = Some(risen.view);
                        }
                    }
                }
                if risen.good == Some(risen.view) {
                    return self.mirror_status_step(place);
                }
            }
        }
        let mirror = self.mirrors.all.get(place)?;
        let source = mirror.source.as_ref()?;
        let object = self.mirror_object(place, mirror, source, &cluster)?;
        let request = self.mirror_request(place, Method::Patch)?;
        Some((Ask::MirrorApply, applied(request, UPSYNCER, true, &object)))
    }

    fn mirror_object(
        &self,
        place: &Place,
        mirror: &Mirror,
        source: &Source,
        cluster: &str,
    ) -> Option<Value> {
        let mut object: Value = serde_json::from_slice(&source.body).ok()?;
        add_label(&mut object, &self.target.identity.target);
        let locator = Locator {
            cluster: cluster.to_owned(),
            namespace: place.namespace.to_string(),
            name: place.name.to_string(),
            uid: source.uid.to_string(),
            generation: source.generation,
            resource_version: source.revision.to_string(),
            digest: source.digest.to_string(),
        };
        let key = mirror.key.as_ref()?;
        let metadata = object.get_mut("metadata")?.as_object_mut()?;
        metadata.insert("name".to_owned(), (&*key.name).into());
        metadata.insert("namespace".to_owned(), (&*key.namespace).into());
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        let text = serde_json::to_string(&locator).ok()?;
        annotations.as_object_mut()?.insert(DOWNSTREAM.to_owned(), text.into());
        match &mirror.there {
            There::Ours(risen) => drop(metadata.insert("uid".to_owned(), (&*risen.uid).into())),
            // So nothing is added to what somebody has made in between.
            _ => drop(metadata.insert("resourceVersion".to_owned(), NEVER.into())),
        }
        Some(object)
    }

    /// The source's status goes up.
    fn mirror_status_step(&mut self, place: &Place) -> Option<Step> {
        let kind = self.kind(place.kind)?;
        let rule = kind.rule.clone();
        let goes = kind.synced.as_ref().is_some_and(|synced| synced.upstream_status);
        let mirror = self.mirrors.all.get_mut(place)?;
        let (Some(source), There::Ours(risen)) = (&mirror.source, &mirror.there) else {
            return None;
        };
        mirror.problem = None;
        if !goes {
            return None;
        }
        let read = |bytes: &Option<Box<[u8]>>| {
            bytes.as_ref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok())
        };
        let mut status = rule.status_up(&json!({"status": read(&source.status)?}))?;
        let shown = read(&risen.status).unwrap_or_else(|| json!({}));
        let generations = Generations { copy: source.generation, applied: risen.generation };
        translate(&mut status, generations, &shown);
        let digests = (Digest::of(&status), Digest::of(&shown));
        if mirror.settled == Some(digests) {
            return None;
        }
        let Some(patch) = difference(&shown, &status) else {
            mirror.settled = Some(digests);
            return None;
        };
        let body = json!({"metadata": {"uid": &*risen.uid}, "status": patch});
        let mut request = self.mirror_request(place, Method::Patch)?;
        request.subresource = "status";
        request.query = vec![("fieldManager", UPSYNCER.to_owned())];
        request.content_type = "application/merge-patch+json";
        request.body = body.to_string().into_bytes();
        Some((Ask::MirrorStatus(digests.0), request))
    }

    /// What a mirror needs whose source isn't there any more, as far as was seen.
    fn lower_step(&mut self, place: &Place, clock: u64) -> Option<Step> {
        let mirror = self.mirrors.all.get(place)?;
        let There::Ours(risen) = &mirror.there else { return None };
        if risen.deleting {
            return None;
        }
        let is_fresh = |at: Option<u64>| at.is_some_and(|at| clock <= at.saturating_add(FRESH));
        if !is_fresh(mirror.gone) {
            return Some((Ask::FindSource, self.find_source(place)?));
        }
        if !is_fresh(mirror.proven) {
            return Some((Ask::Identify, identify()));
        }
        if !self.hub.is_trusted() {
            // Looked at again when it is.
            return None;
        }
        let (id, uid) = (mirror.id, risen.uid.clone());
        let count = self.mirrors.all.len() as u64;
        match self.mirrors.brake.may(id, false, count, clock, &self.target.limits) {
            Turn::Go => {}
            Turn::Later(at) => {
                self.mirror_later(place, at);
                return None;
            }
            Turn::Paused => return None,
        }
        let mut request = self.mirror_request(place, Method::Delete)?;
        request.content_type = JSON;
        request.body = deletion(&uid);
        Some((Ask::MirrorDelete, request))
    }

    /// A mirror stays as it is, though its source isn't what it was.
    pub(super) fn keep_mirror(
        &mut self,
        place: &Place,
        reason: &'static str,
        why: &str,
        clock: u64,
    ) -> Option<Step> {
        let longest = self.target.limits.longest_backoff;
        let mut hold = self.mirrors.all.get(place)?.hold;
        self.lengthen(&mut hold, clock, longest);
        let mirror = self.mirrors.all.get_mut(place)?;
        mirror.hold = hold;
        mirror.problem = Some((reason, why.to_owned()));
        (mirror.gone, mirror.proven) = (None, None);
        let until = mirror.hold.until;
        self.mirror_later(place, until);
        None
    }

    fn mirror_request(&self, place: &Place, method: Method) -> Option<Request> {
        let synced = self.synced(place.kind)?;
        let key = self.mirrors.all.get(place)?.key.as_ref()?;
        Some(Self::at_hub(key, synced, method))
    }

    /// A list of the one object: it tells how new the cluster is that answers.
    fn find_source(&self, place: &Place) -> Option<Request> {
        let synced = self.synced(place.kind)?;
        let mut request = Self::at_place(place, synced, Method::Get);
        request.query.push(("fieldSelector", format!("metadata.name={}", place.name)));
        request.name = "".into();
        Some(request)
    }
}

/// Asks which cluster it is.
fn identify() -> Request {
    Request {
        side: Side::Downstream,
        cluster: None,
        method: Method::Get,
        resource: GroupResource::new("", "namespaces"),
        version: "v1".into(),
        namespace: "".into(),
        name: "kube-system".into(),
        subresource: "",
        query: Vec::new(),
        content_type: "",
        accept: JSON,
        body: Vec::new(),
    }
}
