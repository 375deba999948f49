//! `cargo xtask layers`: who may import whom, as the tables of ARCHITECTURE.md say it.

mod circles;
mod crates;
mod modules;
mod paths;
mod rules;
mod systems;
mod table;
#[cfg(test)]
mod tests;

use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use crates::Package;
use modules::Tree;
use rules::{Crate, Problem};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use table::Rules;

/// Folders of the workspace that hold no code of ours.
const OTHERS: [&str; 4] = ["target", "node_modules", ".git", "corpus"];

pub fn run(workspace: &Workspace) -> Result<()> {
    let page = workspace.root.join(table::PAGE);
    let page = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let rules = table::parse(&page)?;
    let packages = crates::read(&workspace.root, workspace.cargo())?;
    let problems = problems(&workspace.root, &rules, &packages)?;
    for Problem { file, line, what, advice } in &problems {
        eprintln!("{file}:{line}: {what}\n    {advice}");
    }
    let count = problems.len();
    ensure!(count == 0, "{count} breach(es) of the layers in {}", table::PAGE);
    eprintln!("{} crates hold to the layers of {}", packages.len(), table::PAGE);
    Ok(())
}

fn problems(root: &Path, rules: &Rules, packages: &[Package]) -> Result<Vec<Problem>> {
    let mut crates = vec![];
    for package in packages {
        for (at, file) in package.roots.iter().enumerate() {
            let tree = Tree::read(root, file, &externs(package))?;
            let has_floors = at == 0 && package.name == rules.binary;
            crates.push(Crate { package, tree, has_floors });
        }
    }
    let mut problems = rules::check(rules, packages, &crates);
    let mut files = vec![];
    rust_files(root, Path::new(""), &mut files)?;
    for file in files {
        let text = fs::read_to_string(root.join(&file))?;
        let lines = modules::path_attributes(&text).with_context(|| file.display().to_string())?;
        problems.extend(lines.into_iter().map(|line| {
            let what = "`#[path]` includes a file of another place".to_owned();
            Problem::new(&file, line, what, "depend on the library that holds it")
        }));
    }
    Ok(problems)
}

/// The crates that a package's code may name.
fn externs(package: &Package) -> HashSet<String> {
    package.dependencies.iter().map(|one| one.name.replace('-', "_")).collect()
}

/// Every Rust file below `folder`, relative to the workspace.
fn rust_files(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let absolute = root.join(folder);
    let entries = fs::read_dir(&absolute).with_context(|| absolute.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if !OTHERS.iter().any(|name| path.ends_with(name)) {
                rust_files(root, &path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
