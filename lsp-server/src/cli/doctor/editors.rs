//! The editors on this machine that start Hone, and whether they start this program. It reads
//! their folders and settings, and starts none of them.

use super::Check;
use crate::cli::setup;
use crate::cli::surroundings::Surroundings;
use host::platform::files::is_executable;
use std::fs;
use std::path::{Path, PathBuf};

const NAME: &str = "editors";

/// The name under which the extension is installed, before its version.
const EXTENSION: &str = "hone.hone-";

/// Limits on what is read of an editor's configuration.
const FILE_BYTES: u64 = 256 * 1024;
const FILES_MAX: usize = 500;
const DEPTH_MAX: usize = 4;

/// An editor of VS Code's family.
struct VsCode {
    name: &'static str,
    /// Where its extensions lie, in the user's home.
    extensions: &'static str,
    /// Where its settings lie: in Electron's folder, or in the user's home with `~/`.
    settings: &'static str,
}

/// The folders in which editors keep their settings and extensions.
pub fn folders(around: &Surroundings) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        VSCODE.iter().flat_map(|kind| [kind.extensions(around), kind.settings(around)]).collect();
    folders.push(around.config.join(&around.nvim));
    folders.push(around.data.join(&around.nvim));
    folders.extend(NAMED_FILES.map(|(_, file)| around.home.join(file)));
    folders.extend(setup::files(around).map(|(_, file)| file));
    folders
}

impl VsCode {
    fn extensions(&self, around: &Surroundings) -> PathBuf {
        around.home.join(self.extensions)
    }

    fn settings(&self, around: &Surroundings) -> PathBuf {
        match self.settings.strip_prefix("~/") {
            Some(below) => around.home.join(below),
            None => around.electron.join(self.settings),
        }
    }
}

const fn vscode(name: &'static str, extensions: &'static str, settings: &'static str) -> VsCode {
    VsCode { name, extensions, settings }
}

static VSCODE: [VsCode; 7] = [
    vscode("VS Code", ".vscode/extensions", "Code/User"),
    vscode("VS Code Insiders", ".vscode-insiders/extensions", "Code - Insiders/User"),
    vscode("VS Code, remote", ".vscode-server/extensions", "~/.vscode-server/data/Machine"),
    vscode("VSCodium", ".vscode-oss/extensions", "VSCodium/User"),
    vscode("Cursor", ".cursor/extensions", "Cursor/User"),
    vscode("Windsurf", ".windsurf/extensions", "Windsurf/User"),
    vscode("code-server", ".local/share/code-server/extensions", "~/.local/share/code-server/User"),
];

/// Files of other editors that may name the program, in the user's home.
const NAMED_FILES: [(&str, &str); 8] = [
    ("Emacs", ".emacs"),
    ("Emacs", ".emacs.d/init.el"),
    ("Emacs", ".config/emacs/init.el"),
    ("Emacs", ".doom.d/config.el"),
    ("Emacs", ".config/doom/config.el"),
    ("Vim", ".vimrc"),
    ("Vim, coc.nvim", ".vim/coc-settings.json"),
    ("Vim", ".vim/vimrc"),
];

/// The program that an editor starts.
#[derive(Debug, PartialEq, Eq)]
enum Program {
    /// The first `hone` in PATH.
    OnPath,
    Named(PathBuf),
}

/// An editor that starts Hone.
#[derive(Debug, PartialEq, Eq)]
struct Integration {
    editor: String,
    program: Program,
    /// Where the program can be named.
    setting: &'static str,
}

/// Looks for editors. `sessions` are connected at the moment, whichever they are.
pub fn editors(around: &Surroundings, sessions: usize) -> Vec<Check> {
    let mut checks = vec![];
    for kind in &VSCODE {
        match vscode_integration(kind, around) {
            Some(integration) => checks.push(judged(&integration, around)),
            None if kind.extensions(around).is_dir() => checks.push(Check::note(
                NAME,
                format!("{}: here, without Hone's extension", kind.name),
                "`Extensions: Install from VSIX…` in it installs the extension",
            )),
            None => {}
        }
    }
    checks.extend(neovim(around).iter().map(|found| judged(found, around)));
    checks.extend(named(around).iter().map(|found| judged(found, around)));
    if checks.is_empty() && sessions > 0 {
        checks.push(Check::good(NAME, "one is connected, whose settings the doctor does not know"));
    } else if checks.is_empty() {
        let fix = "the page `Editors` of the book says how each editor starts `hone lsp`";
        checks.push(Check::note(NAME, "none that starts Hone was found", fix));
    }
    checks
}

/// Returns whether an editor starts this program.
fn judged(found: &Integration, around: &Surroundings) -> Check {
    let Integration { editor, program, setting } = found;
    let this = around.program.display();
    let here = format!("name {this} in {setting}");
    let path = match program {
        Program::Named(path) => path.clone(),
        Program::OnPath => match around.on_path("hone") {
            Some(path) => path,
            None => {
                let found = format!("{editor}: starts `hone`, which is not on PATH");
                return Check::wrong(NAME, found, format!("put it on PATH, or {here}"));
            }
        },
    };
    if !is_executable(&path) {
        let found = format!("{editor}: starts {}, which cannot be run", path.display());
        Check::wrong(NAME, found, here)
    } else if around.is_this(&path) {
        Check::good(NAME, format!("{editor}: starts this program"))
    } else {
        let found = format!("{editor}: starts another one, {}", path.display());
        Check::note(NAME, found, format!("if it should start this one, {here}"))
    }
}

fn vscode_integration(kind: &VsCode, around: &Surroundings) -> Option<Integration> {
    let folders = fs::read_dir(kind.extensions(around)).ok()?.flatten();
    let ours = folders.filter_map(|folder| {
        let name = folder.file_name().into_string().ok()?;
        name.starts_with(EXTENSION).then(|| folder.path())
    });
    // An update leaves the older one for a while.
    let extension = ours
        .max_by_key(|folder| fs::metadata(folder).and_then(|metadata| metadata.modified()).ok())?;
    let version = extension.file_name()?.to_string_lossy().replace(EXTENSION, "");
    let text = read(&kind.settings(around).join("settings.json")).unwrap_or_default();
    let configured = json_text(&text, "hone.path").filter(|path| !path.trim().is_empty());
    let bundled = extension.join("bin").join(node_platform());
    let bundled = bundled.join(format!("hone{}", std::env::consts::EXE_SUFFIX));
    let program = match configured {
        Some(path) => Program::Named(around.expand(path.trim())),
        None if is_executable(&bundled) => Program::Named(bundled),
        None => Program::OnPath,
    };
    let editor = format!("{} (extension {version})", kind.name);
    Some(Integration { editor, program, setting: "the setting `hone.path`" })
}

/// The name of this platform in Node.js.
fn node_platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{system}-{arch}")
}

/// The text of a key in JSON with comments. A key in a comment does not count.
fn json_text(text: &str, key: &str) -> Option<String> {
    let quoted = format!("\"{key}\"");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let value = lines.filter_map(|line| line.split_once(&quoted)).next()?.1;
    let value = value.trim_start().strip_prefix(':')?.trim_start();
    let mut texts = serde_json::Deserializer::from_str(value).into_iter::<String>();
    texts.next()?.ok()
}

/// Neovim, if its configuration or its plugins name Hone.
fn neovim(around: &Surroundings) -> Option<Integration> {
    let (config, data) = (around.config.join(&around.nvim), around.data.join(&around.nvim));
    let mut files = vec![];
    collect(&config, 0, &mut files);
    let texts: Vec<String> = files.iter().filter_map(|file| read(file)).collect();
    // A folder may be on the runtime path by its name alone, as that of a checkout.
    let named = texts.iter().flat_map(|text| quoted_paths(text));
    let plugin = plugin_folders(&data)
        .into_iter()
        .chain(named.map(|path| around.expand(path)))
        .find(|folder| ["lua/hone", "neovim/lua/hone"].iter().any(|lua| folder.join(lua).is_dir()));
    let mentions = texts.iter().any(|text| mentions_hone(text));
    if plugin.is_none() && !mentions {
        return None;
    }
    let named = texts.iter().find_map(|text| named_program(text));
    let program = named.map_or(Program::OnPath, |path| Program::Named(around.expand(&path)));
    let how = if plugin.is_some() { "plugin" } else { "its configuration" };
    let setting = "`require('hone').setup({ cmd = … })`";
    Some(Integration { editor: format!("Neovim ({how})"), program, setting })
}

/// The Lua and Vim files of a folder.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_code = path.extension().is_some_and(|end| end == "lua" || end == "vim");
        if files.len() == FILES_MAX {
            return;
        } else if path.is_dir() && depth < DEPTH_MAX {
            collect(&path, depth + 1, files);
        } else if is_code || path.file_name().is_some_and(|name| name == "coc-settings.json") {
            files.push(path);
        }
    }
}

/// The folders of plugins: lazy.nvim's, and those of Neovim's packages.
fn plugin_folders(data: &Path) -> Vec<PathBuf> {
    let below = |folder: PathBuf| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let packages = below(data.join("site/pack"));
    let packages =
        packages.iter().flat_map(|package| ["start", "opt"].map(|kind| package.join(kind)));
    packages.chain([data.join("lazy")]).flat_map(below).collect()
}

/// Other editors whose files name the program.
fn named(around: &Surroundings) -> Vec<Integration> {
    let mut found: Vec<Integration> = vec![];
    for (editor, file) in NAMED_FILES {
        let Some(text) = read(&around.home.join(file)).filter(|text| mentions_hone(text)) else {
            continue;
        };
        let program = match named_program(&text) {
            Some(path) => Program::Named(around.expand(&path)),
            None => Program::OnPath,
        };
        let editor = format!("{editor} (its configuration)");
        let found_before = found.iter().any(|other| other.editor == editor);
        if !found_before {
            found.push(Integration { editor, program, setting: "its configuration" });
        }
    }
    found
}

/// Returns whether a text names the program or the plugin between quotes, or requires the plugin.
fn mentions_hone(text: &str) -> bool {
    let quoted = ['"', '\''].iter().any(|quote| text.contains(&format!("{quote}hone{quote}")));
    quoted || text.contains("hone-dev/hone") || named_program(text).is_some()
}

/// The path between quotes whose last part is the program's name.
fn named_program(text: &str) -> Option<String> {
    // A folder of a checkout may have the same name.
    quoted_paths(text).find(|path| path.ends_with("/hone")).map(str::to_owned)
}

/// The full paths between quotes, and those below the home folder.
fn quoted_paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.lines().flat_map(|line| {
        ['"', '\''].into_iter().flat_map(move |quote| line.split(quote).skip(1).step_by(2))
    });
    quoted.filter(|path| path.starts_with('/') || path.starts_with("~/"))
}

fn read(path: &Path) -> Option<String> {
    let is_small = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= FILE_BYTES);
    is_small.then(|| fs::read_to_string(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Machine {
        _folder: tempfile::TempDir,
        around: Surroundings,
    }

    impl Machine {
        fn new() -> Machine {
            let folder = tempfile::tempdir().unwrap();
            let home = folder.path().canonicalize().unwrap();
            let around = Surroundings {
                program: home.join("bin/hone"),
                search_path: home.join("bin").into(),
                config: home.join(".config"),
                electron: home.join(".config"),
                data: home.join(".local/share"),
                nvim: "nvim".into(),
                home,
            };
            let machine = Machine { _folder: folder, around };
            machine.program("bin/hone");
            machine
        }

        fn write(&self, path: &str, text: &str) -> PathBuf {
            let path = self.around.home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        fn program(&self, path: &str) -> PathBuf {
            let path = self.write(path, "#!/bin/sh\n");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        }

        fn found(&self) -> Vec<(State, String)> {
            let checks = editors(&self.around, 0).into_iter();
            checks.map(|check| (check.state, check.found)).collect()
        }

        fn only(&self) -> (State, String) {
            let mut found = self.found();
            assert_eq!(found.len(), 1, "{found:?}");
            found.remove(0)
        }
    }

    #[test]
    fn a_machine_without_an_editor_is_told_where_to_look() {
        let machine = Machine::new();
        assert_eq!(machine.only().0, State::Note);
        // One that is connected was not found next to "1 editor session".
        let connected = editors(&machine.around, 1);
        assert_eq!((connected.len(), connected[0].state), (1, State::Good), "{connected:?}");
    }

    #[test]
    fn the_extension_starts_what_its_setting_names_else_its_own_else_that_of_path() {
        let machine = Machine::new();
        machine.write(".vscode/extensions/other.ext-1.0.0/package.json", "");
        let (state, found) = machine.only();
        assert_eq!((state, &*found), (State::Note, "VS Code: here, without Hone's extension"));
        machine.write(".vscode/extensions/hone.hone-0.1.0/package.json", "");
        let this = "VS Code (extension 0.1.0): starts this program";
        assert_eq!(machine.only(), (State::Good, this.into()));
        let bundled = format!(".vscode/extensions/hone.hone-0.1.0/bin/{}/hone", node_platform());
        let bundled = machine.program(&bundled);
        let (state, found) = machine.only();
        assert!(state == State::Note && found.ends_with(&*bundled.to_string_lossy()), "{found}");
        let settings = ".config/Code/User/settings.json";
        machine
            .write(settings, "{\n  // \"hone.path\": \"/x\",\n  \"hone.path\": \"~/bin/hone\",\n}");
        assert_eq!(machine.only(), (State::Good, this.into()));
        machine.write(settings, "{ \"hone.path\": \"/gone/hone\" }");
        let (state, found) = machine.only();
        assert!(state == State::Wrong && found.contains("/gone/hone, which cannot"), "{found}");
    }

    #[test]
    fn a_program_that_is_not_on_path_is_wrong() {
        let mut machine = Machine::new();
        machine.write(".cursor/extensions/hone.hone-0.1.0/package.json", "");
        machine.around.search_path = "/nowhere:relative".into();
        let (state, found) = machine.only();
        assert!(state == State::Wrong && found.starts_with("Cursor"), "{found}");
        assert!(found.contains("not on PATH"), "{found}");
    }

    #[test]
    fn neovim_is_found_by_its_plugin_or_its_configuration() {
        let machine = Machine::new();
        let init = ".config/nvim/init.lua";
        machine.write(init, "vim.opt.number = true -- honest\n");
        assert!(machine.only().1.starts_with("none that starts Hone"));
        machine.write(init, "vim.lsp.config('hone', { cmd = { 'hone', 'lsp' } })\n");
        let this = "Neovim (its configuration): starts this program";
        assert_eq!(machine.only(), (State::Good, this.into()));
        machine.write(".local/share/nvim/lazy/hone/neovim/lua/hone/init.lua", "");
        assert_eq!(machine.only().1, "Neovim (plugin): starts this program");
        let other = machine.program("old/hone");
        machine.write(
            ".config/nvim/lua/plugins/hone.lua",
            "require('hone').setup({ cmd = '~/old/hone' })",
        );
        let (state, found) = machine.only();
        assert!(state == State::Note && found.ends_with(&*other.to_string_lossy()), "{found}");
    }

    #[test]
    fn the_plugin_of_a_checkout_is_found_by_its_path() {
        let machine = Machine::new();
        let init = ".config/nvim/init.lua";
        machine.write(init, "-- isn't here\nvim.opt.rtp:append('~/src/hone/neovim')\n");
        assert!(machine.only().1.starts_with("none that starts Hone"), "nothing is there");
        machine.write("src/hone/neovim/lua/hone/init.lua", "");
        let this = "Neovim (plugin): starts this program";
        assert_eq!(machine.only(), (State::Good, this.into()));
        machine.write(init, "vim.opt.number = true\n");
        assert!(machine.only().1.starts_with("none that starts Hone"));
        let folder = machine.around.home.join("src/hone/neovim");
        let line = format!("vim.opt.rtp:append(\"{}\")\n", folder.display());
        machine.write(".config/nvim/plugin/hone.lua", &line);
        assert_eq!(machine.only().1, this);
    }

    #[test]
    fn emacs_and_vim_are_found_by_their_files() {
        let machine = Machine::new();
        machine.write(".emacs.d/init.el", "(lsp-stdio-connection '(\"hone\" \"lsp\"))");
        machine.write(".vim/coc-settings.json", "{ \"command\": \"/gone/hone\" }");
        let found = machine.found();
        assert_eq!(
            found[0],
            (State::Good, "Emacs (its configuration): starts this program".into())
        );
        assert!(found[1].0 == State::Wrong && found[1].1.starts_with("Vim, coc.nvim"), "{found:?}");
    }
}
