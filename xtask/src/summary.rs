//! The end of what `cargo xtask test` prints: times, slow tests, what could not be tested, and last
//! what a person has to look at.

use crate::nextest;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// The file with the tests that failed and passed when they were repeated. It is empty if there are
/// none.
const RETRIED: &str = "retried.txt";
const SLOWEST: &str = "slowest.txt";

pub fn print(workspace: &Workspace, reports: &Path, steps: &Steps) -> Result<()> {
    eprintln!("\n── times of the steps");
    steps.print();
    let (failed, why) = steps.failures();
    let mut failed_tests = String::new();
    match nextest::report(workspace) {
        Ok(report) => {
            let slowest = report.slowest();
            eprintln!("\n── the slowest of {} tests\n{slowest}", report.count());
            write(&reports.join(SLOWEST), &slowest)?;
            let skipped = report.skipped();
            if !skipped.is_empty() {
                eprintln!("── not tested on this machine\n{skipped}");
            }
            let retried = report.retried();
            write(&reports.join(RETRIED), &retried)?;
            if !retried.is_empty() {
                eprintln!(
                    "── failed, and passed when repeated ({RETRIED}): a defect of the test or of \
                     Hone, which the next change has to fix\n{retried}"
                );
            }
            failed_tests = report.failed();
        }
        // The tests have not run if the build failed.
        Err(_) if !failed.is_empty() => {}
        Err(error) => return Err(error),
    }
    eprintln!("What the steps printed is in {}.", reports.display());
    if !failed.is_empty() {
        eprintln!("\n── failed\n{why}{failed_tests}");
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}
