//! Get and list: answers out of the cache, at one revision.

use store::cache::Listed;
use store::{Key, KeyPrefix, ReadError, Revision};

use super::list_rules::check_list;
use super::select::Selection;
use super::versions::{At, Start};
use super::{PATIENCE, definitions};
use crate::registry::{
    ClusterScope, Context, Error, List, ListOptions, Reason, Registry, Target, View,
};

/// A list's continue token is older than the history.
const EXPIRED: &str = "The provided continue parameter is too old to display a consistent list \
     result. You can start a new list without the continue parameter, or use the continue token in \
     this response to retrieve the remainder of the results. Continuing with the provided token \
     results in an inconsistent list - objects that were created, modified, or deleted between the \
     time the first chunk was returned and now may show up in the list.";

impl Registry {
    /// One object, not older than `resource_version`, or the most recent when that is empty.
    ///
    /// # Errors
    /// 404 when it, or its logical cluster, is not there.
    pub async fn get(
        &self,
        ctx: &Context,
        target: &Target,
        resource_version: &str,
    ) -> Result<View, Error> {
        let cluster = Self::cluster(target)?;
        match resource_version {
            "0" => {}
            "" => self.consistent().await?,
            version => self.reach(self.versions.parse(version)?).await?,
        }
        let key = Self::object_key(target, cluster, &target.name);
        let shared = || self.cache.get(&definitions::fallback(target)?);
        let found = self.cache.get(&key).or_else(shared);
        self.check_agent_touch(ctx, target, "get", found.as_deref())?;
        match found {
            Some(object) => {
                let view = self.view(&self.lens(target), object).await?;
                let view = self.view_for(ctx, target, view)?;
                match self.scale_paths(target)? {
                    Some(paths) => self.scale_view(&paths, view),
                    None => Ok(view),
                }
            }
            None => {
                self.require_cluster(cluster)?;
                let resource = Self::group_resource(&target.resource);
                Err(Error::not_found(&resource, &target.name))
            }
        }
    }

    /// The objects of a collection.
    ///
    /// # Errors
    /// 422 for options that contradict each other, 410 for a revision that history has lost, 504
    /// for one that has not happened.
    pub async fn list(
        &self,
        ctx: &Context,
        target: &Target,
        options: ListOptions,
    ) -> Result<List, Error> {
        check_list(&options)?;
        let resource = target.resource.clone();
        let selection = Selection::new(options.labels.clone(), options.fields.clone(), resource)?;
        let pinned = selection.name();
        let reach = self.check_agent_list(ctx, target, &options.labels, "list", pinned)?;
        let selection = selection.within(reach);
        let prefix = Self::prefix(target);
        let limit = options.limit;
        if options.continue_token.is_empty() {
            let at = self.versions.list_state(&options)?;
            let listed = match at {
                At::Latest => {
                    self.consistent().await?;
                    self.page(&prefix, &selection, None, limit, None).await?
                }
                At::Any => self.page(&prefix, &selection, None, limit, None).await?,
                At::NotOlderThan(revision) => {
                    self.reach(revision).await?;
                    self.page(&prefix, &selection, None, limit, None).await?
                }
                At::Exact(revision) => {
                    self.reach(revision).await?;
                    self.check_lifetime(&target.cluster, revision)?;
                    self.page(&prefix, &selection, None, limit, Some(revision)).await?
                }
            };
            return self.answer_list(ctx, target, &selection, listed, &prefix).await;
        }
        if !matches!(options.resource_version.as_str(), "" | "0") {
            return Err(Error::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let Start { revision, after } = self.versions.start(&options.continue_token)?;
        let Some(after) = key_after(&prefix, &after) else {
            return Err(Error::bad_request(
                "invalid continue token: continue key is not valid: the start key is not valid",
            ));
        };
        let lived = match revision {
            Some(revision) => self.check_lifetime(&target.cluster, revision),
            None => self.consistent().await,
        };
        let listed = match lived {
            Ok(()) => self.page(&prefix, &selection, Some(&after), limit, revision).await,
            Err(error) => Err(error),
        };
        let listed = listed.map_err(|error| {
            if error.reason() == Reason::Expired {
                let relative = relative(&prefix, &after);
                let token = self.versions.token(None, relative);
                Error::new(Reason::Expired, EXPIRED).continue_with(token)
            } else {
                error
            }
        })?;
        self.answer_list(ctx, target, &selection, listed, &prefix).await
    }

    /// How many objects a list of the target goes through, counted up to `most`.
    pub(crate) fn count_up_to(&self, target: &Target, most: usize) -> usize {
        self.cache.count_up_to(&Self::prefix(target), most)
    }

    /// Waits for a revision that a client has heard of.
    pub(super) async fn reach(&self, revision: Revision) -> Result<(), Error> {
        self.cache
            .wait_for(revision, PATIENCE)
            .await
            .map_err(|current| self.too_large(revision, current))
    }

    pub(super) fn too_large(&self, asked: Revision, current: Revision) -> Error {
        let (asked, current) = (self.versions.format(asked), self.versions.format(current));
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Error::new(Reason::Timeout, message)
            .cause("ResourceVersionTooLarge", "Too large resource version", "")
            .retry_after(1)
    }

    pub(super) fn history_error(&self, error: ReadError, asked: Revision) -> Error {
        match error {
            ReadError::Compacted { oldest } => Error::new(
                Reason::Expired,
                format!(
                    "too old resource version: {} ({})",
                    self.versions.format(asked),
                    self.versions.format(oldest)
                ),
            ),
            ReadError::Future { current } => self.too_large(asked, current),
            error => Error::internal(error),
        }
    }

    /// The selected objects after `after`, at `at` or as they are now. With a selector the page
    /// is cut among those that match.
    async fn page(
        &self,
        prefix: &KeyPrefix,
        selection: &Selection,
        after: Option<&Key>,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<Listed, Error> {
        let all = selection.is_everything();
        let fetched = if all { limit } else { 0 };
        let mut listed = match at {
            None => self.cache.list(prefix, after, fetched),
            Some(at) => self
                .cache
                .list_at(prefix, after, fetched, at)
                .await
                .map_err(|error| self.history_error(error, at))?,
        };
        if !all {
            listed.objects.retain(|object| selection.matches(object));
            if limit > 0 && listed.objects.len() > limit {
                listed.remaining = listed.objects.len() - limit;
                listed.objects.truncate(limit);
            }
        }
        Ok(listed)
    }

    async fn answer_list(
        &self,
        ctx: &Context,
        target: &Target,
        selection: &Selection,
        listed: Listed,
        prefix: &KeyPrefix,
    ) -> Result<List, Error> {
        if listed.objects.is_empty()
            && let ClusterScope::One(cluster) = &target.cluster
        {
            self.require_cluster(cluster)?;
        }
        let continue_token = match listed.objects.last() {
            Some(last) if listed.remaining > 0 => {
                let after = relative(prefix, &last.key);
                Some(self.versions.token(Some(listed.revision), after))
            }
            _ => None,
        };
        let lens = self.lens(target);
        let mut objects = listed.objects;
        let all = objects.len();
        objects.retain(|object| self.is_shown(&lens, object));
        if objects.len() < all {
            let count = all - objects.len();
            let version = &target.version;
            ctx.warn(format!(
                "{count} objects are left out: their logical clusters do not serve {version}"
            ));
        }
        Ok(List {
            items: self.views(&lens, objects).await?,
            resource_version: self.versions.format(listed.revision),
            remaining: (continue_token.is_some() && selection.is_everything())
                .then_some(listed.remaining as u64),
            continue_token,
        })
    }
}

/// The part of a key that its prefix leaves.
fn relative<'a>(prefix: &KeyPrefix, key: &'a Key) -> &'a str {
    key.as_str().get(prefix.as_bytes().len()..).unwrap_or_default()
}

/// The key that a token names. It never leaves the prefix, whatever the token says.
fn key_after(prefix: &KeyPrefix, relative: &str) -> Option<Key> {
    let mut bytes = prefix.as_bytes().to_vec();
    bytes.extend_from_slice(relative.as_bytes());
    Key::parse(bytes)
}
