//! A version of the shared part that comes from the coordinator: which one may follow the one that
//! is here, and how far its numbers may be from it. The coordinator chooses everything that the
//! message says, so no limit is computed from a number of it without a bound of its own.

use super::TEAM_FORMAT;
use adapters::team::Joined;
use anyhow::{Context, Result, ensure};
use models::file::hex;
use models::team::core::{Core, STEP};
use models::team::delta;
use models::team::frame::Frame;
use serde::{Deserialize, Serialize};
use settings::Config;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest message that is read, in bytes: a chain of deltas as hex digits.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

/// The number of rounds that a leap may stand for, whatever its version number says. A round of the
/// default team moves the shared part by a quarter of `lab.team_max_norm`.
const LEAP_ROUNDS_MAX: u64 = 16;

/// The largest version number that a leap may have: 27 years of a round each day. A larger one
/// would make every later version of the team an older one.
const LEAP_VERSION_MAX: u64 = 10_000;

/// The number of rounds that a team may have had at once, beyond those that its time allows.
const ROUNDS_AT_ONCE: u64 = 64;

/// The most rounds of a day. A coordinator asks for one a day by default.
const ROUNDS_A_DAY: u64 = 96;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// How far the norm of a round may be above that of its mean. What rounding left out of the round
/// before comes with it, which is a seventh of the norm if the coordinator sets `coarse=3`.
const NORM_SLACK: f64 = 1.25;

/// How far the norm of noise may be above its expected value. Its deviation is a third of a percent
/// with as many numbers as the default model has.
const NOISE_SLACK: f64 = 1.05;

/// A version of the shared part, as the package `team` hands it over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionMessage {
    pub format: u32,
    pub frame: String,
    pub version: u64,
    pub core: String,
    /// The version that the chain begins at. 0 is that of all zeros.
    pub from: u64,
    /// Deltas as hex digits, each with the version that it leads to.
    pub chain: Vec<Link>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub version: u64,
    pub delta: String,
}

/// The limits on what may come, none of which the coordinator decides.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The largest norm by which one round can move the shared part.
    pub round_norm: f64,
    /// The newest version that there can be by now, for a machine that has followed the team.
    pub newest: u64,
}

impl Bounds {
    pub fn of(config: &Config, numbers: usize, joined: Joined, now_ms: u64) -> Bounds {
        let days = now_ms.saturating_sub(joined.at_ms) as f64 / DAY_MS as f64;
        let rounds = ROUNDS_AT_ONCE.saturating_add((days * ROUNDS_A_DAY as f64) as u64);
        let newest = joined.version.saturating_add(rounds);
        Bounds { round_norm: round_norm(config, numbers), newest }
    }
}

/// Returns the largest norm by which a round can move the shared part. It is that of a mean of
/// contributions, of which noise may be the larger part: it has as many dimensions as there are
/// numbers.
pub fn round_norm(config: &Config, numbers: usize) -> f64 {
    let team = &config.team;
    let noise = team.noise * (numbers as f64).sqrt() / team.minimum_members as f64;
    config.lab.team_max_norm * (NORM_SLACK + NOISE_SLACK * noise)
}

pub fn read_message(path: &Path) -> Result<VersionMessage> {
    let name = || path.display().to_string();
    let mut text = vec![];
    let file = File::open(path).with_context(name)?;
    file.take(MESSAGE_BYTES_MAX + 1).read_to_end(&mut text).with_context(name)?;
    ensure!(text.len() as u64 <= MESSAGE_BYTES_MAX, "{}: over {MESSAGE_BYTES_MAX} bytes", name());
    serde_json::from_slice(&text).context("it is no message of a team's version")
}

/// Returns the version that a message leads to, from the one that is here.
///
/// Versions follow each other one by one, and each may be as far from the one before as a round can
/// move it. Only a machine that has no version yet takes a leap, with a bound on its norm and its
/// number.
///
/// # Errors
/// It is for another base model, older than what is here, damaged, begins at a version that is not
/// here, or is farther from here than rounds can have moved it.
pub fn follow(
    frame: &Frame,
    here: &Core,
    message: &VersionMessage,
    bounds: Bounds,
) -> Result<Core> {
    ensure!(
        message.format == TEAM_FORMAT,
        "the message has format {}, this Hone reads {TEAM_FORMAT}; update both",
        message.format
    );
    ensure!(
        message.frame == hex(&frame.sha256()),
        "the team shares an adapter for another base model; serve the team's model"
    );
    let version = message.version;
    ensure!(
        version >= here.version,
        "version {version} is older than {}, which is here; the coordinator has lost versions. If \
         the team begins anew, delete shared.core in the folder `team` of Hone's home",
        here.version
    );
    if version == here.version {
        ensure!(
            message.core == hex(&here.sha256(frame)),
            "version {version} is another than the one of this number that is here"
        );
        return Ok(here.clone());
    }
    ensure!(
        message.from == here.version,
        "the deltas begin at version {}, here is {}; only a machine without a version takes a \
         whole one. If it has missed too many, delete shared.core in the folder `team` of Hone's \
         home",
        message.from,
        here.version
    );
    let is_leap = here.version == 0;
    if is_leap {
        ensure!(
            version <= LEAP_VERSION_MAX,
            "version {version} is above {LEAP_VERSION_MAX}, the largest that a machine begins with"
        );
    } else {
        ensure!(
            version <= bounds.newest,
            "version {version} is above {}; there cannot have been more rounds since this machine \
             joined",
            bounds.newest
        );
    }
    let mut core = here.clone();
    for link in &message.chain {
        ensure!(link.version > core.version, "the deltas are not in order");
        ensure!(
            is_leap || link.version == core.version + 1,
            "the deltas leave out version {}",
            core.version + 1
        );
        ensure!(link.version <= version, "the deltas do not lead to version {version}");
        let delta = unhex(&link.delta).context("a delta is not in hex digits")?;
        let next = delta::decode(frame, &core, &delta, link.version)
            .with_context(|| format!("the delta to version {}", link.version))?;
        if !is_leap {
            check_norm(&next, &core, 1, bounds)?;
        }
        core = next;
    }
    let is_it = core.version == version && hex(&core.sha256(frame)) == message.core;
    ensure!(is_it, "the deltas do not lead to version {version}");
    if is_leap {
        check_norm(&core, here, version.min(LEAP_ROUNDS_MAX), bounds)?;
    }
    Ok(core)
}

/// # Errors
/// So many rounds cannot have moved the shared part so far.
fn check_norm(core: &Core, before: &Core, rounds: u64, bounds: Bounds) -> Result<()> {
    let squares = core.numbers().iter().zip(before.numbers()).map(|(number, before)| {
        ((f64::from(*number) - f64::from(*before)) * f64::from(STEP)).powi(2)
    });
    let (norm, limit) = (squares.sum::<f64>().sqrt(), rounds as f64 * bounds.round_norm);
    ensure!(
        norm <= limit,
        "version {} has the norm {norm:.2} beyond version {}; {limit:.2} is the most that rounds \
         give (`lab.team_max_norm`)",
        core.version,
        before.version
    );
    Ok(())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
