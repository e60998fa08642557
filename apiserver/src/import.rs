//! Imports the types of a physical cluster into a logical cluster of a running server.
//!
//! # Flow
//! The cluster's discovery says which types there are; the OpenAPI documents of their groups say
//! what they look like; [`schema::import`] makes CRDs of both; each is written to the server, and
//! then waited for until it is served.
//!
//! # Guarantees
//! - Types that the server serves itself stay as they are.
//! - A type that is there is changed in place; nothing is ever deleted.
//! - One type that the server doesn't take doesn't keep others out.

mod client;
mod source;
mod target;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use machinery::ClusterName;
use machinery::kubeconfig::{Access, Identity};
use runtime::Tasks;
use schema::import::{
    DiscoveredGroup, ImportedType, Loss, Skipped, VersionSource, crd_name, import_group, why_not,
};

use client::Client;
use target::Outcome;

/// What to import.
#[derive(Clone, Debug)]
pub(crate) struct Import<'a> {
    /// The kubeconfig of the physical cluster.
    pub(crate) from: &'a Path,
    /// The kubeconfig of the running server; of its path any logical cluster will do.
    pub(crate) to: &'a Path,
    /// The logical cluster that gets the types.
    pub(crate) cluster: &'a ClusterName,
    /// `<plural>.<group>`, the core group being `core` or none; empty for all that can be imported.
    pub(crate) resources: &'a [String],
}

/// How many types came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    created: usize,
    updated: usize,
    unchanged: usize,
    skipped: usize,
    refused: usize,
}

// === impl Import ===

impl Import<'_> {
    /// Does it, and tells what became of each type.
    ///
    /// # Errors
    /// When one of the two doesn't answer, or the server has refused a type.
    pub(crate) async fn run(&self, told: &mut (dyn Write + Send)) -> anyhow::Result<()> {
        let tasks = Tasks::new();
        let mut from = Client::new(&read(self.from)?, &tasks)?;
        let to = target::of_cluster(read(self.to)?, self.cluster);
        let mut to = Client::new(&to, &tasks)?;
        let groups = source::groups(&mut from).await?;
        let groups = select(groups, self.resources)?;
        let mut counts = Counts::default();
        let mut written = Vec::new();
        for group in &groups {
            for version in group.versions.iter().filter(|version| version.stale) {
                let (group, version) = (&group.name, &version.version);
                writeln!(told, "skipped {group}/{version}: the server behind it does not answer")?;
            }
            let documents = documents(&mut from, group).await?;
            let sources = group.versions.iter().zip(&documents);
            let sources: Vec<VersionSource<'_>> = sources
                .map(|(discovered, openapi)| VersionSource { discovered, openapi })
                .collect();
            let imported = import_group(&group.name, &sources);
            for one in &imported.types {
                let outcome = target::write(&mut to, &one.crd).await?;
                counts.add(&outcome);
                tell(told, one, &outcome)?;
                if !matches!(outcome, Outcome::Refused(_)) {
                    written.push(name(one).to_owned());
                }
            }
            counts.skipped += imported.skipped.len();
            for Skipped { name, reason } in &imported.skipped {
                writeln!(told, "skipped {name}: {reason}")?;
            }
        }
        for name in written {
            if let Err(why) = target::served(&mut to, &name).await? {
                counts.refused += 1;
                writeln!(told, "not served {name}: {why}")?;
            }
        }
        counts.finish(told, self.cluster)
    }
}

// === impl Counts ===

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Created => &mut self.created,
            Outcome::Updated => &mut self.updated,
            Outcome::Unchanged => &mut self.unchanged,
            Outcome::Refused(_) => &mut self.refused,
        } += 1;
    }

    fn finish(self, told: &mut dyn Write, cluster: &ClusterName) -> anyhow::Result<()> {
        let Self { created, updated, unchanged, skipped, refused } = self;
        writeln!(
            told,
            "{cluster}: {created} types imported, {updated} updated, {unchanged} unchanged, \
             {skipped} skipped"
        )?;
        if refused > 0 {
            bail!("the server did not take {refused} of the types");
        }
        Ok(())
    }
}

fn read(path: &Path) -> anyhow::Result<Access> {
    let text = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let file = |path: &str| std::fs::read(directory.join(path)).map_err(|e| e.to_string());
    let mut access = Access::parse(&text, Some(&file))
        .with_context(|| format!("the kubeconfig {} can't be used", path.display()))?;
    if let Identity::TokenFile(path) = &access.identity {
        let path = directory.join(path);
        let token = std::fs::read_to_string(&path);
        let token = token.with_context(|| format!("read {}", path.display()))?;
        access.identity = Identity::Token(token.trim().to_owned());
    }
    Ok(access)
}

/// Leaves only the named resources; all, if none is named.
fn select(
    mut groups: Vec<DiscoveredGroup>,
    resources: &[String],
) -> anyhow::Result<Vec<DiscoveredGroup>> {
    if resources.is_empty() {
        return Ok(groups);
    }
    let wanted: Vec<String> = resources
        .iter()
        .map(|name| match name.split_once('.') {
            Some((plural, "core")) | Some((plural, "")) => crd_name("", plural),
            Some(_) => name.clone(),
            None => crd_name("", name),
        })
        .collect();
    let mut missing: Vec<&str> = wanted.iter().map(String::as_str).collect();
    for group in &mut groups {
        for version in &mut group.versions {
            version.stale = false;
            version.resources.retain(|resource| {
                let name = crd_name(&group.name, &resource.plural);
                missing.retain(|wanted| *wanted != name);
                wanted.contains(&name)
            });
        }
        group.versions.retain(|version| !version.resources.is_empty());
    }
    groups.retain(|group| !group.versions.is_empty());
    if !missing.is_empty() {
        bail!("the cluster does not serve {}", missing.join(", "));
    }
    Ok(groups)
}

/// A document for each version; null where nothing of the group is imported.
async fn documents(
    from: &mut Client,
    group: &DiscoveredGroup,
) -> anyhow::Result<Vec<serde_json::Value>> {
    let mut all = Vec::with_capacity(group.versions.len());
    for version in &group.versions {
        let needed = version.resources.iter().any(|one| why_not(&group.name, one).is_none());
        all.push(match needed {
            true => source::document(from, &group.name, &version.version).await?,
            false => serde_json::Value::Null,
        });
    }
    Ok(all)
}

fn name(one: &ImportedType) -> &str {
    machinery::meta::get_str(&one.crd, &["metadata", "name"]).unwrap_or_default()
}

fn tell(told: &mut dyn Write, one: &ImportedType, outcome: &Outcome) -> std::io::Result<()> {
    let name = name(one);
    let versions = one.crd["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let versions: Vec<&str> = versions.iter().filter_map(|v| v["name"].as_str()).collect();
    let versions = versions.join(", ");
    match outcome {
        Outcome::Created => writeln!(told, "imported {name} ({versions})"),
        Outcome::Updated => writeln!(told, "updated {name} ({versions})"),
        Outcome::Unchanged => writeln!(told, "unchanged {name} ({versions})"),
        Outcome::Refused(why) => writeln!(told, "refused {name}: {why}"),
    }?;
    for Loss { path, reason } in &one.losses {
        writeln!(told, "  without {path}: {reason}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
