//! Calls to an etcd cluster, whichever of its members answers.
//!
//! All calls but watches share one connection. When it breaks, or its member does not answer or has
//! no leader, the next endpoint takes over. While none can be reached, calls fail at once, and the
//! endpoints are tried again after pauses that grow.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use parking_lot::Mutex;
use prost::Message;
use runtime::Tasks;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::dial::{Endpoint, TlsFiles};
use super::error::Error;
use super::grpc::{Channel, Messages};
use super::proto::{
    CompactionRequest, CompactionResponse, RangeRequest, RangeResponse, ResponseHeader,
    StatusRequest, StatusResponse, TxnRequest, TxnResponse,
};
use super::wire;
use crate::Revision;

/// How long an answer may take. etcd itself gives up on a request after about seven seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pauses between rounds over endpoints that cannot be reached.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Calls to one etcd cluster.
pub(super) struct Client {
    endpoints: Vec<Endpoint>,
    files: TlsFiles,
    tasks: Tasks,
    current: Mutex<Current>,
    /// Held by the one that connects.
    dialing: tokio::sync::Mutex<()>,
}

/// Where calls go.
#[derive(Default)]
struct Current {
    channel: Option<Channel>,
    /// Which endpoint it is, or which is tried first.
    endpoint: usize,
    /// Counts connections, so that a failure is held against the one that it came from.
    generation: u64,
    down: Option<Down>,
    cluster: Option<u64>,
}

/// No endpoint could be reached.
struct Down {
    until: Instant,
    pause: Duration,
    error: String,
}

// === impl Client ===

impl Client {
    pub(super) fn new(endpoints: Vec<Endpoint>, files: TlsFiles, tasks: Tasks) -> Self {
        let (current, dialing) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { endpoints, files, tasks, current, dialing }
    }

    pub(super) async fn range(&self, request: &RangeRequest) -> Result<RangeResponse, Error> {
        let answer: RangeResponse = self.read("/etcdserverpb.KV/Range", request).await?;
        self.check(answer.header)?;
        Ok(answer)
    }

    /// A transaction that may write: it is not made again when it may have happened.
    pub(super) async fn txn(&self, request: &TxnRequest) -> Result<TxnResponse, Error> {
        let answer: TxnResponse = self.write("/etcdserverpb.KV/Txn", request).await?;
        self.check(answer.header)?;
        Ok(answer)
    }

    pub(super) async fn compact(&self, revision: Revision) -> Result<(), Error> {
        let request = CompactionRequest { revision: wire(revision) };
        let answer: CompactionResponse = self.write("/etcdserverpb.KV/Compact", &request).await?;
        self.check(answer.header)
    }

    pub(super) async fn status(&self) -> Result<StatusResponse, Error> {
        let answer: StatusResponse =
            self.read("/etcdserverpb.Maintenance/Status", &StatusRequest {}).await?;
        self.check(answer.header)?;
        Ok(answer)
    }

    /// A watch, on a connection of its own: a reader that is slow holds up no call.
    pub(super) async fn watch(
        &self,
        requests: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Result<Messages, Error> {
        let (_, channel) = self.connect().await?;
        let call = channel.stream("/etcdserverpb.Watch/Watch", requests);
        let answer = tokio::time::timeout(PATIENCE, call).await;
        answer.unwrap_or_else(|_| Err(Error::Unanswered("no answer in time".into())))
    }

    /// Holds an answer's cluster against the first one's.
    pub(super) fn check(&self, header: Option<ResponseHeader>) -> Result<(), Error> {
        let header = header.ok_or_else(Error::headless)?;
        let mut current = self.current.lock();
        if *current.cluster.get_or_insert(header.cluster_id) != header.cluster_id {
            // Not to be asked again.
            current.channel = None;
            current.endpoint = (current.endpoint + 1) % self.endpoints.len().max(1);
            return Err(Error::OtherCluster);
        }
        Ok(())
    }

    async fn read<T: Message + Default>(
        &self,
        path: &'static str,
        request: &impl Message,
    ) -> Result<T, Error> {
        self.ask(path, request, Error::is_local).await
    }

    async fn write<T: Message + Default>(
        &self,
        path: &'static str,
        request: &impl Message,
    ) -> Result<T, Error> {
        self.ask(path, request, Error::is_unsent).await
    }

    /// Calls, and calls again after errors that are such as to be tried again.
    async fn ask<T: Message + Default>(
        &self,
        path: &'static str,
        request: &impl Message,
        again: impl Fn(&Error) -> bool,
    ) -> Result<T, Error> {
        // Each endpoint once, and the first once more: its connection may have been an old one.
        let mut tries = self.endpoints.len() + 1;
        loop {
            tries -= 1;
            match self.call(path, request).await {
                Err(error) if again(&error) && tries > 0 => {
                    debug!(%error, path, "asking another endpoint");
                }
                done => return done,
            }
        }
    }

    async fn call<T: Message + Default>(
        &self,
        path: &'static str,
        request: &impl Message,
    ) -> Result<T, Error> {
        let (generation, channel) = self.channel().await?;
        let answer = tokio::time::timeout(PATIENCE, channel.unary(path, request)).await;
        let answer = answer.unwrap_or_else(|_| Err(Error::Unanswered("no answer in time".into())));
        if let Err(error) = &answer
            && error.is_local()
        {
            self.leave(generation);
        }
        answer
    }

    /// The shared connection, made if there is none that works.
    async fn channel(&self) -> Result<(u64, Channel), Error> {
        if let Some(found) = self.open_channel()? {
            return Ok(found);
        }
        let _dialing = self.dialing.lock().await;
        // Somebody else may have connected, or have failed to, meanwhile.
        if let Some(found) = self.open_channel()? {
            return Ok(found);
        }
        let (endpoint, channel) = self.connect().await?;
        let mut current = self.current.lock();
        current.endpoint = endpoint;
        current.generation += 1;
        current.channel = Some(channel.clone());
        Ok((current.generation, channel))
    }

    fn open_channel(&self) -> Result<Option<(u64, Channel)>, Error> {
        let current = self.current.lock();
        if let Some(channel) = current.channel.as_ref().filter(|channel| !channel.is_closed()) {
            return Ok(Some((current.generation, channel.clone())));
        }
        match &current.down {
            Some(down) if Instant::now() < down.until => Err(Error::Unsent(down.error.clone())),
            _ => Ok(None),
        }
    }

    /// A new connection to the first endpoint that can be reached, beginning with the present one.
    async fn connect(&self) -> Result<(usize, Channel), Error> {
        let (first, known_down) = {
            let current = self.current.lock();
            (current.endpoint, current.down.as_ref().map(|down| down.pause))
        };
        let mut errors = Vec::new();
        for step in 0..self.endpoints.len() {
            let index = (first + step) % self.endpoints.len();
            let Some(endpoint) = self.endpoints.get(index) else { continue };
            match endpoint.connect(&self.files, &self.tasks).await {
                Ok(channel) => {
                    self.current.lock().down = None;
                    return Ok((index, channel));
                }
                Err(error) => errors.push(error),
            }
        }
        let error = errors.join("; ");
        if known_down.is_none() {
            warn!(error, "etcd cannot be reached");
        }
        let pause = known_down.map_or(FIRST_PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE));
        let down = Down { until: Instant::now() + pause, pause, error: error.clone() };
        self.current.lock().down = Some(down);
        Err(Error::Unsent(error))
    }

    /// Turns to the next endpoint, unless that has been done since.
    fn leave(&self, generation: u64) {
        let mut current = self.current.lock();
        if current.generation == generation && current.channel.take().is_some() {
            current.endpoint = (current.endpoint + 1) % self.endpoints.len().max(1);
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}
