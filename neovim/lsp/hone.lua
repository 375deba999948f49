-- The configuration that `vim.lsp.enable('hone')` uses. Change parts of it with
-- `vim.lsp.config('hone', {…})`.
return require('hone.server').config()
