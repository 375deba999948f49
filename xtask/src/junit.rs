//! What a run of tests was like, from the report that nextest writes: the slowest tests, those that
//! passed only when they were repeated, those that could not run, and those that failed.

use anyhow::{Context, Result};
use roxmltree::{Document, Node};
use std::fmt::Write;

/// The number of slow tests that are listed.
const SLOWEST: usize = 20;

/// The number of lines that are shown of a panic's message.
const MESSAGE_LINES: usize = 12;

/// The beginning of the line that a test prints if this machine cannot run it.
const SKIPPED: &str = "SKIPPED ";

pub struct Report {
    tests: Vec<Test>,
}

struct Test {
    /// The binary and the test in it.
    name: String,
    seconds: f64,
    /// The messages of tries that failed before one passed.
    retried: Vec<String>,
    failure: Option<String>,
    /// The lines that say what could not be tested.
    skipped: Vec<String>,
}

impl Report {
    pub fn parse(text: &str) -> Result<Report> {
        let document = Document::parse(text)?;
        let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
        Ok(Report { tests: cases.map(Test::of).collect::<Result<_>>()? })
    }

    /// Lists the tests that took longest, with seconds.
    pub fn slowest(&self) -> String {
        let mut tests: Vec<&Test> = self.tests.iter().collect();
        tests.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let line = |test: &Test| format!("{:>7.1} s  {}\n", test.seconds, test.name);
        tests.into_iter().take(SLOWEST).map(line).collect()
    }

    /// Lists the tests that failed and passed when they were repeated, with the reasons.
    pub fn retried(&self) -> String {
        let mut text = String::new();
        for test in &self.tests {
            for message in &test.retried {
                let _ = writeln!(text, "RETRIED {}: {message}", test.name);
            }
        }
        text
    }

    /// Lists what could not be tested on this machine.
    pub fn skipped(&self) -> String {
        self.tests.iter().flat_map(|test| &test.skipped).flat_map(|line| [line, "\n"]).collect()
    }

    /// Lists the tests that failed, with the reasons.
    pub fn failed(&self) -> String {
        let failed = |test: &Test| {
            let message = test.failure.as_ref()?;
            Some(format!("FAILED {}: {message}\n", test.name))
        };
        self.tests.iter().filter_map(failed).collect()
    }

    pub fn count(&self) -> usize {
        self.tests.len()
    }
}

impl Test {
    fn of(node: Node) -> Result<Test> {
        let attribute = |name| node.attribute(name).with_context(|| format!("no {name}"));
        let children = |name: &'static str| node.children().filter(move |n| n.has_tag_name(name));
        let failure = children("failure").chain(children("error")).next();
        let output = children("system-err").filter_map(|output| output.text());
        let skipped = output.flat_map(str::lines).filter(|line| line.starts_with(SKIPPED));
        Ok(Test {
            name: format!("{} {}", attribute("classname")?, attribute("name")?),
            seconds: attribute("time")?.parse()?,
            retried: children("flakyFailure").map(message).collect(),
            failure: failure.map(message),
            skipped: skipped.map(str::to_owned).collect(),
        })
    }
}

/// Returns the message of a panic without its backtrace, or what else is said of the failure.
fn message(node: Node) -> String {
    let text = node.text().unwrap_or_default().trim();
    let text = text.split("\nstack backtrace:").next().unwrap_or_default();
    if text.is_empty() {
        return node.attribute("type").unwrap_or("it failed").to_owned();
    }
    text.lines().take(MESSAGE_LINES).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3">
    <testsuite name="nxt" tests="3">
        <testcase name="unsteady" classname="tests::e2e" time="0.017">
            <flakyFailure time="0.901" message="panicked" type="exit code 101">
thread &apos;unsteady&apos; panicked at src/lib.rs:3:5:
first
stack backtrace:
   0: begin_unwind
                <system-err>SKIPPED nothing</system-err>
            </flakyFailure>
            <system-err></system-err>
        </testcase>
        <testcase name="good" classname="hone" time="31.5">
            <system-out>SKIPPED is looked for where tests write it</system-out>
            <system-err>SKIPPED a disk: Mount is missing
other
</system-err>
        </testcase>
        <testcase name="bad" classname="hone" time="2.5">
            <failure message="panicked" type="exit code 101">
thread &apos;bad&apos; panicked at src/lib.rs:2:4:
  left: 2
note: with a hint</failure>
            <rerunFailure time="0.458" message="again" type="exit code 101">again</rerunFailure>
        </testcase>
        <testcase name="slow" classname="hone" time="600.0"><failure type="timeout"/></testcase>
    </testsuite>
</testsuites>"#;

    #[test]
    fn a_report_says_what_was_slow_repeated_skipped_and_wrong() {
        let report = Report::parse(REPORT).unwrap();
        assert_eq!(report.count(), 4);
        let slowest = report.slowest();
        let names: Vec<&str> =
            slowest.lines().map(|line| line.split(" s  ").nth(1).unwrap()).collect();
        assert_eq!(names, ["hone slow", "hone good", "hone bad", "tests::e2e unsteady"]);
        let retried = "RETRIED tests::e2e unsteady: thread 'unsteady' panicked at src/lib.rs:3:5:\n\
                       first\n";
        assert_eq!(report.retried(), retried);
        assert_eq!(report.skipped(), "SKIPPED a disk: Mount is missing\n");
        let failed = "FAILED hone bad: thread 'bad' panicked at src/lib.rs:2:4:\n  left: 2\n\
                      note: with a hint\nFAILED hone slow: timeout\n";
        assert_eq!(report.failed(), failed);
    }

    #[test]
    fn what_is_no_report_is_an_error() {
        assert!(Report::parse("").is_err());
        assert!(Report::parse("<testsuites><testcase name=\"a\"/></testsuites>").is_err());
    }
}
