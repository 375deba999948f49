//! Builds the programs for other machines than this one.
//!
//! On Linux they are compiled for every CPU of the last fifteen years. llama.cpp's kernels lie
//! next to them, once for each generation of CPUs, and the server loads the best ones that the
//! machine has (feature `portable` of hone). The learner chooses its kernels by itself. On macOS
//! and Windows everything is in the programs.

use super::contents::{LIBRARIES, PROGRAMS};
use super::target::{MACOS_MIN, Target};
use super::zig;
use crate::files;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Every x86-64 since 2009, which has SSE 4.2.
const OLDEST_CPU: &str = "x86-64-v2";

/// More than the programs, and how all is built.
pub struct Wanted<'a> {
    /// Packages besides those of the programs.
    pub packages: &'a [&'a str],
    pub examples: &'a [&'a str],
    /// As cargo reads them, with commas.
    pub features: &'a str,
    /// The oldest glibc that the programs run with, if it is not this machine's.
    pub glibc: Option<&'a str>,
}

pub struct Built {
    /// A folder with `bin` and, on Linux, `lib/hone`.
    pub folder: PathBuf,
    /// The folder of cargo's output, where examples lie.
    pub release: PathBuf,
}

pub fn build(
    workspace: &Workspace,
    target: Target,
    wanted: &Wanted,
    steps: &mut Steps,
) -> Result<Built> {
    // A folder of its own: the build for this machine has other flags and stays as it is.
    let cargo_target = workspace.target.join("dist");
    let llama = compile(workspace, &cargo_target, target, wanted, steps)?;
    let release = cargo_target.join(target.triple()).join("release");
    let folder = cargo_target.join("built").join(target.name());
    files::make_empty_folder(&folder)?;
    let (programs, libraries) = (folder.join("bin"), folder.join(LIBRARIES));
    files::make_folder(&programs)?;
    for program in PROGRAMS {
        files::copy_into(&release.join(target.program(program)), &programs)?;
    }
    if target.is_linux() {
        files::make_folder(&libraries)?;
        // The libraries that the programs are linked with, and those that the server loads.
        for from in ["lib", "lib64", "backends"].map(|folder| llama.join(folder)) {
            for library in shared_libraries(&from)? {
                files::copy_into(&library, &libraries)?;
            }
        }
    }
    Ok(Built { folder, release })
}

/// Compiles, and returns the folder that llama.cpp was installed into.
fn compile(
    workspace: &Workspace,
    cargo_target: &Path,
    target: Target,
    wanted: &Wanted,
    steps: &mut Steps,
) -> Result<PathBuf> {
    files::make_folder(cargo_target)?;
    let release = cargo_target.join(target.triple()).join("release");
    for folder in [&release, &release.join("deps"), &release.join("examples")] {
        remove_dangling_links(folder)?;
    }
    let messages = cargo_target.join("messages.json");
    let out = fs::File::create(&messages).with_context(|| messages.display().to_string())?;
    let mut cargo = match zig::triple(target, wanted.glibc)? {
        Some(triple) => zig::cargo(workspace, "zigbuild", &triple, cargo_target, steps)?,
        None => {
            let mut cargo = workspace.cargo();
            cargo.args(["build", "--target", target.triple()]);
            cargo
        }
    };
    cargo
        .args(["--release", "--package", "hone", "--package", "learner"])
        .args(["--package", "rehearsal", "--bins"])
        .args(wanted.packages.iter().flat_map(|name| ["--package", name]))
        .args(wanted.examples.iter().flat_map(|name| ["--example", name]))
        // hone's only default feature is OpenMP, whose runtime few machines have.
        .arg("--no-default-features")
        .args(["--message-format", "json-render-diagnostics"])
        .args(["--features", wanted.features])
        .env("CARGO_TARGET_DIR", cargo_target)
        .env("MACOSX_DEPLOYMENT_TARGET", MACOS_MIN)
        // hone-rehearse needs zlib, which not every machine has.
        .env("LIBZ_SYS_STATIC", "1")
        .env("RUSTFLAGS", flags(target))
        .stdout(Stdio::from(out));
    steps.run("build", &mut cargo)?;
    let messages = fs::read_to_string(&messages)?;
    let mut out = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let of_llama = message["reason"] == "build-script-executed"
            && message["package_id"].as_str()?.contains("llama-cpp-sys-2");
        Some(PathBuf::from(of_llama.then(|| message["out_dir"].as_str())??))
    });
    out.next().context("cargo has not reported where llama.cpp was built")
}

/// Removes the links of a folder that lead nowhere. llama.cpp's build script puts such links there,
/// and fails if those of an earlier build with other features still exist.
fn remove_dangling_links(folder: &Path) -> Result<()> {
    for path in files::list(folder)? {
        if path.is_symlink() && !path.exists() {
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// The features of a release, as cargo reads them.
pub fn features(target: Target) -> &'static str {
    match target {
        Target::LinuxX64 | Target::LinuxArm64 | Target::AlpineX64 => "hone/portable",
        // Every Mac with an ARM processor has a GPU that llama.cpp can use.
        Target::DarwinArm64 => "hone/metal",
        Target::DarwinX64 | Target::Win32X64 => "",
    }
}

pub fn flags(target: Target) -> String {
    match target {
        Target::LinuxX64 => format!("-C target-cpu={OLDEST_CPU} {}", find_libraries()),
        Target::LinuxArm64 => format!("-C target-cpu=generic {}", find_libraries()),
        // The kernels are loaded at run time, which a static program cannot do; nor can a build
        // script that loads libclang, on Alpine itself.
        Target::AlpineX64 => {
            format!("-C target-cpu={OLDEST_CPU} -C target-feature=-crt-static {}", find_libraries())
        }
        Target::DarwinX64 | Target::Win32X64 => format!("-C target-cpu={OLDEST_CPU}"),
        Target::DarwinArm64 => "-C target-cpu=apple-m1".to_owned(),
    }
}

fn find_libraries() -> String {
    format!("-C link-arg=-Wl,-rpath,$ORIGIN/../{LIBRARIES}")
}

/// The shared libraries of a folder under the names that are looked for at run time: kernels as
/// `lib….so`, linked libraries as `lib….so.0`, which is a link to the file itself.
fn shared_libraries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = files::list(folder)?;
    paths.retain(|path| match files::name(path).split_once(".so") {
        Some((_, "")) => !path.is_symlink(),
        Some((_, version)) => version[1..].bytes().all(|byte| byte.is_ascii_digit()),
        None => false,
    });
    Ok(paths)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_links_that_lead_nowhere_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [library, whole, dangling] =
            ["libggml.so.0", "libggml.so", "libllama.so"].map(|name| folder.path().join(name));
        fs::write(&library, "a library").unwrap();
        symlink("libggml.so.0", &whole).unwrap();
        symlink("libllama.so.0", &dangling).unwrap();
        remove_dangling_links(folder.path()).unwrap();
        assert!(library.exists() && whole.is_symlink());
        assert!(!dangling.is_symlink());
        remove_dangling_links(&folder.path().join("missing")).unwrap();
    }
}
