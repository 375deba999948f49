--- Chooses the painter. If Neovim has inline completion, offers are part of it.

if vim.lsp.inline_completion then
  return require('hone.painter.builtin')
end
return require('hone.painter.ghost')
