//! The hardware that this machine lacks. Its tests may be left out where every other test that
//! cannot run is a failure (`HONE_TEST_STRICT=1`).

use std::path::Path;

/// The names that tests give to hardware, with commas: `HONE_TEST_WITHOUT`, as the user set
/// it, or what can be seen to be missing.
pub fn missing() -> String {
    if let Ok(named) = std::env::var("HONE_TEST_WITHOUT") {
        return named;
    }
    let has_gpu = Path::new("/dev/nvidia0").exists();
    let parts = [("gpu", has_gpu)].into_iter().chain(vector_instructions());
    let missing = parts.filter(|(_, is_there)| !is_there).map(|(name, _)| name);
    missing.collect::<Vec<_>>().join(",")
}

/// Returns true if a test that cannot run here is a failure.
pub fn is_strict() -> bool {
    std::env::var("HONE_TEST_STRICT").is_ok_and(|value| value == "1")
}

#[cfg(target_arch = "x86_64")]
fn vector_instructions() -> [(&'static str, bool); 3] {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni");
    let avxvnni = avx2 && is_x86_feature_detected!("avxvnni");
    [("avx2", avx2), ("avxvnni", avxvnni), ("avx512", avx512)]
}

#[cfg(not(target_arch = "x86_64"))]
fn vector_instructions() -> [(&'static str, bool); 3] {
    ["avx2", "avxvnni", "avx512"].map(|name| (name, false))
}
