//! `hone setup`: what an editor gets works when the editor asks.

use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use tests::http::{Http, free_port};
use tests::{Home, Model, QUICK};

/// A user with a home folder of their own, and what `hone` says to them.
struct User {
    home: Home,
    folder: TempDir,
}

impl User {
    fn new() -> User {
        let folder = tempfile::tempdir().expect("a folder");
        User { home: Home::with(Model::Qwen, QUICK), folder }
    }

    fn hone(&self, args: &[&str]) -> (bool, String, String) {
        let mut hone: Command = self.home.hone();
        hone.env("HOME", self.folder.path()).env("PATH", tests::hone().parent().expect("a folder"));
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "NVIM_APPNAME"] {
            hone.env_remove(name);
        }
        let output = hone.args(args).output().expect("hone runs");
        let [said, told] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.success(), said, told)
    }

    fn done(&self, args: &[&str]) -> (String, String) {
        let (is_done, said, told) = self.hone(args);
        assert!(is_done, "{args:?}: {said}{told}");
        (said, told)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn zed_is_set_up_and_asks_with_what_it_was_given() {
    let user = User::new();
    let (said, told) = user.done(&["setup", "zed"]);
    assert!(said.contains("/t/TOKEN/v1/completions"), "{said}");
    assert!(told.contains("`hone api on` switches it on"), "{told}");
    let (is_done, _, told) = user.hone(&["setup", "zed", "--write", "--yes"]);
    assert!(!is_done && told.contains("`hone api on` makes it"), "{told}");

    user.done(&["api", "on", "--port", &free_port().to_string()]);
    let http = Http::of(&user.home);
    let (said, told) = user.done(&["setup", "zed"]);
    assert!(said.contains(&http.token) && !told.contains("is off"), "{said}{told}");
    let settings = user.path(".config/zed/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, "{\n  // mine\n  \"vim_mode\": true,\n}\n").unwrap();
    let (is_done, _, told) = user.hone(&["setup", "zed", "--write"]);
    assert!(!is_done && told.contains("say --yes"), "nobody can be asked here: {told}");
    let (said, _) = user.done(&["setup", "zed", "--write", "--yes"]);
    assert!(said.contains("settings.json.before-hone"), "{said}");
    let written = read(&settings);
    assert!(written.contains("// mine"), "{written}");
    let plain = written.lines().filter(|line| !line.contains("// mine")).map(str::trim);
    let plain = plain.collect::<String>().replace(",}", "}");
    let plain: Value = serde_json::from_str(&plain).expect(&plain);
    assert_eq!(plain["vim_mode"], true);
    let zed = &plain["edit_predictions"]["open_ai_compatible_api"];
    // Zed sends no key, because it has none.
    let url = zed["api_url"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://127.0.0.1:{}", http.port)).expect(url);
    let prompt = "<|fim_prefix|>def add(a, b):\n    return a<|fim_suffix|>\n<|fim_middle|>";
    let body = json!({"model": zed["model"], "prompt": prompt, "max_tokens": 64}).to_string();
    let request = http.request("POST", path, &body);
    let request = request.replace(&format!("Authorization: Bearer {}\r\n", http.token), "");
    let (status, text) = http.exchange(&request);
    assert!(status == 200 && text.contains(" + b"), "{status}: {text}");

    // Another token: the doctor finds what has the old one, and the same command corrects it.
    let doctor = |user: &User| user.hone(&["doctor"]).1;
    let said = doctor(&user);
    assert!(said.contains(&format!("listens on http://127.0.0.1:{}", http.port)), "{said}");
    assert!(!said.contains("another address or token"), "{said}");
    user.done(&["api", "off"]);
    std::fs::remove_file(user.home.path().join("api-token")).unwrap();
    user.done(&["api", "on"]);
    let said = doctor(&user);
    assert!(
        said.contains("Zed: ~/.config/zed/settings.json has another address or token"),
        "{said}"
    );
    assert!(said.contains("`hone setup zed --write` corrects it"), "{said}");
    user.done(&["setup", "zed", "--write", "--yes"]);
    assert!(read(&settings).contains(&Http::of(&user.home).token));
    assert!(!doctor(&user).contains("another address or token"));
    let token = user.home.path().join("api-token");
    std::fs::set_permissions(&token, Permissions::from_mode(0o644)).unwrap();
    let said = doctor(&user);
    assert!(said.contains("others can read this token (mode 644)"), "{said}");
}

#[test]
fn every_editor_gets_its_file() {
    let user = User::new();
    user.done(&["api", "on", "--port", &free_port().to_string()]);
    let token = Http::of(&user.home).token;
    for (editor, file, has) in [
        ("vscode", ".config/Code/User/settings.json", "\"hone.path\": \"/"),
        ("neovim", ".config/nvim/plugin/hone.lua", "vim.opt.rtp:append('/"),
        ("emacs", ".emacs.d/init.el", "copilot-server-executable \"hone\""),
        ("minuet", ".config/nvim/after/plugin/hone-minuet.lua", token.as_str()),
    ] {
        let (said, _) = user.done(&["setup", editor, "--write", "--yes"]);
        let path = user.path(file);
        assert!(said.contains(file) && read(&path).contains(has), "{said}{}", read(&path));
        let (said, _) = user.done(&["setup", editor, "--write", "--yes"]);
        assert!(said.contains("has it already"), "{said}");
    }
    let error = user.hone(&["setup", "llama.vim", "--write", "--yes"]).2;
    assert!(error.contains("--write FILE names one"), "{error}");
    let vimrc = user.path(".vimrc");
    std::fs::write(&vimrc, "set number\n").unwrap();
    user.done(&["setup", "llama.vim", "--write", "--yes"]);
    assert!(
        read(&vimrc).contains("'endpoint_fim': 'http://127.0.0.1:")
            && read(&vimrc).contains(&token)
    );
    let lua = user.path("init.lua");
    user.done(&["setup", "llama.vim", "--write", lua.to_str().unwrap(), "--yes"]);
    assert!(read(&lua).contains("vim.g.llama_config = {"), "{}", read(&lua));
}

#[test]
fn the_folder_for_jetbrains_has_a_template_that_starts_this_program() {
    let user = User::new();
    let (said, _) = user.done(&["setup", "jetbrains"]);
    assert!(said.contains("Import from custom template"), "{said}");
    let folder = user.path("hone-template");
    let name = folder.to_str().unwrap();
    user.done(&["setup", "jetbrains", name]);
    user.done(&["setup", "jetbrains", name]);
    let template: Value = serde_json::from_str(&read(&folder.join("template.json"))).unwrap();
    let command = template["programArgs"]["default"].as_str().unwrap();
    let (program, args) = command.split_once(' ').expect(command);
    assert!(args == "lsp" && Path::new(program).is_file(), "{command}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    std::fs::write(folder.join("template.json"), "{}").unwrap();
    let (is_done, _, told) = user.hone(&["setup", "jetbrains", name]);
    assert!(!is_done && told.contains("say --yes"), "{told}");
    user.done(&["setup", "jetbrains", name, "--yes"]);
    assert_eq!(read(&folder.join("template.json.before-hone")), "{}");
}
