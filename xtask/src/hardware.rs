//! What this machine lacks, so that its tests may be left out where every other test that
//! cannot run is a failure (`HONE_TEST_STRICT=1`).

use std::path::Path;

/// The names that tests give to hardware, with commas: `HONE_TEST_WITHOUT`, as the user set
/// it, or what can be seen to be missing.
pub fn missing() -> String {
    if let Ok(named) = std::env::var("HONE_TEST_WITHOUT") {
        return named;
    }
    let has_gpu = Path::new("/dev/nvidia0").exists();
    let parts = [
        ("gpu", has_gpu),
        ("avx2", cpu::has_avx2()),
        ("avxvnni", cpu::has_avx_vnni()),
        ("avx512", cpu::has_avx512_vnni()),
    ];
    let missing = parts.into_iter().filter(|(_, is_there)| !is_there).map(|(name, _)| name);
    missing.collect::<Vec<_>>().join(",")
}

/// Whether a test that cannot run here is a failure.
pub fn is_strict() -> bool {
    std::env::var("HONE_TEST_STRICT").is_ok_and(|value| value == "1")
}

#[cfg(target_arch = "x86_64")]
mod cpu {
    pub fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }

    pub fn has_avx_vnni() -> bool {
        has_avx2() && is_x86_feature_detected!("avxvnni")
    }

    pub fn has_avx512_vnni() -> bool {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni")
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod cpu {
    pub fn has_avx2() -> bool {
        false
    }

    pub fn has_avx_vnni() -> bool {
        false
    }

    pub fn has_avx512_vnni() -> bool {
        false
    }
}
