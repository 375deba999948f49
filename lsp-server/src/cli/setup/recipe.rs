//! What each editor needs. The texts in `recipes` are those of the book, with its examples of an
//! address, a token and a path, which are replaced by the user's own.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

/// What stands in a recipe for the user's own.
pub const BOOK_ADDRESS: &str = "http://127.0.0.1:4663";
pub const BOOK_TOKEN: &str = "TOKEN";
pub const BOOK_PROGRAM: &str = "/path/to/hone";

#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editor {
    /// VS Code, with Hone's extension
    Vscode,
    /// Neovim, with Hone's plugin
    Neovim,
    /// Zed, by the HTTP API
    Zed,
    /// JetBrains' editors, with the plugin LSP4IJ
    Jetbrains,
    /// Emacs, with copilot.el
    Emacs,
    /// The plugin for Vim and Neovim, by the HTTP API
    #[value(name = "llama.vim")]
    LlamaVim,
    /// The plugin for Neovim, by the HTTP API
    Minuet,
}

/// The language of a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    Lisp,
    Lua,
    Vim,
}

/// The user's own.
pub struct Values {
    pub port: u16,
    pub token: Option<String>,
    pub program: PathBuf,
}

impl Display for Editor {
    /// Writes the name that the command line takes.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Editor::Vscode => "vscode",
            Editor::Neovim => "neovim",
            Editor::Zed => "zed",
            Editor::Jetbrains => "jetbrains",
            Editor::Emacs => "emacs",
            Editor::LlamaVim => "llama.vim",
            Editor::Minuet => "minuet",
        })
    }
}

impl Editor {
    pub fn name(self) -> &'static str {
        match self {
            Editor::Vscode => "VS Code",
            Editor::Neovim => "Neovim",
            Editor::Zed => "Zed",
            Editor::Jetbrains => "JetBrains",
            Editor::Emacs => "Emacs, copilot.el",
            Editor::LlamaVim => "llama.vim",
            Editor::Minuet => "minuet-ai.nvim",
        }
    }

    pub fn asks_by_http(self) -> bool {
        matches!(self, Editor::Zed | Editor::LlamaVim | Editor::Minuet)
    }

    pub fn starts_hone_by_path(self) -> bool {
        matches!(self, Editor::Neovim | Editor::Emacs)
    }

    /// The form of the recipe if no file is known.
    pub fn form(self) -> Form {
        match self {
            Editor::Vscode | Editor::Zed | Editor::Jetbrains => Form::Json,
            Editor::Neovim | Editor::Minuet => Form::Lua,
            Editor::Emacs => Form::Lisp,
            Editor::LlamaVim => Form::Vim,
        }
    }

    pub fn form_in(self, file: &Path) -> Form {
        let is_lua = file.extension().is_some_and(|ending| ending == "lua");
        if self == Editor::LlamaVim && is_lua { Form::Lua } else { self.form() }
    }

    pub fn recipe(self, form: Form) -> &'static str {
        match (self, form) {
            (Editor::Vscode, _) => include_str!("recipes/vscode.json"),
            (Editor::Neovim, _) => include_str!("recipes/neovim.lua"),
            (Editor::Zed, _) => include_str!("recipes/zed.json"),
            (Editor::Jetbrains, _) => include_str!("jetbrains/template.json"),
            (Editor::Emacs, _) => include_str!("recipes/emacs.el"),
            (Editor::LlamaVim, Form::Lua) => include_str!("recipes/llama.lua"),
            (Editor::LlamaVim, _) => include_str!("recipes/llama.vim"),
            (Editor::Minuet, _) => include_str!("recipes/minuet.lua"),
        }
    }

    /// Returns what a file has outside of the recipe if the user has set the same up by hand.
    pub fn own_setup(self) -> Option<&'static str> {
        match self {
            Editor::Emacs => Some("copilot-server-executable"),
            Editor::LlamaVim => Some("llama_config"),
            Editor::Minuet => Some("minuet\").setup"),
            _ => None,
        }
    }

    /// Returns true if the recipe must stand before all else of its file.
    pub fn comes_first(self) -> bool {
        self == Editor::LlamaVim
    }

    /// Returns what else there is to do.
    pub fn then(self) -> &'static str {
        match self {
            Editor::Vscode => {
                "Then install the extension `Hone`, if it is not there; the book's page `Install` \
                 says from where."
            }
            Editor::Neovim => {
                "It needs Neovim 0.12. Then `:Hone setup` chooses a model. The book's page \
                 `Editors` has the lines for lazy.nvim and for a clone of the repository."
            }
            Editor::Zed => {
                "It needs a model of Qwen2.5-Coder's family, as the default one is; `hone model \
                 list` shows them."
            }
            Editor::Jetbrains => "",
            Editor::Emacs => {
                "It needs copilot.el 0.9, whose `copilot-mode` switches it on. For next edits, \
                 `hone config set completion.next_edit on` and `copilot-nes-mode`."
            }
            Editor::LlamaVim => {
                "Then start the editor again. Versions of llama.vim before 2026 have the key \
                 `endpoint` instead of `endpoint_fim`."
            }
            Editor::Minuet => {
                "Then start Neovim again. If you call minuet's `setup` elsewhere, put these \
                 entries there, because the last call counts."
            }
        }
    }
}

/// What else there is to do after [`plugin_of_checkout`].
pub const THEN_OF_CHECKOUT: &str =
    "It is the plugin of this program's checkout. Then `:Hone setup` chooses a model.";

/// Returns what Neovim needs where a program lies in the target folder of a checkout: the plugin
/// next to that folder, which need not be published. A path that would need quotes is left out.
pub fn plugin_of_checkout(program: &Path) -> Option<String> {
    let target = program.ancestors().find(|folder| folder.ends_with("target"))?;
    let folder = target.with_file_name("neovim");
    if !folder.join("plugin/hone.lua").is_file() {
        return None;
    }
    let is_plain = |c: char| c.is_alphanumeric() || "/._- ".contains(c);
    let folder = folder.to_str().filter(|path| path.chars().all(is_plain))?;
    // Neovim loads nothing from a folder that a file of its folder `plugin` adds.
    Some(format!("vim.opt.rtp:append('{folder}')\ndofile('{folder}/plugin/hone.lua')"))
}

impl Form {
    /// Returns what begins a comment. `None` for JSON, which has no blocks.
    pub fn comment(self) -> Option<&'static str> {
        match self {
            Form::Json => None,
            Form::Lisp => Some(";;"),
            Form::Lua => Some("--"),
            Form::Vim => Some("\""),
        }
    }
}

impl Values {
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A recipe with the user's own in it. Without a token, the book's word stays.
    pub fn filled(&self, recipe: &str, form: Form) -> String {
        let program = self.program.display().to_string();
        let program = match form {
            Form::Json => program.replace('\\', "\\\\").replace('"', "\\\""),
            _ => program,
        };
        let token = self.token.as_deref().unwrap_or(BOOK_TOKEN);
        let recipe = recipe.trim_end().replace(BOOK_ADDRESS, &self.address());
        recipe.replace(BOOK_TOKEN, token).replace(BOOK_PROGRAM, &program)
    }
}
