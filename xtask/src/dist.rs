//! `cargo xtask dist`: an archive for other machines. The programs are compiled for every CPU of
//! the last fifteen years. llama.cpp's kernels lie beside them, once for each generation of CPUs,
//! and the server loads the best ones that the machine has (feature `portable` of hone). The
//! learner chooses its kernels by itself.

use crate::packages;
use crate::smoke;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// Every x86-64 since 2009, which has SSE 4.2.
const OLDEST_CPU: &str = "x86-64-v2";

const PROGRAMS: [&str; 3] = ["hone", "hone-learner", "hone-rehearse"];

/// The folder of the libraries in the archive. The server looks for it from its own folder.
pub const LIBRARIES: &str = "lib/hone";

#[derive(clap::Args)]
pub struct Arguments {
    /// Features of hone to build beside it: cuda, vulkan
    #[arg(long = "feature")]
    features: Vec<String>,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    ensure!(cfg!(target_os = "linux"), "archives can be made on Linux only");
    packages::ensure()?;
    let mut steps = Steps::default();
    // A folder of its own: the build for this machine has other flags and stays as it is.
    let target = workspace.target.join("dist");
    let features: Vec<String> = ["portable"]
        .into_iter()
        .chain(arguments.features.iter().map(String::as_str))
        .map(|feature| format!("hone/{feature}"))
        .collect();
    let llama = build(workspace, &target, &features, &mut steps)?;
    let name = format!("hone-{}-{}-linux", env!("CARGO_PKG_VERSION"), env::consts::ARCH);
    let folder = target.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    let (programs, libraries) = (folder.join("bin"), folder.join(LIBRARIES));
    for folder in [&programs, &libraries] {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    for program in PROGRAMS {
        copy(&target.join("release").join(program), &programs)?;
    }
    copy_libraries(&llama, &libraries)?;
    for text in ["README.md", "CHANGELOG.md"] {
        copy(&workspace.root.join(text), &folder)?;
    }
    // The archive's program must work without the build folder.
    smoke::complete(workspace, &target.join("release"), &programs.join("hone"), "", &mut steps)?;
    let archive = target.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--gzip").arg("--file").arg(&archive);
    steps.run("archive", tar.arg("--directory").arg(&target).arg(&name))?;
    steps.print();
    eprintln!("{} (needs glibc of this system or newer, and libgomp)", archive.display());
    Ok(())
}

/// Copies the libraries that the programs are linked with, and those that the server loads.
pub fn copy_libraries(llama: &Path, to: &Path) -> Result<()> {
    for from in ["lib", "lib64", "backends"].map(|folder| llama.join(folder)) {
        for library in shared_libraries(&from)? {
            copy(&library, to)?;
        }
    }
    Ok(())
}

/// Builds the programs and examples with these features; answers the folder of llama.cpp's
/// libraries.
pub fn build(
    workspace: &Workspace,
    target: &Path,
    features: &[String],
    steps: &mut Steps,
) -> Result<PathBuf> {
    let messages = target.join("messages.json");
    fs::create_dir_all(target).with_context(|| target.display().to_string())?;
    let out = fs::File::create(&messages).with_context(|| messages.display().to_string())?;
    let mut cargo = workspace.cargo();
    cargo
        .args(["build", "--release", "--workspace", "--exclude", "xtask", "--bins", "--examples"])
        .args(["--message-format", "json-render-diagnostics", "--features", &features.join(",")])
        .env("CARGO_TARGET_DIR", target)
        .env("RUSTFLAGS", flags())
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

fn flags() -> String {
    let cpu = if cfg!(target_arch = "x86_64") { OLDEST_CPU } else { "generic" };
    format!("-C target-cpu={cpu} -C link-arg=-Wl,-rpath,$ORIGIN/../{LIBRARIES}")
}

/// The shared libraries of a folder under the names that are looked for at run time: kernels as
/// `lib….so`, linked libraries as `lib….so.0`, which is a link to the file itself.
fn shared_libraries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(vec![]);
    }
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match name.split_once(".so") {
            Some((_, "")) => !path.is_symlink(),
            Some((_, version)) => version[1..].bytes().all(|byte| byte.is_ascii_digit()),
            None => false,
        }
    });
    Ok(paths)
}

pub fn copy(from: &Path, folder: &Path) -> Result<()> {
    let name = from.file_name().context("no file name")?;
    fs::copy(from, folder.join(name)).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}
