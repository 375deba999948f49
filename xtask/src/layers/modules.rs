//! The modules of one library or program, and which of them imports which.

use super::paths::{self, Found, Path};
use super::systems::{self, SystemUse};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path as FilePath, PathBuf};

/// A library or a program with all its modules, those for tests aside.
pub struct Tree {
    pub modules: Vec<Module>,
    pub imports: Vec<Import>,
    /// The whole of it is compiled for one operating system only.
    pub is_for_one_system: bool,
}

/// One file.
pub struct Module {
    /// `["session", "tracker"]`; empty for the root.
    pub path: Vec<String>,
    /// Relative to the workspace.
    pub file: PathBuf,
    /// What in it depends on the operating system.
    pub systems: Vec<SystemUse>,
}

pub struct Import {
    /// An index into [`Tree::modules`].
    pub from: usize,
    pub to: Target,
    pub line: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// An index into [`Tree::modules`].
    Module(usize),
    /// Another crate, as code names it.
    Crate(String),
}

impl Tree {
    /// Reads the files below `root` (a `lib.rs` or `main.rs`). Of other crates, those in
    /// `externs` are imports.
    pub fn read(workspace: &FilePath, root: &FilePath, externs: &HashSet<String>) -> Result<Tree> {
        let mut reader =
            Reader { workspace, modules: vec![], found: vec![], names: BTreeMap::new() };
        let text = std::fs::read_to_string(workspace.join(root)).unwrap_or_default();
        let is_for_one_system = systems::is_for_one(&text);
        let folder = root.parent().context("a crate's root lies in a folder")?;
        reader.read(vec![], root, folder)?;
        let imports = reader.imports(externs);
        Ok(Tree { modules: reader.modules, imports, is_for_one_system })
    }
}

struct Reader<'a> {
    workspace: &'a FilePath,
    modules: Vec<Module>,
    /// What each module's file names.
    found: Vec<Found>,
    /// Every module, inline ones too, and the file that holds it.
    names: BTreeMap<Vec<String>, usize>,
}

impl Reader<'_> {
    /// `folder` is where the files of its child modules lie.
    fn read(&mut self, path: Vec<String>, file: &FilePath, folder: &FilePath) -> Result<()> {
        let text = std::fs::read_to_string(self.workspace.join(file))
            .with_context(|| file.display().to_string())?;
        let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        let found = paths::of(&parsed);
        let systems = systems::of(&found);
        self.found.push(found);
        let index = self.modules.len();
        self.modules.push(Module { path: path.clone(), file: file.to_owned(), systems });
        self.names.insert(path.clone(), index);
        self.read_children(&path, index, &parsed.items, folder)
    }

    fn read_children(
        &mut self,
        path: &[String],
        index: usize,
        items: &[syn::Item],
        folder: &FilePath,
    ) -> Result<()> {
        for item in items {
            let syn::Item::Mod(item) = item else { continue };
            if item.ident == "tests" || paths::is_for_tests(&item.attrs) {
                continue;
            }
            let name = item.ident.to_string();
            let (child, below) = ([path, std::slice::from_ref(&name)].concat(), folder.join(&name));
            match &item.content {
                Some((_, items)) => {
                    self.names.insert(child.clone(), index);
                    self.read_children(&child, index, items, &below)?;
                }
                None => {
                    let own = folder.join(format!("{name}.rs"));
                    let face = below.join("mod.rs");
                    let is_folder = self.workspace.join(&face).is_file();
                    self.read(child, if is_folder { &face } else { &own }, &below)?;
                }
            }
        }
        Ok(())
    }

    fn imports(&self, externs: &HashSet<String>) -> Vec<Import> {
        let mut imports = vec![];
        for (from, found) in self.found.iter().enumerate() {
            for path in &found.paths {
                let Some(to) = self.target(from, path, &found.bound, externs) else { continue };
                if to != Target::Module(from) {
                    imports.push(Import { from, to, line: path.line });
                }
            }
        }
        imports
    }

    /// What a path of the file `from` leads to; none for a name of its own or of std's.
    fn target(
        &self,
        from: usize,
        path: &Path,
        bound: &HashSet<String>,
        externs: &HashSet<String>,
    ) -> Option<Target> {
        let mut here = self.modules[from].path.clone();
        here.extend(path.inside.iter().cloned());
        let is_extern = |name: &str| externs.contains(name);
        let first = path.segments.first()?.as_str();
        if path.is_absolute {
            return is_extern(first).then(|| Target::Crate(first.to_owned()));
        }
        let ups = path.segments.iter().take_while(|name| *name == "super").count();
        let (base, rest) = match first {
            "crate" => (vec![], 1),
            "self" => {
                let ups = path.segments[1..].iter().take_while(|name| *name == "super").count();
                (here[..here.len().checked_sub(ups)?].to_vec(), 1 + ups)
            }
            "super" => (here[..here.len().checked_sub(ups)?].to_vec(), ups),
            name if self.names.contains_key(&[here.as_slice(), &[name.to_owned()]].concat()) => {
                (here, 0)
            }
            name if bound.contains(name) => return None,
            name => return is_extern(name).then(|| Target::Crate(name.to_owned())),
        };
        Some(Target::Module(self.deepest(base, &path.segments[rest..])))
    }

    /// The file of the deepest module on the way; what follows is an item of it.
    fn deepest(&self, mut path: Vec<String>, names: &[String]) -> usize {
        let mut file = self.names[&path];
        for name in names {
            path.push(name.clone());
            match self.names.get(&path) {
                Some(index) => file = *index,
                None => break,
            }
        }
        file
    }
}

/// Lines on which a file pulls in another by `#[path]`.
pub fn path_attributes(text: &str) -> Result<Vec<usize>> {
    struct Finder(Vec<usize>);
    impl<'ast> syn::visit::Visit<'ast> for Finder {
        fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
            if attribute.path().is_ident("path") {
                self.0.push(attribute.pound_token.spans[0].start().line);
            }
        }
    }
    let mut finder = Finder(vec![]);
    syn::visit::Visit::visit_file(&mut finder, &syn::parse_file(text)?);
    Ok(finder.0)
}
