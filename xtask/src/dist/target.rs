//! The machines that a release is made for, and what each package format calls them.

use super::linkage::Linkage;
use anyhow::{Context, Result};
use clap::ValueEnum;

/// A kind of machine, under the name that VS Code's Marketplace has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    #[value(name = "linux-x64")]
    LinuxX64,
    #[value(name = "linux-arm64")]
    LinuxArm64,
    #[value(name = "alpine-x64")]
    AlpineX64,
    #[value(name = "darwin-arm64")]
    DarwinArm64,
    #[value(name = "darwin-x64")]
    DarwinX64,
    #[value(name = "win32-x64")]
    Win32X64,
}

/// The oldest macOS for which Rust compiles on arm64.
pub const MACOS_MIN: &str = "11.0";

impl Target {
    /// The machine that this program was compiled for.
    pub fn host() -> Result<Target> {
        let os = if cfg!(target_env = "musl") { "musl" } else { std::env::consts::OS };
        let arch = std::env::consts::ARCH;
        Ok(match (os, arch) {
            ("linux", "x86_64") => Target::LinuxX64,
            ("linux", "aarch64") => Target::LinuxArm64,
            ("musl", "x86_64") => Target::AlpineX64,
            ("macos", "aarch64") => Target::DarwinArm64,
            ("macos", "x86_64") => Target::DarwinX64,
            ("windows", "x86_64") => Target::Win32X64,
            _ => anyhow::bail!("{os} on {arch}: no release is made for it"),
        })
    }

    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("no target is hidden");
        value.get_name().to_owned()
    }

    /// Rust's name.
    pub fn triple(self) -> &'static str {
        match self {
            Target::LinuxX64 => "x86_64-unknown-linux-gnu",
            Target::LinuxArm64 => "aarch64-unknown-linux-gnu",
            Target::AlpineX64 => "x86_64-unknown-linux-musl",
            Target::DarwinArm64 => "aarch64-apple-darwin",
            Target::DarwinX64 => "x86_64-apple-darwin",
            Target::Win32X64 => "x86_64-pc-windows-msvc",
        }
    }

    /// Debian's name. Debian has glibc, so Alpine has no package.
    pub fn debian(self) -> Option<&'static str> {
        match self {
            Target::LinuxX64 => Some("amd64"),
            Target::LinuxArm64 => Some("arm64"),
            _ => None,
        }
    }

    /// The platform tag of a wheel. On Linux it depends on what the programs need: where that is
    /// more than an old C library, the tag says that they fit the machine they were built on, and
    /// PyPI refuses them.
    pub fn wheel_platform(self, linkage: &Linkage) -> Result<String> {
        let manylinux = |arch: &str| {
            let glibc = linkage.glibc();
            let (major, minor) = glibc.context("the programs do not say which glibc they need")?;
            Ok(if linkage.is_manylinux() {
                format!("manylinux_{major}_{minor}_{arch}")
            } else {
                format!("linux_{arch}")
            })
        };
        let macos = MACOS_MIN.replace('.', "_");
        match self {
            Target::LinuxX64 => manylinux("x86_64"),
            Target::LinuxArm64 => manylinux("aarch64"),
            Target::AlpineX64 => Ok("musllinux_1_2_x86_64".to_owned()),
            Target::DarwinArm64 => Ok(format!("macosx_{macos}_arm64")),
            Target::DarwinX64 => Ok(format!("macosx_{macos}_x86_64")),
            Target::Win32X64 => Ok("win_amd64".to_owned()),
        }
    }

    pub fn is_windows(self) -> bool {
        self == Target::Win32X64
    }

    pub fn is_linux(self) -> bool {
        matches!(self, Target::LinuxX64 | Target::LinuxArm64 | Target::AlpineX64)
    }

    /// The file name of a program.
    pub fn program(self, name: &str) -> String {
        if self.is_windows() { format!("{name}.exe") } else { name.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_wheel_and_only_linux_asks_for_a_glibc() {
        for target in Target::value_variants() {
            let of_no_glibc = target.wheel_platform(&Linkage::default());
            let is_glibc = target.debian().is_some();
            assert_eq!(of_no_glibc.is_err(), is_glibc, "{target:?}");
        }
        let old = Linkage::sample(&["GLIBC_2.28"], &["libc.so.6"]);
        let tag = Target::LinuxArm64.wheel_platform(&old).unwrap();
        assert_eq!(tag, "manylinux_2_28_aarch64");
        let openmp = Linkage::sample(&["GLIBC_2.28"], &["libc.so.6", "libgomp.so.1"]);
        assert_eq!(Target::LinuxX64.wheel_platform(&openmp).unwrap(), "linux_x86_64");
        let tag = Target::DarwinX64.wheel_platform(&Linkage::default()).unwrap();
        assert_eq!(tag, "macosx_11_0_x86_64");
    }
}
