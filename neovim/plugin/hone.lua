if vim.g.loaded_hone then
  return
end
vim.g.loaded_hone = true

-- `setup()` is optional, and a plugin manager may call it after this file: the
-- start waits until it had its chance.
if vim.v.vim_did_enter == 1 then
  vim.schedule(function()
    require('hone').start()
  end)
else
  vim.api.nvim_create_autocmd('VimEnter', {
    once = true,
    callback = function()
      require('hone').start()
    end,
  })
end
