use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const ALL: [Editor; 7] = [
    Editor::Vscode,
    Editor::Neovim,
    Editor::Zed,
    Editor::Jetbrains,
    Editor::Emacs,
    Editor::LlamaVim,
    Editor::Minuet,
];

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/book/src").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The examples of a page.
fn examples(page: &str) -> Vec<String> {
    let parts = page.split("```").skip(1).step_by(2);
    parts.map(|part| part.split_once('\n').unwrap_or_default().1.to_owned()).collect()
}

#[test]
fn what_is_printed_is_what_the_book_says() {
    let examples = [examples(&page("editors.md")), examples(&page("http-api.md"))].concat();
    for editor in ALL.into_iter().filter(|editor| *editor != Editor::Jetbrains) {
        for form in [editor.form(), editor.form_in(Path::new("init.lua"))] {
            let recipe = editor.recipe(form);
            assert!(examples.iter().any(|own| own == recipe), "{editor}:\n{recipe}");
        }
    }
    let steps = include_str!("jetbrains/README.md").lines();
    let steps: Vec<_> =
        steps.filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    let editors = page("editors.md");
    assert!(steps.len() == 4 && steps.iter().all(|step| editors.contains(step)), "{steps:?}");
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn values() -> Values {
    Values { port: 4700, token: Some(TOKEN.into()), program: "/opt/hone/bin/hone".into() }
}

#[test]
fn the_address_the_token_and_the_program_are_filled_in() {
    for editor in ALL.into_iter().filter(|editor| *editor != Editor::Jetbrains) {
        let text = values().filled(editor.recipe(editor.form()), editor.form());
        for example in [recipe::BOOK_ADDRESS, recipe::BOOK_TOKEN, recipe::BOOK_PROGRAM] {
            assert!(!text.contains(example), "{text}");
        }
        assert_eq!(text.contains(TOKEN), editor.asks_by_http(), "{text}");
        assert_eq!(text.contains("http://127.0.0.1:4700/"), editor.asks_by_http(), "{text}");
    }
    let windows = Values { program: r"C:\Hone\hone.exe".into(), ..values() };
    let text = windows.filled(Editor::Vscode.recipe(Form::Json), Form::Json);
    assert_eq!(text, r#""hone.path": "C:\\Hone\\hone.exe""#);
}

#[test]
fn neovim_gets_the_plugin_of_the_checkout_that_the_program_lies_in() {
    let folder = tempfile::tempdir().unwrap();
    let checkout = folder.path().join("hone");
    let program = checkout.join("target/x86_64-unknown-linux-gnu/release/hone");
    assert_eq!(recipe::plugin_of_checkout(&program), None, "no plugin is there");
    fs::create_dir_all(checkout.join("neovim/plugin")).unwrap();
    fs::write(checkout.join("neovim/plugin/hone.lua"), "").unwrap();
    let place = checkout.join("neovim").display().to_string();
    let lines = format!("vim.opt.rtp:append('{place}')\ndofile('{place}/plugin/hone.lua')");
    assert_eq!(recipe::plugin_of_checkout(&program), Some(lines));
    let installed = folder.path().join("bin/hone");
    assert_eq!(recipe::plugin_of_checkout(&installed), None, "it lies elsewhere");
    let quoted = folder.path().join("o'hone");
    fs::rename(&checkout, &quoted).unwrap();
    assert_eq!(recipe::plugin_of_checkout(&quoted.join("target/release/hone")), None);
}

fn written(path: &Path, editor: Editor) -> Result<()> {
    let form = editor.form_in(path);
    let recipe = values().filled(editor.recipe(form), form);
    write_into(path, editor, form, &recipe, true)
}

#[test]
fn a_copy_of_what_was_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.json");
    let before = "{\n  // mine\n  \"vim_mode\": true\n}\n";
    fs::write(&path, before).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    written(&path, Editor::Zed).unwrap();
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.contains(TOKEN) && after.contains("// mine"), "{after}");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640, "as it was");
    let copy = folder.path().join("settings.json.before-hone");
    assert_eq!(fs::read_to_string(&copy).unwrap(), before);
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    written(&path, Editor::Zed).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is written twice");
    fs::write(&path, "{}").unwrap();
    written(&path, Editor::Zed).unwrap();
    assert_eq!(fs::read_to_string(&copy).unwrap(), before, "an older copy is not replaced");
    let second = folder.path().join("settings.json.before-hone-2");
    assert_eq!(fs::read_to_string(second).unwrap(), "{}");
}

#[test]
fn a_new_file_is_for_the_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("after/plugin/hone-minuet.lua");
    written(&path, Editor::Minuet).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&path).unwrap().starts_with("-- hone setup minuet: begin\n"));
}

#[test]
fn a_link_is_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real.json"), folder.path().join("settings.json"));
    fs::write(&real, "{}").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let error = written(&link, Editor::Zed).unwrap_err().to_string();
    assert!(error.contains("it is a link to") && error.contains("real.json"), "{error}");
    assert_eq!(fs::read_to_string(&real).unwrap(), "{}");
    let nowhere = folder.path().join("nowhere.json");
    std::os::unix::fs::symlink("gone", &nowhere).unwrap();
    assert!(written(&nowhere, Editor::Zed).is_err() && nowhere.symlink_metadata().is_ok());
    fs::write(folder.path().join("latin"), [0xe9]).unwrap();
    assert!(written(&folder.path().join("latin"), Editor::Zed).is_err(), "no text");
    assert!(written(folder.path(), Editor::Zed).is_err(), "a folder");
}

#[test]
fn settings_that_cannot_be_changed_safely_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, editor) in [
        ("settings.json", "{ \"a\": 1", Editor::Zed),
        ("init.lua", "vim.g.llama_config = { show_info = 0 }\n", Editor::LlamaVim),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        assert!(written(&path, editor).unwrap_err().is::<ToldAlready>());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_file_with_an_older_token_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_owned();
    let around = Surroundings {
        config: home.join(".config"),
        electron: home.join(".config"),
        nvim: "nvim".into(),
        home,
        ..Surroundings::default()
    };
    let zed = places::file(Editor::Zed, &around).unwrap();
    written(&zed, Editor::Zed).unwrap();
    let vimrc = around.home.join(".vimrc");
    fs::write(&vimrc, "set number\n").unwrap();
    assert_eq!(places::file(Editor::LlamaVim, &around), Some(vimrc.clone()));
    written(&vimrc, Editor::LlamaVim).unwrap();
    let stale = |values: &Values| -> Vec<Editor> {
        places::stale(&around, values).into_iter().map(|stale| stale.editor).collect()
    };
    assert_eq!(stale(&values()), []);
    let newer = Values { token: Some(TOKEN.replace('0', "f")), ..values() };
    assert_eq!(stale(&newer), [Editor::Zed, Editor::LlamaVim]);
    assert_eq!(stale(&Values { port: 4701, ..values() }), [Editor::Zed, Editor::LlamaVim]);
    // What the user has written is not Hone's to judge.
    let other = "{ \"edit_predictions\": { \"provider\": \"zed\" } }";
    fs::write(&zed, other).unwrap();
    assert_eq!(stale(&newer), [Editor::LlamaVim]);
}
