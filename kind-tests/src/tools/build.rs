//! Building one program into the cache.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::clock::Stopwatch;
use crate::eventually::within;
use crate::process::tail;
use crate::progress::say;
use crate::run::cache_folder;

use super::Tool;

/// Past this a build hangs; the slowest takes about five minutes on two cores.
const LONGEST: Duration = Duration::from_secs(45 * 60);

/// How often a build says that it goes on.
const REPORT: Duration = Duration::from_secs(15);

/// Builds `tool`. One build runs at a time on a machine: more would only slow each other down,
/// and two processes that want the same program must not both build it.
pub(super) fn build(tool: Tool) -> Result<PathBuf> {
    let tools = cache_folder()?.join("tools");
    fs::create_dir_all(&tools).with_context(|| format!("make {}", tools.display()))?;
    let lock = OpenOptions::new().create(true).append(true).open(tools.join(".lock"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say(format!("waiting for another process that builds, to have {}", tool.program()));
            lock.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error).context("lock the cache"),
    }
    if let Some(built_meanwhile) = tool.cached()? {
        return Ok(built_meanwhile);
    }
    let folder = tool.folder()?;
    let name = folder.file_name().context("a folder has a name")?.to_string_lossy().into_owned();
    // Only a finished build is moved to its place; the lock makes this name ours alone.
    let temporary = tools.join(format!(".{name}.part"));
    if temporary.exists() {
        fs::remove_dir_all(&temporary)?;
    }
    fs::create_dir(&temporary)?;
    compile(tool, &temporary)?;
    File::open(temporary.join(tool.program()))?.sync_all()?;
    fs::rename(&temporary, &folder).with_context(|| format!("move to {}", folder.display()))?;
    Ok(folder.join(tool.program()))
}

fn compile(tool: Tool, output: &Path) -> Result<()> {
    let recipe = tool.recipe();
    let what = format!("{} {}", recipe.program, recipe.version()?);
    let arguments = recipe.arguments()?;
    let (package, flags) = arguments.split_last().context("a package is named")?;
    let log = output.join("build.log");
    let file = File::create(&log)?;
    say(format!("building {what}"));
    let watch = Stopwatch::start();
    let mut go = Command::new("go")
        .args(flags)
        .arg("-o")
        .arg(output.join(recipe.program))
        .arg(package)
        .current_dir(recipe.module())
        // Static programs, the toolchain that is installed, and no surrounding workspace.
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .process_group(0)
        .spawn()
        .context("start go: Go 1.26 must be installed")?;
    let mut reported = Duration::ZERO;
    let status = within(LONGEST, &what, || {
        if watch.elapsed() >= reported + REPORT {
            reported = watch.elapsed();
            say(format!("building {what}: {} s", reported.as_secs()));
        }
        Ok(go.try_wait()?)
    });
    if status.is_err() {
        go.kill()?;
        go.wait()?;
    }
    if !status?.success() {
        bail!("{what} does not build:\n{}", tail(&log, 40));
    }
    say(format!("built {what} in {} s", watch.elapsed().as_secs()));
    Ok(())
}
