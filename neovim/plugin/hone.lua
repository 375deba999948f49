if vim.g.loaded_hone then
  return
end
vim.g.loaded_hone = true

local function start()
  require('hone').start()
end

-- `setup()` is optional, and a plugin manager may call it after this file. So the start waits until
-- Neovim has loaded everything.
if vim.v.vim_did_enter == 1 then
  vim.schedule(start)
else
  vim.api.nvim_create_autocmd('VimEnter', { once = true, callback = start })
end
