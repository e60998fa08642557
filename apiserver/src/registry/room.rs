//! How many objects a logical cluster may hold.
//!
//! The cache counts them as they come and go. What is being created at the same moment isn't
//! counted yet, so a logical cluster may end up with a few more: as many as requests at a time.

use std::sync::Arc;

use machinery::ClusterName;
use machinery::meta::get_str;
use serde_json::Value;
use store::cache::Object;

use crate::clusters::record;
use crate::registry::{Context, Error, Registry, Target};

/// The annotation of a logical cluster that gives it a bound of its own; 0 is none. Logical
/// clusters are objects of `root`, so only its administrators set it.
const MOST: [&str; 3] = ["metadata", "annotations", "core.kcp.io/max-objects"];

/// A logical cluster's own bound, read once for each version of its object.
struct Own(Option<usize>);

impl Registry {
    /// Refuses a creation in a logical cluster that is full. What the server makes itself, and the
    /// logical clusters that are its own, have no bound.
    ///
    /// # Errors
    /// 403, in the words in which upstream tells of quotas.
    pub(super) fn check_room(
        &self,
        ctx: &Context,
        target: &Target,
        cluster: &ClusterName,
        name: &str,
    ) -> Result<(), Error> {
        if ctx.inside || cluster.is_root() || cluster.is_system() {
            return Ok(());
        }
        let own = self.cache.get(&record::key(cluster)).and_then(|object| Own::of(&object));
        let most = own.unwrap_or(self.max_objects);
        if most == 0 {
            return Ok(());
        }
        let used = self.cache.count_in(cluster);
        if used < most {
            return Ok(());
        }
        let why = format!(
            "exceeded quota: {cluster}, requested: objects=1, used: objects={used}, limited: \
             objects={most}"
        );
        Err(Error::forbidden(&Self::group_resource(&target.resource), name, &why))
    }

    /// Sets the most objects that a logical cluster without a bound of its own may hold; 0 is no
    /// bound.
    #[must_use]
    pub(crate) fn with_max_objects(mut self, most: usize) -> Self {
        self.max_objects = most;
        self
    }
}

// === impl Own ===

impl Own {
    fn of(object: &Arc<Object>) -> Option<usize> {
        let derived = object.derived.get_or_init(|| Arc::new(Self::read(object)));
        derived.downcast_ref::<Self>().and_then(|own| own.0)
    }

    fn read(object: &Object) -> Self {
        let value = serde_json::from_slice::<Value>(&object.json()).unwrap_or_default();
        Self(get_str(&value, &MOST).and_then(|text| text.parse().ok()))
    }
}
