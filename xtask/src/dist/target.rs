//! The machines that a release is made for, and what each package format calls them.

use anyhow::{Result, bail};
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
            _ => bail!("{os} on {arch}: no release is made for it"),
        })
    }

    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("no target is hidden");
        value.get_name().to_owned()
    }

    /// Rust's name. On Windows its own compiler builds, and elsewhere one with MinGW's headers.
    pub fn triple(self) -> &'static str {
        match self {
            Target::LinuxX64 => "x86_64-unknown-linux-gnu",
            Target::LinuxArm64 => "aarch64-unknown-linux-gnu",
            Target::AlpineX64 => "x86_64-unknown-linux-musl",
            Target::DarwinArm64 => "aarch64-apple-darwin",
            Target::DarwinX64 => "x86_64-apple-darwin",
            Target::Win32X64 if std::env::consts::OS == "windows" => "x86_64-pc-windows-msvc",
            Target::Win32X64 => "x86_64-pc-windows-gnu",
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

    pub fn is_macos(self) -> bool {
        matches!(self, Target::DarwinArm64 | Target::DarwinX64)
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
    fn a_target_is_called_what_the_marketplace_calls_it() {
        assert_eq!(Target::LinuxX64.name(), "linux-x64");
        let names: Vec<String> = Target::value_variants().iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), 6);
        for name in names {
            assert!(Target::from_str(&name, false).is_ok(), "{name}");
        }
    }
}
