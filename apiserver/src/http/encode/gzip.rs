//! Compression of large answers while they are sent.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::http::body::Pieces;

/// Answers up to this many bytes are sent as they are: compressing them costs more than it saves.
pub(super) const THRESHOLD: u64 = 128 * 1024;

/// Compressed bytes that are passed on at once.
const PIECE: usize = 16 * 1024;

/// Compresses another body, at the fastest level.
pub(super) struct Gzip<P> {
    inner: P,
    /// `None` once the end has been written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

// === impl Gzip ===

impl<P> Gzip<P> {
    pub(super) fn new(inner: P) -> Self {
        let encoder = GzEncoder::new(Vec::with_capacity(PIECE * 2), Compression::new(1));
        Self { inner, encoder: Some(encoder) }
    }
}

impl<P: Pieces> Pieces for Gzip<P> {
    fn next_piece(&mut self) -> Option<Bytes> {
        let encoder = self.encoder.as_mut()?;
        while encoder.get_ref().len() < PIECE {
            let Some(piece) = self.inner.next_piece() else {
                let encoder = self.encoder.take()?;
                return encoder.finish().ok().map(Bytes::from);
            };
            // Writing to memory does not fail.
            encoder.write_all(&piece).ok()?;
        }
        let full = std::mem::replace(encoder.get_mut(), Vec::with_capacity(PIECE * 2));
        Some(Bytes::from(full))
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}
