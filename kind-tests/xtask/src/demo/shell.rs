//! Commands as a person would type them, shown with what they answer, and checked.

use std::path::Path;

use anyhow::{Result, ensure};
use kind_tests::kubectl::Output;
use kind_tests::{Kubectl, eventually};

/// One kubectl, with the arguments by which it is shown.
#[derive(Debug)]
pub(super) struct Shell {
    kubectl: Kubectl,
    shown: String,
}

// === impl Shell ===

impl Shell {
    /// A kubectl that is shown as `kubectl <arguments>` before each command.
    pub(super) fn new(kubectl: Kubectl, arguments: &str) -> Self {
        let space = if arguments.is_empty() { "" } else { " " };
        Self { kubectl, shown: format!("kubectl{space}{arguments}") }
    }

    /// Shows a command with its output, and fails unless it succeeds and says all of `expect`.
    pub(super) fn shows(&self, arguments: &[&str], expect: &[&str]) -> Result<()> {
        let output = self.typed(arguments)?;
        ensure!(output.code == 0, "that command should have succeeded");
        for word in expect {
            ensure!(output.stdout.contains(word), "the answer should contain {word:?}");
        }
        Ok(())
    }

    /// Shows a command that must fail, and say `expect`.
    pub(super) fn refuses(&self, arguments: &[&str], expect: &str) -> Result<()> {
        let output = self.typed(arguments)?;
        ensure!(output.code != 0, "that command should have failed");
        ensure!(output.stderr.contains(expect), "the error should contain {expect:?}");
        Ok(())
    }

    /// Waits until a command says all of `expect`, then shows it, as a person who looks again.
    pub(super) fn comes_to(&self, arguments: &[&str], expect: &[&str]) -> Result<()> {
        // What is shown is the answer that was waited for: the next one may say something else again.
        let said = eventually(&arguments.join(" "), || {
            let said = self.kubectl.ok(arguments)?;
            let missing = expect.iter().find(|word| !said.contains(**word));
            ensure!(missing.is_none(), "the answer should contain {missing:?}, and is:\n{said}");
            Ok(said)
        })?;
        self.prompt(arguments);
        println!("{said}");
        Ok(())
    }

    /// Shows a file and applies it.
    pub(super) fn applies(&self, file: &Path) -> Result<()> {
        println!("$ cat {}", file.display());
        println!("{}", std::fs::read_to_string(file)?);
        self.shows(&["apply", "--filename", &file.display().to_string()], &[])
    }

    fn prompt(&self, arguments: &[&str]) {
        println!("$ {} {}", self.shown, arguments.join(" "));
    }

    fn typed(&self, arguments: &[&str]) -> Result<Output> {
        self.prompt(arguments);
        let output = self.kubectl.run(arguments)?;
        println!("{}{}", output.stdout, output.stderr);
        Ok(output)
    }
}

/// Says what comes next.
pub(super) fn explain(text: &str) {
    println!("# {text}");
}
