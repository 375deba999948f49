//! What a test says when this machine cannot run it.
//!
//! By itself such a test passes, with a line on the terminal. With `HONE_TEST_STRICT=1`,
//! which CI sets, it fails, unless `HONE_TEST_WITHOUT` names what is missing: a list with
//! commas, of hardware and of rights that a machine may withhold.

use std::io::Write;

/// What a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Becoming another user, and giving files to one: only root may.
    Root,
    /// Mounting a file system.
    Mount,
    /// Mounting a file as a disk.
    LoopDevice,
    /// A kernel that turns a file system read-only on demand.
    RemountAbort,
    /// A network namespace.
    NetworkNamespace,
    /// A program. It can be installed, so nothing excuses its absence in CI.
    Program(&'static str),
}

impl Missing {
    /// Its name in `HONE_TEST_WITHOUT`.
    fn name(self) -> Option<&'static str> {
        match self {
            Missing::Root => Some("root"),
            Missing::Mount => Some("mount"),
            Missing::LoopDevice => Some("loop-device"),
            Missing::RemountAbort => Some("remount-abort"),
            Missing::NetworkNamespace => Some("network-namespace"),
            Missing::Program(_) => None,
        }
    }
}

/// Says that `what` is not tested here. The test returns after this.
///
/// # Panics
/// With `HONE_TEST_STRICT=1`, unless `HONE_TEST_WITHOUT` names what is missing.
pub fn skipped(what: &str, missing: Missing) {
    let is_strict = std::env::var("HONE_TEST_STRICT").is_ok_and(|value| value == "1");
    let without = std::env::var("HONE_TEST_WITHOUT").unwrap_or_default();
    if let Err(error) = may_skip(missing, is_strict, &without) {
        panic!("{what} cannot be tested: {error}");
    }
    // On the terminal, whatever the test harness catches.
    let _ = writeln!(std::io::stderr(), "SKIPPED {what}: {missing:?} is missing");
}

fn may_skip(missing: Missing, is_strict: bool, without: &str) -> Result<(), String> {
    match missing.name() {
        _ if !is_strict => Ok(()),
        Some(name) if without.split(',').any(|listed| listed.trim() == name) => Ok(()),
        Some(name) => Err(format!(
            "{missing:?} is missing; add `{name}` to HONE_TEST_WITHOUT if this machine cannot \
             have it"
        )),
        None => Err(format!("{missing:?} is missing; install it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strict_run_skips_only_what_is_named_as_missing() {
        assert_eq!(may_skip(Missing::Root, false, ""), Ok(()));
        assert_eq!(may_skip(Missing::Root, true, "gpu, root"), Ok(()));
        let error = may_skip(Missing::Mount, true, "gpu,root").unwrap_err();
        assert!(error.contains("`mount`"), "{error}");
    }

    #[test]
    fn a_program_can_be_installed_and_is_not_excused() {
        let perl = Missing::Program("perl");
        assert_eq!(may_skip(perl, false, ""), Ok(()));
        let error = may_skip(perl, true, "perl").unwrap_err();
        assert!(error.contains("perl") && error.contains("install it"), "{error}");
    }
}
