//! Helpers that the unit tests share.

use crate::kernels::int8_dot::Int8Unit;
use std::env;

/// Calls `run` for each unit that multiplies 8-bit integers on this CPU, and reports the
/// units that are missing.
pub fn for_each_int8_unit(run: impl Fn(Int8Unit)) {
    for (unit, names) in [
        (Int8Unit::Vnni512, ["avx512", "vnni"].as_slice()),
        (Int8Unit::Vnni256, &["avxvnni", "vnni"]),
        (Int8Unit::Avx2, &["avx2"]),
    ] {
        if unit.is_available() {
            run(unit);
        } else {
            skip(&format!("{unit:?}: this CPU does not have it"), names);
        }
    }
}

/// Reports that a test is skipped because this machine lacks some hardware. `names` are the
/// names of this hardware.
///
/// # Panics
/// A skipped test is a failure if `HONE_TEST_STRICT` is 1, unless `HONE_TEST_WITHOUT` has one
/// of the names. That variable is a list with commas.
pub fn skip(what: &str, names: &[&str]) {
    let strict = env::var("HONE_TEST_STRICT").is_ok_and(|value| value == "1");
    let without = env::var("HONE_TEST_WITHOUT").unwrap_or_default();
    assert!(
        may_skip(strict, &without, names),
        "{what}; name one of {names:?} in HONE_TEST_WITHOUT if this machine cannot have it"
    );
    println!("SKIPPED {what}");
}

fn may_skip(strict: bool, without: &str, names: &[&str]) -> bool {
    !strict || without.split(',').any(|missing| names.contains(&missing.trim()))
}

#[test]
fn a_strict_run_skips_only_what_is_named_as_missing() {
    assert!(may_skip(false, "", &["gpu"]));
    assert!(!may_skip(true, "", &["gpu"]));
    assert!(!may_skip(true, "amx,avx512", &["gpu"]));
    assert!(may_skip(true, "amx, gpu", &["gpu"]));
    assert!(may_skip(true, "vnni", &["avx512", "vnni"]));
}
