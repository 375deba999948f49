//! `cargo xtask docs`: the book builds, no link is broken, the pages that are made from the
//! programs are up to date, the first pages are short, and no line of code is long.

mod code;
mod generated;
mod names;
mod page;

use crate::editors::Tools;
use crate::step::Steps;
use crate::versions;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use clap::Args;
use page::{Link, Page};
use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

const BOOK: &str = "docs/book";
const BOOK_PAGES: &str = "docs/book/src";

/// Documents beside those in docs/.
const PAGES: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "vscode-extension/README.md",
    "neovim/README.md",
];

/// What a visitor reads first has lines that fit a terminal. So has all code; see [`code`].
const SHORT_LINES: [&str; 2] = ["README.md", "ARCHITECTURE.md"];
const LINE_CHARS_MAX: usize = 100;

/// The page that says where what is done. Its files and functions must exist.
const MAP: &str = "ARCHITECTURE.md";

const README: &str = "README.md";
const README_LINES_MAX: usize = 100;

/// What mdBook makes for a place that does not exist, whose links depend on it.
const NOT_FOUND_PAGE: &str = "404.html";

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
    check(workspace, &tools, &mut steps)?;
    steps.print();
    Ok(())
}

/// Checks that the pages made from the programs say what the built programs say.
pub fn check_generated(workspace: &Workspace, steps: &mut Steps) -> Result<()> {
    steps.check("pages made from the programs", || generated::check(workspace, false))
}

/// Builds the book and checks what can be checked of words by a program.
pub fn check(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    // mdBook's own binary as a Python package: seconds, where to compile it takes minutes.
    tools.pip(workspace, "xtask/mdbook.txt", "mdbook", steps)?;
    let built = workspace.target.join("book");
    let mut build = tools.command("mdbook");
    build.current_dir(&workspace.root).args(["build", BOOK, "--dest-dir"]).arg(&built);
    // A page that is named and missing is an error, not a page to be made.
    build.env("MDBOOK_BUILD__CREATE_MISSING", "false");
    steps.run("book", &mut build)?;
    steps.check("links and lengths", || {
        let mut problems = of_documents(&workspace.root)?;
        // A page's broken link is one of the built page's too.
        if problems.is_empty() {
            let prefix = built.display();
            problems = of_html(&built)?.iter().map(|one| format!("{prefix}/{one}")).collect();
        }
        problems.extend(names::missing(&workspace.root, MAP)?);
        let files = repository_files(&workspace.root)?;
        problems.extend(code::long_lines(&workspace.root, &files)?);
        let list = problems.join("\n");
        ensure!(list.is_empty(), "the documents or the code have problems:\n{list}");
        Ok(())
    })
}

/// Broken links of the Markdown below `root`, and what is too long.
fn of_documents(root: &Path) -> Result<Vec<String>> {
    let mut files: Vec<PathBuf> = PAGES.iter().map(PathBuf::from).collect();
    files.retain(|file| root.join(file).is_file());
    add_files(root, Path::new("docs"), "md", &mut files)?;
    let mut site = Site { root, pages: HashMap::new() };
    let mut problems = vec![];
    for file in &files {
        problems.extend(site.broken_links(file)?);
        let text = fs::read_to_string(root.join(file))?;
        problems.extend(too_long(file, &text));
    }
    Ok(problems)
}

/// Broken links of a built book. mdBook turns `page.md` into `page.html`, and copies or
/// includes from elsewhere; whether that has come out right shows here alone.
fn of_html(book: &Path) -> Result<Vec<String>> {
    let mut files = vec![];
    add_files(book, Path::new(""), "html", &mut files)?;
    ensure!(!files.is_empty(), "{} holds no page", book.display());
    files.retain(|file| !file.ends_with(NOT_FOUND_PAGE));
    let mut site = Site { root: book, pages: HashMap::new() };
    let mut problems = vec![];
    for file in &files {
        problems.extend(site.broken_links(file)?);
    }
    Ok(problems)
}

fn too_long(file: &Path, text: &str) -> Vec<String> {
    let mut problems = vec![];
    if SHORT_LINES.iter().any(|name| file == Path::new(name)) {
        problems.extend(
            page::long_lines(text, LINE_CHARS_MAX).into_iter().map(|line| told(file, line)),
        );
    }
    let count = text.lines().count();
    if file == Path::new(README) && count > README_LINES_MAX {
        problems.push(format!("{README}: {count} lines; at most {README_LINES_MAX} are read"));
    }
    problems
}

fn told(file: &Path, line: usize) -> String {
    format!("{}:{line}: longer than {LINE_CHARS_MAX} characters", file.display())
}

/// The files of the repository, those that are not committed yet among them. What git ignores is
/// left out.
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

/// Adds the files below `folder` with this extension, relative to `root`.
fn add_files(root: &Path, folder: &Path, extension: &str, files: &mut Vec<PathBuf>) -> Result<()> {
    let absolute = root.join(folder);
    let entries = fs::read_dir(&absolute).with_context(|| absolute.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            add_files(root, &path, extension, files)?;
        } else if path.extension().is_some_and(|own| own == extension) {
            files.push(path);
        }
    }
    Ok(())
}

/// Documents that link to each other.
struct Site<'a> {
    root: &'a Path,
    pages: HashMap<PathBuf, Page>,
}

impl Site<'_> {
    fn page(&mut self, file: &Path) -> Result<&Page> {
        if !self.pages.contains_key(file) {
            let path = self.root.join(file);
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let is_html = file.extension().is_some_and(|extension| extension == "html");
            let page = if is_html { page::of_html(&text) } else { page::of_markdown(&text) };
            self.pages.insert(file.to_owned(), page);
        }
        Ok(&self.pages[file])
    }

    fn broken_links(&mut self, file: &Path) -> Result<Vec<String>> {
        let links: Vec<(String, usize)> =
            self.page(file)?.links.iter().map(|Link { to, line }| (to.clone(), *line)).collect();
        let mut problems = vec![];
        for (to, line) in links {
            if let Some(what) = self.broken(file, &to)? {
                problems.push(format!("{}:{line}: {to}: {what}", file.display()));
            }
        }
        Ok(problems)
    }

    /// Why a link leads nowhere; none if it leads somewhere, or out of the repository.
    fn broken(&mut self, file: &Path, to: &str) -> Result<Option<&'static str>> {
        let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
        let path = path.split('?').next().unwrap_or_default();
        if is_elsewhere(path) {
            return Ok(None);
        }
        let target = if path.is_empty() {
            file.to_owned()
        } else {
            let folder = file.parent().unwrap_or(Path::new(""));
            match normal(&folder.join(path.replace("%20", " "))) {
                Some(target) => target,
                None => return Ok(Some("leads out of the repository")),
            }
        };
        if file.starts_with(BOOK_PAGES) && !target.starts_with(BOOK_PAGES) {
            return Ok(Some("leads out of the book, where a reader has no such file"));
        }
        let on_disk = self.root.join(&target);
        if !on_disk.exists() {
            return Ok(Some("no such file"));
        }
        let has_anchors = target.extension().is_some_and(|own| own == "md" || own == "html");
        if anchor.is_empty() || !has_anchors || self.page(&target)?.anchors.contains(anchor) {
            return Ok(None);
        }
        Ok(Some("no such heading"))
    }
}

/// Another site, or a letter to somebody.
fn is_elsewhere(path: &str) -> bool {
    let scheme = path.split_once(':').map(|(scheme, _)| scheme);
    path.starts_with("//")
        || scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphabetic()))
}

/// Without `.` and `..`; none if it climbs out.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir if normal.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn site(files: &[(&str, &str)]) -> TempDir {
        let folder = TempDir::new().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn sound_links_pass() {
        let folder = site(&[
            ("README.md", "# Hone\n[a](docs/a.md#two-words) [h](#hone) [w](https://x.y/z#q)\n"),
            ("docs/a.md", "## Two words\n[back](../README.md) [f](./) ![p](p.png) <a@b.example>\n"),
            ("docs/p.png", ""),
            ("docs/book/src/one.md", "[two](deep/two.md#it)\n"),
            ("docs/book/src/deep/two.md", "# It\n[one](../one.md)\n"),
        ]);
        assert_eq!(of_documents(folder.path()).unwrap(), [""; 0]);
    }

    #[test]
    fn a_broken_link_is_named_with_its_line_and_reason() {
        let folder = site(&[
            ("README.md", "\n[a](docs/gone.md)\n\n[b](docs/a.md#gone) [c](../x) [d][e]\n"),
            ("docs/a.md", "# A\n"),
            ("docs/book/src/one.md", "[out](../../a.md)\n"),
        ]);
        let mut problems = of_documents(folder.path()).unwrap();
        problems.sort();
        assert_eq!(
            problems,
            [
                "README.md:2: docs/gone.md: no such file",
                "README.md:4: ../x: leads out of the repository",
                "README.md:4: [e]: no such file",
                "README.md:4: docs/a.md#gone: no such heading",
                "docs/book/src/one.md:1: ../../a.md: leads out of the book, where a reader has \
                 no such file",
            ]
        );
    }

    #[test]
    fn the_first_pages_are_held_to_their_lengths() {
        let long = format!("{}\n", "x".repeat(LINE_CHARS_MAX + 1));
        let folder = site(&[
            ("README.md", &"line\n".repeat(README_LINES_MAX + 1)),
            ("ARCHITECTURE.md", &long),
            ("docs/a.md", &long),
        ]);
        assert_eq!(
            of_documents(folder.path()).unwrap(),
            [
                "README.md: 101 lines; at most 100 are read",
                "ARCHITECTURE.md:1: longer than 100 characters"
            ]
        );
    }

    #[test]
    fn the_built_book_is_checked_too() {
        let folder = site(&[
            ("index.html", "<h1 id=\"top\">\n<a href=\"deep/a.html#x\">a</a> <a href=\"b.html\">"),
            ("deep/a.html", "<link href=\"../css/x.css?v=1\">\n<a href=\"../index.html#top\">"),
            ("css/x.css", ""),
            ("404.html", "<a href=\"/nowhere\">"),
        ]);
        let mut problems = of_html(folder.path()).unwrap();
        problems.sort();
        assert_eq!(
            problems,
            ["index.html:2: b.html: no such file", "index.html:2: deep/a.html#x: no such heading"]
        );
        assert!(of_html(&folder.path().join("css")).is_err(), "an empty book is none");
    }
}
