//! Lists: joined while they are sent.
//!
//! A list holds its objects by reference and makes one piece at a time, so a slow reader costs a
//! piece, and a large list never exists as one text.

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderValue, Response};
use machinery::status::ListMeta;

use super::packed::PackedList;
use super::{Form, gzip, metadata, table, whole};
use crate::http::body::{Body, Pieces};
use crate::http::negotiate::{Encoding, Shape};
use crate::registry::{List, View};

/// A piece is passed on when it has this many bytes.
const PIECE: usize = 64 * 1024;

/// An item from this size on is passed on as it is held, without copying.
const LARGE: usize = 32 * 1024;

/// The answer that holds a list.
pub(crate) fn list(list: List, form: &Form) -> Response<Body> {
    let List { items, resource_version, continue_token, remaining } = list;
    let list_metadata = serde_json::to_vec(&ListMeta {
        resource_version,
        continue_: continue_token.unwrap_or_default(),
        remaining_item_count: remaining.and_then(|count| i64::try_from(count).ok()),
    })
    .expect("list metadata holds strings and numbers only");
    match form.accepted.shape {
        Shape::Table(version) => {
            let columns = table::columns(&form.resource);
            let head = table::head(version, &list_metadata, Some(&columns)).freeze();
            let (resource, include, now) = (form.resource.clone(), form.include, form.now);
            let rows = items
                .into_iter()
                .map(move |view| table::row(&view.json, &resource, version, include, now));
            send(Joined::new(&head, rows, None), form)
        }
        Shape::Metadata(version) => {
            let head = head("PartialObjectMetadataList", version.api_version(), &list_metadata);
            let rows = items.into_iter().map(move |view| metadata::partial(&view.json, version));
            send(Joined::new(&head, rows, None), form)
        }
        Shape::Object | Shape::Discovery => {
            let api_version = form.group_version().to_string();
            let head = head(&form.resource.list_kind, &api_version, &list_metadata);
            let glue = if form.kinds { Glue::Comma } else { Glue::Brace };
            let length = joined_length(&head, &items, glue);
            let json = form.accepted.encoding != Encoding::Protobuf;
            if json && form.gzip && length > gzip::THRESHOLD {
                let packed = PackedList::new(head, items.into_iter(), TAIL, glue);
                return compressed(Body::pieces(packed), form);
            }
            let items = items.into_iter().map(move |view| glue.part(&view.json));
            send(Joined::new(&head, items, Some(length)).with(glue), form)
        }
    }
}

fn head(kind: &str, api_version: &str, list_metadata: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(96 + list_metadata.len());
    for part in [
        b"{\"kind\":\"".as_slice(),
        kind.as_bytes(),
        b"\",\"apiVersion\":\"",
        api_version.as_bytes(),
        b"\",\"metadata\":",
        list_metadata,
        b",\"items\":[",
    ] {
        out.put_slice(part);
    }
    out.freeze()
}

fn joined_length(head: &Bytes, items: &[View], glue: Glue) -> u64 {
    let bytes: usize = items.iter().map(|view| glue.part(&view.json).len()).sum();
    let between = items.len().saturating_sub(1) * glue.between().len();
    let first = if items.is_empty() { 0 } else { glue.first().len() };
    (head.len() + first + bytes + between + TAIL.len()) as u64
}

fn send<I>(mut joined: Joined<I>, form: &Form) -> Response<Body>
where
    I: Iterator<Item = Bytes> + Send + 'static,
{
    if form.accepted.encoding == Encoding::Protobuf {
        // Nobody but a test asks for this: the whole document is made and translated.
        let mut json = BytesMut::new();
        while let Some(piece) = joined.next_piece() {
            json.put_slice(&piece);
        }
        let (bytes, media_type) = whole(json.freeze(), Encoding::Protobuf);
        let mut response = Response::new(Body::full(bytes));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        return response;
    }
    let compress = form.gzip && joined.is_longer_than(gzip::THRESHOLD);
    let body = if compress {
        Body::pieces(gzip::Gzip::new(joined))
    } else if joined.remaining().is_some_and(|length| length <= PIECE as u64) {
        // Small lists are one piece, with nothing to come back for.
        Body::full(joined.next_piece().unwrap_or_default())
    } else {
        Body::pieces(joined)
    };
    if compress { compressed(body, form) } else { plain(body, form) }
}

fn plain(body: Body, form: &Form) -> Response<Body> {
    let mut response = Response::new(body);
    let media_type = HeaderValue::from_static(form.accepted.encoding.media_type());
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

fn compressed(body: Body, form: &Form) -> Response<Body> {
    let mut response = plain(body, form);
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

const TAIL: &[u8] = b"]}";

/// What stands before the items of a list, and how much of each is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Glue {
    /// Whole items.
    Comma,
    /// Items without `apiVersion` and `kind`, whose opening brace is part of the glue.
    Brace,
}

// === impl Glue ===

impl Glue {
    /// Before the first item.
    pub(super) fn first(self) -> &'static [u8] {
        match self {
            Self::Comma => b"",
            Self::Brace => b"{",
        }
    }

    /// Before any other.
    pub(super) fn between(self) -> &'static [u8] {
        match self {
            Self::Comma => b",",
            Self::Brace => b",{",
        }
    }

    /// What is shown of an item.
    pub(super) fn part(self, json: &Bytes) -> Bytes {
        match self {
            Self::Comma => json.clone(),
            Self::Brace => store::object::after_kind(json),
        }
    }
}

/// `head`, then the items with commas between them, then the end of the list.
struct Joined<I> {
    items: I,
    /// Bytes that wait: the head at first, later an item that did not fit.
    buffer: BytesMut,
    large: Option<Bytes>,
    begun: bool,
    ended: bool,
    remaining: Option<u64>,
    glue: Glue,
}

// === impl Joined ===

impl<I: Iterator<Item = Bytes>> Joined<I> {
    fn new(head: &[u8], items: I, length: Option<u64>) -> Self {
        let buffer = BytesMut::from(head);
        let (begun, ended, glue) = (false, false, Glue::Comma);
        Self { items, buffer, large: None, begun, ended, remaining: length, glue }
    }

    fn with(mut self, glue: Glue) -> Self {
        self.glue = glue;
        self
    }

    /// Whether there will be more bytes than that; items of unknown length are made ahead, up to
    /// the limit, to find out.
    fn is_longer_than(&mut self, limit: u64) -> bool {
        match self.remaining {
            Some(length) => length > limit,
            None => {
                while !self.ended && (self.buffer.len() as u64) <= limit {
                    self.add_item(usize::MAX);
                }
                if self.ended {
                    self.remaining = Some(self.buffer.len() as u64);
                }
                !self.ended
            }
        }
    }

    /// Adds the next item or the end to what waits. An item of at least `large` bytes stands apart.
    fn add_item(&mut self, large: usize) {
        match self.items.next() {
            Some(item) => {
                let begun = std::mem::replace(&mut self.begun, true);
                self.buffer.put_slice(if begun { self.glue.between() } else { self.glue.first() });
                if item.len() >= large {
                    self.large = Some(item);
                } else {
                    self.buffer.put_slice(&item);
                }
            }
            None => {
                self.buffer.put_slice(TAIL);
                self.ended = true;
            }
        }
    }
}

impl<I: Iterator<Item = Bytes> + Send> Pieces for Joined<I> {
    fn next_piece(&mut self) -> Option<Bytes> {
        let waits = std::mem::take(&mut self.buffer);
        if waits.is_empty() {
            if let Some(large) = self.large.take() {
                return Some(self.passed_on(large));
            }
            if self.ended {
                return None;
            }
        }
        self.buffer = waits;
        if self.large.is_none() {
            let room = self.remaining.map_or(PIECE, |n| usize::try_from(n).unwrap_or(PIECE));
            self.buffer.reserve(room.min(PIECE + LARGE).saturating_sub(self.buffer.len()));
        }
        while !self.ended && self.large.is_none() && self.buffer.len() < PIECE {
            self.add_item(LARGE);
        }
        let piece = std::mem::take(&mut self.buffer).freeze();
        Some(self.passed_on(piece))
    }

    fn remaining(&self) -> Option<u64> {
        self.remaining
    }
}

impl<I> Joined<I> {
    fn passed_on(&mut self, piece: Bytes) -> Bytes {
        if let Some(remaining) = &mut self.remaining {
            *remaining = remaining.saturating_sub(piece.len() as u64);
        }
        piece
    }
}

/// The pieces of a list.
#[cfg(test)]
pub(super) fn collect<I: Iterator<Item = Bytes> + Send>(head: &str, items: I) -> Vec<Bytes> {
    let mut joined = Joined::new(head.as_bytes(), items, None);
    std::iter::from_fn(move || joined.next_piece()).collect()
}
