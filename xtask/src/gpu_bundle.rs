//! `cargo xtask gpu-bundle`: an archive that measures Hone on a machine with an NVIDIA GPU. That
//! machine needs the CUDA toolkit and neither Rust nor a network: it compiles llama.cpp's CUDA
//! backend itself, for its own card, and makes its own models. docs/lab/gpu-smoke.md says what is
//! measured and what was found.

use crate::dist::build::{self, Wanted};
use crate::dist::contents::LIBRARIES;
use crate::dist::target::Target;
use crate::files;
use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const NAME: &str = "hone-gpu";

/// Features of the programs. Neither needs CUDA to be compiled.
const FEATURES: &str = "hone/portable,learner/cuda";

const PROGRAMS: [&str; 2] = ["hone", "hone-learner"];
/// The packages of the examples, besides those of the programs.
const PACKAGES: [&str; 2] = ["engine", "models"];
const EXAMPLES: [&str; 4] = ["gpu_smoke", "random_model", "engine_gpu", "learner_gpu"];
const SCRIPTS: [&str; 2] = ["run.sh", "cuda-backend.sh"];
/// A change of ours to llama.cpp's CUDA backend.
const PROMPT_PRODUCTS: &str = "lsp-server/engine/cmake/prompt_products.cu";

/// GCC 12 compiles these kernels wrongly. Without them the server takes the next best.
const LEFT_OUT: &str = "libggml-cpu-sapphirerapids.so";

/// The largest size of a bundle in bytes, so that it can be carried anywhere.
const BYTES_MAX: u64 = 60 << 20;

#[derive(clap::Args)]
pub struct Arguments {
    /// A model file, whose tokenizer goes into the bundle
    #[arg(long, value_name = "FILE")]
    like: PathBuf,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    ensure!(std::env::consts::OS == "linux", "bundles can be made on Linux only");
    packages::ensure()?;
    let mut steps = Steps::default();
    let target = workspace.target.join("dist");
    let wanted =
        Wanted { packages: &PACKAGES, examples: &EXAMPLES, features: FEATURES, glibc: None };
    let built = build::build(workspace, Target::host()?, &wanted, &mut steps)?;
    let folder = target.join(NAME);
    files::make_empty_folder(&folder)?;
    let (programs, libraries) = (folder.join("bin"), folder.join(LIBRARIES));
    files::make_folder(&programs)?;
    files::make_folder(&libraries)?;
    for program in PROGRAMS {
        files::copy_into(&built.folder.join("bin").join(program), &programs)?;
    }
    for example in EXAMPLES {
        files::copy_into(&built.release.join("examples").join(example), &programs)?;
    }
    for library in files::list(&built.folder.join(LIBRARIES))? {
        if !library.ends_with(LEFT_OUT) {
            files::copy_into(&library, &libraries)?;
        }
    }
    for script in SCRIPTS {
        files::copy_into(&workspace.root.join("xtask/gpu").join(script), &folder)?;
    }
    files::copy_into(&workspace.root.join(PROMPT_PRODUCTS), &folder)?;
    copy_ggml(&sources(workspace)?.join("llama.cpp/ggml"), &folder.join("ggml"))?;
    let mut metadata = Command::new(programs.join("random_model"));
    metadata.arg("--like").arg(&arguments.like).arg("--out").arg(folder.join("metadata.gguf"));
    steps.run("tokenizer", &mut metadata)?;

    let mut strip = Command::new("strip");
    strip.args(files::list(&programs)?).args(files::list(&libraries)?);
    steps.run("strip", &mut strip)?;
    let archive = target.join(format!("{NAME}.tar.xz"));
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--xz").arg("--file").arg(&archive);
    steps.run("archive", tar.arg("--directory").arg(&target).arg(NAME))?;
    steps.print();
    let bytes = fs::metadata(&archive)?.len();
    ensure!(bytes <= BYTES_MAX, "{}: {bytes} bytes, at most {BYTES_MAX}", archive.display());
    eprintln!("{}, {} MiB; on the machine: hone-gpu/run.sh OUT", archive.display(), bytes >> 20);
    Ok(())
}

/// The sources of the crate that `hone` gets llama.cpp from.
fn sources(workspace: &Workspace) -> Result<PathBuf> {
    const CRATE: &str = "llama-cpp-sys-2";
    let metadata = workspace.metadata(&["--offline"])?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let package = packages.iter().find(|package| package["name"] == CRATE);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest.with_context(|| format!("cargo metadata does not name {CRATE}"))?;
    Ok(Path::new(manifest).with_file_name(""))
}

/// Copies what the CUDA backend is compiled from: its own folder and all headers.
fn copy_ggml(from: &Path, to: &Path) -> Result<()> {
    let cuda = "src/ggml-cuda";
    let folders = ["include", "src", cuda, "src/ggml-cuda/template-instances"];
    for folder in folders.into_iter().chain(["src/ggml-cuda/vendors"]) {
        let copies = to.join(folder);
        files::make_folder(&copies)?;
        for file in files::list(&from.join(folder))? {
            let is_header = file.extension().is_some_and(|extension| extension == "h");
            if file.is_file() && (is_header || folder.starts_with(cuda)) {
                files::copy_into(&file, &copies)?;
            }
        }
    }
    Ok(())
}
