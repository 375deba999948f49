//! `cargo xtask docs`: the book builds, no link is broken, the pages that are made from the
//! programs are up to date, the first pages are short, and no line of code is long.

mod generated;
mod lines;
mod names;

use crate::editors::Tools;
use crate::step::{self, Steps};
use crate::versions;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;

const BOOK: &str = "docs/book";

/// The documents that are read where they lie, files and folders.
const DOCUMENTS: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "vscode-extension/README.md",
    "neovim/README.md",
    "docs",
];

/// The page that mdBook makes for a place that does not exist, whose links depend on it.
const NOT_FOUND_PAGE: &str = "404.html$";

/// The page that says where what is done. Its files and functions must exist.
const MAP: &str = "ARCHITECTURE.md";

#[derive(Args)]
pub struct Arguments {
    /// Write the pages that are made from the programs, instead of only checking them
    #[arg(long)]
    write: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::default();
    steps.run("programs", &mut workspace.cargo_build())?;
    steps.check("pages made from the programs", || generated::check(workspace, arguments.write))?;
    steps.check("versions", || versions::check(&workspace.root))?;
    let tools = Tools::install(workspace, &mut steps)?;
    let checked = check(workspace, &tools, &mut steps);
    steps.print();
    eprint!("{}", steps.failures().1);
    checked
}

/// Checks that the pages made from the programs say what the built programs say.
pub fn check_generated(workspace: &Workspace, steps: &mut Steps) -> Result<()> {
    steps.check("pages made from the programs", || generated::check(workspace, false))
}

/// Builds the book and checks what can be checked of words by a program.
pub fn check(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    // Both are built programs in Python packages: to compile them takes minutes.
    tools.pip(workspace, "xtask/docs.txt", "mdbook, lychee", steps)?;
    let built = workspace.target.join("book");
    let mut build = tools.command("mdbook");
    build.current_dir(&workspace.root).args(["build", BOOK, "--dest-dir"]).arg(&built);
    // A page that is named and missing is an error, not a page to be made.
    build.env("MDBOOK_BUILD__CREATE_MISSING", "false");
    steps.run("book", &mut build)?;
    let links = || {
        let mut lychee = tools.command("lychee");
        lychee.current_dir(&workspace.root);
        lychee.args(["--offline", "--include-fragments", "--no-progress"]);
        lychee.args(["--exclude-path", NOT_FOUND_PAGE]);
        lychee
    };
    step::all([
        steps.run("links of the documents", links().args(DOCUMENTS)),
        // mdBook copies or includes from elsewhere, and a link may lead out of the book, where a
        // reader has no such file.
        steps.run("links of the built book", links().arg(&built)),
        steps.check("lengths and names", || {
            let files = repository_files(&workspace.root)?;
            let mut problems = lines::problems(&workspace.root, &files)?;
            problems.extend(names::missing(&workspace.root, &files, MAP)?);
            let list = problems.join("\n");
            ensure!(list.is_empty(), "the documents or the code have problems:\n{list}");
            Ok(())
        }),
    ])
}

/// Returns the files of the repository, those that are not committed yet among them. What git
/// ignores is left out.
fn repository_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = git.output().context("cannot run git")?;
    ensure!(output.status.success(), "{git:?}: {}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout)?;
    let files = names.split_terminator('\0').map(PathBuf::from);
    // A file that is deleted and still committed is listed too.
    Ok(files.filter(|file| root.join(file).is_file()).collect())
}
