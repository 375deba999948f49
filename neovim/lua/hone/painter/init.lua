--- Who draws: the built-in inline completion takes part where Neovim has one.

if vim.lsp.inline_completion then
  return require('hone.painter.builtin')
end
return require('hone.painter.ghost')
