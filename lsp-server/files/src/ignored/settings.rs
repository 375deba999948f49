//! Git's settings about what is ignored, read from its files as git-config(1) says.

use super::include::{self, Budget};
use super::interpolate::interpolated;
use super::repository::Places;
use crate::limits::{
    CONDITIONS_MAX, INCLUDES_DEPTH_MAX, REMOTES_MAX, SETTINGS_BYTES_MAX, SETTINGS_FILES_MAX,
};
use crate::plain::{self, Links, Stamp, Unread};
use crate::platform;
use bstr::BString;
use gix_config::parse::{EventRef, Events};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where the settings of the user lie, as the environment says.
#[derive(Debug, Clone, Default)]
pub struct User {
    /// The files in which settings stand, the weakest first.
    pub files: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    /// What is ignored where no setting names a file.
    pub default_excludes: Option<PathBuf>,
    /// Settings of the environment, by their lower-case keys.
    pub given: Vec<(BString, BString)>,
}

/// What a repository's settings say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The file whose rules count in every folder (`core.excludesFile`).
    pub excludes: Option<PathBuf>,
    /// True if names that differ by their case alone are one (`core.ignoreCase`).
    pub ignores_case: bool,
    /// How many folders above the repository's the files begin that it is about (`core.worktree`).
    pub folders_above: usize,
    /// True if some settings cannot be read. Git then refuses to work.
    pub is_unreadable: bool,
    /// The files that were read or looked for, as they were.
    pub read: Vec<(PathBuf, Option<Stamp>)>,
}

/// The settings that were read so far. A later one of the same name counts more.
struct Reader<'a> {
    places: &'a Places,
    home: Option<&'a Path>,
    /// The addresses of remotes, once they are known: conditions of includes ask for them.
    remotes: Vec<BString>,
    asks_for_remotes: bool,
    /// The conditions that were met, and what is left to match them.
    conditions: usize,
    budget: Budget,
    found_remotes: Vec<BString>,
    excludes: Option<BString>,
    worktree: Option<BString>,
    ignores_case: bool,
    has_worktree_settings: bool,
    is_unreadable: bool,
    read: Vec<(PathBuf, Option<Stamp>)>,
}

impl User {
    /// Reads the environment, as git does.
    pub fn from_env() -> User {
        User::of(|name| std::env::var_os(name), platform::system_settings())
    }

    /// Reads an environment. `system` are the files that count for all users.
    pub fn of(get: impl Fn(&str) -> Option<OsString>, system: Vec<PathBuf>) -> User {
        let path = |name: &str| get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let home = path("HOME").or_else(std::env::home_dir);
        let xdg =
            path("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
        let xdg = xdg.map(|xdg| xdg.join("git"));
        let is_true = |value: OsString| is_true(value.as_encoded_bytes());
        let mut files = match path("GIT_CONFIG_SYSTEM") {
            _ if get("GIT_CONFIG_NOSYSTEM").is_some_and(is_true) => vec![],
            Some(named) => vec![named],
            None => system,
        };
        match path("GIT_CONFIG_GLOBAL") {
            Some(named) => files.push(named),
            None => {
                files.extend(xdg.as_ref().map(|xdg| xdg.join("config")));
                files.extend(home.as_ref().map(|home| home.join(".gitconfig")));
            }
        }
        let count = get("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse().ok());
        let given = (0..count.unwrap_or(0).min(SETTINGS_FILES_MAX)).filter_map(|number| {
            let bytes = |kind: &str| get(&format!("GIT_CONFIG_{kind}_{number}"));
            let key = bytes("KEY")?.as_encoded_bytes().to_ascii_lowercase();
            Some((key.into(), bytes("VALUE")?.as_encoded_bytes().into()))
        });
        let given = given.collect();
        User { files, default_excludes: xdg.map(|xdg| xdg.join("ignore")), home, given }
    }
}

impl Settings {
    /// Reads the settings of a repository, the user's among them.
    pub fn read(user: &User, places: &Places) -> Settings {
        let mut reader = Reader::new(user, places, vec![]).read_all(user);
        if reader.asks_for_remotes {
            reader = Reader::new(user, places, reader.found_remotes).read_all(user);
        }
        reader.settings(user, places)
    }

    /// Returns true if no file has changed since.
    pub fn are_current(&self) -> bool {
        self.read.iter().all(|(path, stamp)| plain::stamp(path, Links::Follow).ok() == *stamp)
    }
}

impl<'a> Reader<'a> {
    fn new(user: &'a User, places: &'a Places, remotes: Vec<BString>) -> Reader<'a> {
        Reader {
            places,
            home: user.home.as_deref(),
            remotes,
            asks_for_remotes: false,
            conditions: 0,
            budget: Budget::default(),
            found_remotes: vec![],
            excludes: None,
            worktree: None,
            ignores_case: false,
            has_worktree_settings: false,
            is_unreadable: false,
            read: vec![],
        }
    }

    fn read_all(mut self, user: &User) -> Self {
        let places = self.places;
        for file in &user.files {
            self.read_file(file, 0);
        }
        self.read_file(&places.shared.join("config"), 0);
        if self.has_worktree_settings {
            self.read_file(&places.own.join("config.worktree"), 0);
        }
        for (key, value) in &user.given {
            self.set(key, Some(value.clone()), None, 0);
        }
        self
    }

    fn read_file(&mut self, path: &Path, depth: usize) {
        if self.read.len() >= SETTINGS_FILES_MAX || depth > INCLUDES_DEPTH_MAX {
            self.is_unreadable = true;
            return;
        }
        let (content, stamp) = match plain::read(path, Links::Follow, SETTINGS_BYTES_MAX) {
            Ok((content, stamp)) => (content, Some(stamp)),
            Err(error) => {
                let stamp = plain::stamp(path, Links::Follow).ok();
                self.is_unreadable |= !matches!(error, Unread::Missing | Unread::NoFile);
                (vec![], stamp)
            }
        };
        self.read.push((path.to_owned(), stamp));
        let Ok(events) = Events::from_bytes(&content, None) else {
            self.is_unreadable = true;
            return;
        };
        self.take(&events, path, depth);
    }

    fn take(&mut self, events: &Events, path: &Path, depth: usize) {
        let (mut section, mut key) = (BString::default(), BString::default());
        let (mut written, mut has_value) = (BString::default(), false);
        for event in events.iter() {
            match event {
                EventRef::SectionHeader { name, subsection_name, .. } => {
                    section = name.to_ascii_lowercase().into();
                    if let Some(subsection) = subsection_name {
                        section.push(b'.');
                        section.extend_from_slice(subsection);
                    }
                }
                EventRef::SectionValueName(name) => {
                    key = [section.as_slice(), b".", &name.to_ascii_lowercase()].concat().into();
                    has_value = false;
                }
                EventRef::KeyValueSeparator => has_value = true,
                EventRef::ValueNotDone(part) => written.extend_from_slice(part),
                EventRef::Value(part) | EventRef::ValueDone(part) => {
                    written.extend_from_slice(part);
                    let value = gix_config::value::normalize(&written).into_owned();
                    written.clear();
                    // A name without a value is true.
                    self.set(&key, has_value.then_some(value), Some(path), depth);
                }
                _ => {}
            }
        }
    }

    /// Notes one setting. `file` is where it stands, if not in the environment.
    fn set(&mut self, key: &BString, value: Option<BString>, file: Option<&Path>, depth: usize) {
        match (key.as_slice(), value) {
            (b"core.excludesfile", Some(value)) => self.excludes = Some(value),
            // Git asks the repository's own files alone.
            (b"core.worktree", Some(value))
                if depth == 0 && file.is_some_and(|file| file.starts_with(&self.places.own)) =>
            {
                self.worktree = Some(value);
            }
            (b"core.ignorecase", value) => {
                self.ignores_case = value.is_none_or(|value| is_true(&value))
            }
            (b"extensions.worktreeconfig", value) => {
                self.has_worktree_settings = value.is_none_or(|value| is_true(&value));
            }
            (b"include.path", Some(value)) => self.include(value, file, depth),
            (key, Some(value)) if key.starts_with(b"includeif.") && key.ends_with(b".path") => {
                let condition = &key[b"includeif.".len()..key.len() - b".path".len()];
                if self.holds(condition, file) {
                    self.include(value, file, depth);
                }
            }
            (key, Some(value)) if key.starts_with(b"remote.") && key.ends_with(b".url") => {
                self.found_remotes.push(value);
            }
            // Git refuses to work with such a setting.
            (b"core.excludesfile", None) => self.is_unreadable = true,
            _ => {}
        }
    }

    fn holds(&mut self, condition: &[u8], file: Option<&Path>) -> bool {
        let place = include::Place { places: self.places, file, home: self.home };
        self.asks_for_remotes |= condition.starts_with(b"hasconfig:");
        if condition.starts_with(b"onbranch:") {
            self.note_head();
        }
        self.conditions += 1;
        let is_within = self.conditions <= CONDITIONS_MAX && self.remotes.len() <= REMOTES_MAX;
        let holds = is_within
            .then(|| include::holds(condition, &place, &self.remotes, &mut self.budget).ok());
        self.is_unreadable |= holds.flatten().is_none();
        holds.flatten().unwrap_or(false)
    }

    /// Notes how `HEAD` looks before it is read, because another branch has other settings.
    fn note_head(&mut self) {
        let head = self.places.own.join("HEAD");
        if !self.read.iter().any(|(path, _)| *path == head) {
            let stamp = plain::stamp(&head, Links::Follow).ok();
            self.read.push((head, stamp));
        }
    }

    fn include(&mut self, value: BString, file: Option<&Path>, depth: usize) {
        let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
        match interpolated(value, self.home).map(|path| folder.join(path)) {
            Some(path) if path.is_absolute() => self.read_file(&path, depth + 1),
            // Git refuses to work with such a setting.
            _ => self.is_unreadable = true,
        }
    }

    fn settings(self, user: &User, places: &Places) -> Settings {
        let mut is_unreadable = self.is_unreadable;
        let folders_above = self.worktree.and_then(|named| folders_above(&named, places));
        let folders_above = folders_above.unwrap_or(0);
        let root = places.root.ancestors().nth(folders_above).unwrap_or(&places.root);
        let excludes = match self.excludes {
            Some(named) if named.is_empty() => None,
            Some(named) => {
                let path = interpolated(named, self.home);
                is_unreadable |= path.is_none();
                // Git asks for the file in the worktree's root, where it works.
                path.map(|path| root.join(path))
            }
            None => user.default_excludes.clone(),
        };
        let Reader { ignores_case, read, .. } = self;
        Settings { excludes, ignores_case, folders_above, is_unreadable, read }
    }
}

/// Returns how many folders a worktree begins above the repository's, if that lies in it.
fn folders_above(worktree: &BString, places: &Places) -> Option<usize> {
    let worktree = places.own.join(platform::path_of(worktree)?);
    let worktree = Some(worktree).filter(|worktree| !platform::is_remote(worktree))?;
    let (worktree, root) = (worktree.canonicalize().ok()?, places.root.canonicalize().ok()?);
    Some(root.strip_prefix(&worktree).ok()?.components().count())
}

/// Returns true for a value that git takes for true. A value that is none counts as true, because
/// with more rules less is stored.
fn is_true(value: &[u8]) -> bool {
    let value = value.to_ascii_lowercase();
    !matches!(&*value, b"false" | b"no" | b"off" | b"" | b"0")
}
