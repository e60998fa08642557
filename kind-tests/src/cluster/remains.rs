//! What containerd leaves when it ends: shims, the containers below them, and their networks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::eventually::within;
use crate::namespace;

/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// How containerd's names of sandboxes' network namespaces begin.
const OF_SANDBOXES: &str = "cni-";

/// Kills the shims whose bundles are below `folder`, with all that they have started, and removes the
/// networks of their sandboxes. Nothing else runs in such a folder: a harness made it for this node
/// alone.
pub(crate) fn end_containers_below(folder: &Path) -> Result<()> {
    let mut networks = BTreeSet::new();
    within(PATIENCE, "containers to end", || {
        let doomed = containers_below(folder)?;
        networks.extend(networks_of(&doomed));
        for &pid in &doomed {
            let Some(pid) = rustix::process::Pid::from_raw(pid) else { bail!("process {pid}") };
            match rustix::process::kill_process(pid, rustix::process::Signal::KILL) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(doomed.is_empty().then_some(()))
    })?;
    networks.iter().try_for_each(|name| namespace::remove(name))
}

/// The networks of sandboxes that processes are in, by their names.
fn networks_of(processes: &[i32]) -> Vec<String> {
    let id = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let theirs: BTreeSet<(u64, u64)> = { processes.iter() }
        .filter_map(|pid| id(Path::new(&format!("/proc/{pid}/ns/net"))))
        .collect();
    let named = fs::read_dir(namespace::NAMED).into_iter().flatten().flatten();
    { named.filter(|entry| id(&entry.path()).is_some_and(|id| theirs.contains(&id))) }
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(OF_SANDBOXES))
        .collect()
}

/// Shims, and their descendants, children first.
fn containers_below(folder: &Path) -> Result<Vec<i32>> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // Processes end while they are looked at.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((parent, program)) = parent_and_program(&stat) else { continue };
        children.entry(parent).or_default().push(pid);
        let is_below =
            || fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at.starts_with(folder));
        if program.starts_with("containerd-shim") && is_below() {
            found.push(pid);
        }
    }
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children.remove(&pid).unwrap_or_default());
        next += 1;
    }
    found.reverse();
    Ok(found)
}

/// Of a line of `/proc/PID/stat`: `PID (PROGRAM) STATE PARENT …`; zombies are gone already.
fn parent_and_program(stat: &str) -> Option<(i32, &str)> {
    let (_, rest) = stat.split_once('(')?;
    let (program, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    (state != "Z").then_some((fields.next()?.parse().ok()?, program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_line() {
        assert_eq!(parent_and_program("7 (a b) c) S 3 7 7"), Some((3, "a b) c")));
        assert_eq!(parent_and_program("7 (a) Z 3 7 7"), None);
        assert_eq!(parent_and_program(""), None);
    }
}
