//! `cargo xtask dist`: what a release has for one target, and with `--collect` what belongs to all
//! targets together. The release workflow calls nothing else to make packages, so whatever is
//! released can be made and tried on any machine.

mod archive;
pub mod build;
mod checksums;
mod collect;
pub mod contents;
mod deb;
mod dependencies;
mod linkage;
mod notices;
mod npm;
mod packaging;
mod sbom;
pub mod target;
mod vsix;
mod wheel;
pub mod zig;

use crate::files;
use crate::packages;
use crate::smoke;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use build::Wanted;
use clap::ValueEnum;
use contents::{Contents, Release};
use linkage::Linkage;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use target::Target;

/// The folder of the packages, below cargo's target folder.
const OUT: &str = "dist/packages";

#[derive(clap::Args)]
pub struct Arguments {
    /// The machines to make packages for; those like this one if left out
    #[arg(long)]
    target: Option<Target>,
    /// What to make; everything that the target has if left out
    #[arg(long = "only", value_name = "KIND")]
    kinds: Vec<Kind>,
    /// Pack the programs in this folder, instead of building them. Libraries are taken from
    /// ../lib/hone next to it
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// Compile for Linux with this glibc or newer, such as 2.28, with Zig's C compiler
    #[arg(long, value_name = "VERSION")]
    glibc: Option<String>,
    /// The folder to write into; dist/packages below cargo's target folder if left out
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write what a release has once: checksums, notes, and the files of package managers, from
    /// the packages of all targets in the folder to write into
    #[arg(long, conflicts_with_all = ["target", "kinds", "programs", "glibc"])]
    collect: bool,
    /// Leave out the files of package managers whose targets were not built
    #[arg(long, requires = "collect")]
    partial: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Archive,
    Deb,
    Npm,
    Sbom,
    Vsix,
    Wheel,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let out = match &arguments.out {
        // cargo has started this program in the folder that the user is in.
        Some(folder) => std::path::absolute(folder)?,
        None => workspace.target.join(OUT),
    };
    files::make_folder(&out)?;
    if arguments.collect {
        return collect::run(&workspace.root, &out, arguments.partial);
    }
    Steps::with_times(|steps| make_all(workspace, arguments, &out, steps))
}

fn make_all(
    workspace: &Workspace,
    arguments: &Arguments,
    out: &Path,
    steps: &mut Steps,
) -> Result<()> {
    let host = Target::host()?;
    let target = arguments.target.unwrap_or(host);
    let programs = match &arguments.programs {
        Some(folder) => std::path::absolute(folder)?,
        None => built(workspace, target, arguments, target == host, steps)?,
    };
    let packages = dependencies::read(workspace, target)?;
    let contents = Contents::read(&workspace.root, &programs, target, notices::text(&packages)?)?;
    let release = Release { version: version().to_owned(), target, time: time(&workspace.root)? };
    let linkage = Linkage::of(&contents)?;
    let wants = |kind| arguments.kinds.is_empty() || arguments.kinds.contains(&kind);
    if wants(Kind::Archive) {
        write(out, &archive::name(&release), &archive::make(&release, &contents)?)?;
    }
    if wants(Kind::Sbom) {
        write(out, &sbom::name(&release), &sbom::make(&release, &packages)?)?;
    }
    if wants(Kind::Wheel) {
        let wheel = wheel::make(&release, &contents, &linkage)?;
        write(out, &wheel.name, &wheel.bytes)?;
    }
    if wants(Kind::Npm) {
        for (name, bytes) in npm::make(&release, &contents)? {
            write(out, &name, &bytes)?;
        }
    }
    match target.debian() {
        Some(arch) if wants(Kind::Deb) => {
            let deb = deb::make(&release, &contents, &linkage, arch)?;
            write(out, &deb::name(&release, arch), &deb)?;
        }
        _ => {}
    }
    if wants(Kind::Vsix) {
        vsix::make(workspace, &release, &contents, out, steps)?;
    }
    checksums::write(out)?;
    say_needs(&linkage);
    Ok(())
}

/// Builds the programs, and completes a line with them where this machine can run them.
fn built(
    workspace: &Workspace,
    target: Target,
    arguments: &Arguments,
    runs_here: bool,
    steps: &mut Steps,
) -> Result<PathBuf> {
    packages::ensure()?;
    let wanted = Wanted {
        packages: &[],
        examples: &["smoke"],
        features: build::features(target),
        glibc: arguments.glibc.as_deref(),
    };
    let built = build::build(workspace, target, &wanted, steps)?;
    let programs = built.folder.join("bin");
    if runs_here {
        // The program must work without the build folder.
        let hone = programs.join(target.program("hone"));
        smoke::complete(workspace, &built.release, &hone, "", steps)?;
    }
    Ok(programs)
}

/// The version of all parts of this project; see `versions.rs`.
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// When the commit was made.
fn time(root: &Path) -> Result<u64> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(root);
    let output = git.output().context("cannot run git")?;
    ensure!(output.status.success(), "{git:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    text.trim().parse().with_context(|| format!("git says {text:?} of the commit's time"))
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    fs::write(&path, bytes).with_context(|| path.display().to_string())?;
    eprintln!("{} ({:.1} MB)", path.display(), bytes.len() as f64 / 1e6);
    Ok(())
}

fn say_needs(linkage: &Linkage) {
    if let Some((major, minor)) = linkage.glibc() {
        eprintln!("the programs need glibc {major}.{minor} or newer");
    }
    let others = linkage.besides_libc();
    if !others.is_empty() {
        eprintln!("and these libraries of the system: {}", others.join(", "));
    }
}
