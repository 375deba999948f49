-- What `vim.lsp.enable('hone')` starts; override parts with `vim.lsp.config('hone', {…})`.
return require('hone.server').config()
