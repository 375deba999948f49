vim.pack.add({ 'https://github.com/hone-dev/hone.nvim' })
