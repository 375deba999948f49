//! What the tables of ARCHITECTURE.md forbid, found in the code.

use super::circles;
use super::crates::Package;
use super::modules::{Import, Module, Target, Tree};
use super::table::{CrateRule, Exception, Floor, PAGE, Rules};
use std::collections::HashSet;
use std::path::Path;

/// What is wrong, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub file: String,
    pub line: usize,
    pub what: String,
    pub advice: String,
}

impl Problem {
    pub fn new(file: &Path, line: usize, what: String, advice: impl Into<String>) -> Problem {
        Problem { file: file.display().to_string(), line, what, advice: advice.into() }
    }

    fn in_table(line: usize, what: String, advice: impl Into<String>) -> Problem {
        Problem::new(Path::new(PAGE), line, what, advice)
    }
}

/// A library or a program of a package, as it was read.
pub struct Crate<'a> {
    pub package: &'a Package,
    pub tree: Tree,
    /// It is the one whose modules stand on floors.
    pub has_floors: bool,
}

/// Holds the code against the rules.
pub fn check(rules: &Rules, packages: &[Package], crates: &[Crate]) -> Vec<Problem> {
    let mut checker = Checker { rules, needed: HashSet::new(), problems: vec![] };
    if !crates.iter().any(|one| one.has_floors) {
        let what = format!("the workspace has no package `{}`", rules.binary);
        let line = rules.floors[0].line;
        checker.problems.push(Problem::in_table(line, what, "name the package of the floors"));
    }
    for one in crates {
        if one.has_floors {
            checker.folders(one);
            checker.floors(one, packages);
        }
        checker.bans(one);
        checker.circles(one);
        checker.systems(one);
    }
    checker.packages(packages);
    checker.stale_exceptions();
    checker.problems.sort();
    // Two imports of one line are one problem.
    checker.problems.dedup();
    checker.problems
}

struct Checker<'a> {
    rules: &'a Rules,
    /// The lines of the exceptions without which something would be wrong.
    needed: HashSet<usize>,
    problems: Vec<Problem>,
}

fn top(module: &Module) -> Option<&str> {
    module.path.first().map(String::as_str)
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

/// `a::b` lies in `a`, and in itself.
fn lies_in(path: &[String], module: &str) -> bool {
    let mut names = path.iter();
    module.split("::").all(|name| names.next().is_some_and(|own| own == name))
}

/// How code names a package.
fn ident(package: &str) -> String {
    package.replace('-', "_")
}

impl Checker<'_> {
    fn floor(&self, folder: &str) -> Option<&Floor> {
        self.rules.floors.iter().find(|floor| floor.folders.iter().any(|name| name == folder))
    }

    /// Only modules named `platform` ask which operating system this is.
    fn systems(&mut self, one: &Crate) {
        let modules = one.tree.modules.iter().filter(|module| {
            !one.tree.is_for_one_system && module.path.iter().all(|name| name != "platform")
        });
        for module in modules {
            for system in &module.systems {
                let what = format!("`{}` depends on the operating system", system.what);
                let advice = "let a module named `platform` do it, under a name that all have";
                self.problems.push(Problem::new(&module.file, system.line, what, advice));
            }
        }
    }

    /// Each top-level module has a floor, and each floor's modules exist.
    fn folders(&mut self, one: &Crate) {
        let tops: HashSet<&str> = one.tree.modules.iter().filter_map(top).collect();
        for module in one.tree.modules.iter().filter(|module| module.path.len() == 1) {
            let name = &module.path[0];
            if self.floor(name).is_none() {
                self.problems.push(Problem::new(
                    &module.file,
                    1,
                    format!("`{name}` has no floor"),
                    format!("move it into a folder that has one, or add it to {PAGE}"),
                ));
            }
        }
        for floor in &self.rules.floors {
            for name in floor.folders.iter().filter(|name| !tops.contains(name.as_str())) {
                let what = format!("`{}` has no module `{name}`", one.package.name);
                let advice = "remove the name from the table, or correct it";
                self.problems.push(Problem::in_table(floor.line, what, advice));
            }
        }
    }

    /// Imports go down, and other crates are imported by who may.
    fn floors(&mut self, one: &Crate, packages: &[Package]) {
        for import in &one.tree.imports {
            let Some(folder) = top(&one.tree.modules[import.from]) else { continue };
            // Without a floor there is another message.
            let Some(floor) = self.floor(folder) else { continue };
            let problem = match &import.to {
                Target::Module(to) => self.upward(folder, floor, &one.tree.modules[*to]),
                Target::Crate(name) => self.foreign(folder, floor, name, packages),
            };
            if let Some((what, advice)) = problem {
                self.report(one, import, what, advice);
            }
        }
    }

    fn upward(&self, folder: &str, floor: &Floor, to: &Module) -> Option<(String, String)> {
        let Some(other) = top(to) else {
            let what = format!("`{folder}` imports the root of its crate");
            return Some((what, "move what it needs into a module on a floor below".into()));
        };
        if other == folder {
            return None;
        }
        let stands = match self.floor(other)?.level.cmp(&floor.level) {
            std::cmp::Ordering::Less => "above",
            std::cmp::Ordering::Equal => "beside",
            std::cmp::Ordering::Greater => return None,
        };
        let below = self.rules.floors.iter().filter(|other| other.level > floor.level);
        let below: Vec<String> = below.flat_map(|floor| floor.folders.clone()).collect();
        Some((
            format!("`{folder}` imports `{}`, which stands {stands} it", to.path.join("::")),
            format!(
                "it may import what stands below: {}. Move what both need down, or have it \
                 passed in as a value or a trait",
                listed(&below)
            ),
        ))
    }

    fn foreign(
        &self,
        folder: &str,
        floor: &Floor,
        name: &str,
        packages: &[Package],
    ) -> Option<(String, String)> {
        let is = |other: &String| ident(other) == name;
        if packages.iter().any(|package| is(&package.name)) {
            let allowed = floor.crates.iter().any(is);
            let advice = format!("of the workspace it may import {}", listed(&floor.crates));
            return (!allowed).then(|| (format!("`{folder}` imports the crate `{name}`"), advice));
        }
        let owner = self.rules.floors.iter().find(|floor| floor.alone.iter().any(is))?;
        let own = owner.line == floor.line;
        let what = format!("`{folder}` names `{name}`");
        (!own).then(|| (what, format!("only {} may", listed(&owner.folders))))
    }

    fn bans(&mut self, one: &Crate) {
        for ban in &self.rules.bans {
            for import in &one.tree.imports {
                let from = &one.tree.modules[import.from].path;
                let Target::Module(to) = import.to else { continue };
                let to = &one.tree.modules[to].path;
                let banned = |names: &[String], path| names.iter().any(|name| lies_in(path, name));
                if banned(&ban.modules, from) && banned(&ban.never, to) {
                    let what = format!("`{}` imports `{}`", from.join("::"), to.join("::"));
                    let advice = format!(
                        "{} never imports {}: move what both need into a third module",
                        listed(&ban.modules),
                        listed(&ban.never)
                    );
                    self.report(one, import, what, advice);
                }
            }
        }
    }

    fn circles(&mut self, one: &Crate) {
        let line = |import| self.exception(one, import).map(|exception| exception.line);
        let excepted: Vec<Option<usize>> = one.tree.imports.iter().map(line).collect();
        for (index, line) in excepted.iter().enumerate() {
            if let Some(line) = line
                && circles::is_in_one(&one.tree, index)
            {
                self.needed.insert(*line);
            }
        }
        for circle in circles::find(&one.tree, |import| excepted[import].is_some()) {
            let steps: Vec<&Import> =
                circle.0.iter().map(|step| &one.tree.imports[step.import]).collect();
            let names: Vec<&str> = circle.0.iter().map(|step| step.module.as_str()).collect();
            let round = [names.as_slice(), &names[..1]].concat().join(" → ");
            let arrows = steps.iter().map(|import| {
                let file = one.tree.modules[import.from].file.display();
                format!("{file}:{}", import.line)
            });
            self.problems.push(Problem::new(
                &one.tree.modules[steps[0].from].file,
                steps[0].line,
                format!("the modules import each other in a circle: {round}"),
                format!("cut one of these: {}", arrows.collect::<Vec<_>>().join(", ")),
            ));
        }
    }

    fn exception(&self, one: &Crate, import: &Import) -> Option<&Exception> {
        let file = one.tree.modules[import.from].file.display().to_string();
        self.rules.exceptions.iter().find(|exception| {
            exception.file == file
                && match &import.to {
                    Target::Module(to) => lies_in(&one.tree.modules[*to].path, &exception.to),
                    Target::Crate(name) => ident(&exception.to) == *name,
                }
        })
    }

    fn report(&mut self, one: &Crate, import: &Import, what: String, advice: String) {
        if let Some(line) = self.exception(one, import).map(|exception| exception.line) {
            self.needed.insert(line);
            return;
        }
        let file = &one.tree.modules[import.from].file;
        self.problems.push(Problem::new(file, import.line, what, advice));
    }

    fn packages(&mut self, packages: &[Package]) {
        for package in packages {
            let rule = self.rules.crates.iter().find(|rule| rule.name == package.name);
            match rule {
                Some(rule) => self.package(package, rule),
                None => self.problems.push(Problem::new(
                    &package.manifest,
                    1,
                    format!("the crate `{}` has no rule", package.name),
                    format!("add a row to the table of crates in {PAGE}"),
                )),
            }
        }
        for rule in &self.rules.crates {
            if !packages.iter().any(|package| package.name == rule.name) {
                let what = format!("the workspace has no crate `{}`", rule.name);
                let advice = "remove the row, or correct the name";
                self.problems.push(Problem::in_table(rule.line, what, advice));
            }
        }
    }

    fn package(&mut self, package: &Package, rule: &CrateRule) {
        let name = &package.name;
        for dependency in &package.dependencies {
            let dependency_name = &dependency.name;
            // A crate's tests may depend on the crate itself with more of its features.
            let is_allowed = !dependency.is_of_workspace
                || dependency_name == name
                || rule.may_depend_on.contains(dependency_name);
            if is_allowed {
                continue;
            }
            let what = format!("`{name}` depends on `{dependency_name}`");
            let advice =
                format!("of the workspace it may depend on {}", listed(&rule.may_depend_on));
            self.problems.push(Problem::new(&package.manifest, dependency.line, what, advice));
        }
        for banned in &rule.never_links {
            let Some(way) = package.links.get(banned) else { continue };
            let line = package.dependencies.iter().find(|one| Some(&one.name) == way.get(1));
            self.problems.push(Problem::new(
                &package.manifest,
                line.map_or(1, |one| one.line),
                format!("`{name}` links `{banned}`: {}", way.join(" → ")),
                "cut one of the arrows, or move what needs it into a crate of its own",
            ));
        }
    }

    fn stale_exceptions(&mut self) {
        for exception in &self.rules.exceptions {
            if !self.needed.contains(&exception.line) {
                let what = format!(
                    "the exception `{}` -> `{}` is needed by nothing",
                    exception.file, exception.to
                );
                self.problems.push(Problem::in_table(exception.line, what, "delete the line"));
            }
        }
    }
}
