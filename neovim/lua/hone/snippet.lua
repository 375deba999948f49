--- Snippets, whose placeholders one goes through with a key. In a snippet that key belongs to it,
--- because an offer that is accepted would write over what the snippet has behind the cursor.

local M = {}

--- The beginning of what Neovim says of its own mapping, which knows `vim.snippet` alone.
local OF_NEOVIM = 'vim.snippet.jump if active'

--- Calls a function of a plugin that is loaded. The plugin may be of another version.
local function of_plugin(name, call)
  local plugin = package.loaded[name]
  local ok, result = pcall(call, plugin)
  return type(plugin) == 'table' and ok and result and result ~= 0
end

--- Calls a function of Vim script that exists.
local function of_script(name, ...)
  if vim.fn.exists('*' .. name) == 0 then
    return false
  end
  local ok, result = pcall(vim.fn[name], ...)
  return ok and result == 1
end

--- Returns true if a plugin has an active snippet with a placeholder ahead.
local function is_plugin_ahead()
  return of_plugin('luasnip', function(luasnip)
    -- A snippet that was left long ago can be returned to, which is not being in it.
    return (luasnip.locally_jumpable or luasnip.jumpable)(1)
  end) or of_plugin('mini.snippets', function(snippets)
    return snippets.session.get(false) ~= nil
  end) or of_plugin('snippy', function(snippy)
    return snippy.can_jump(1)
  end) or of_script('vsnip#jumpable', 1) or of_script('neosnippet#jumpable') or of_script(
    'UltiSnips#CanJumpForwards'
  ) or of_script('coc#jumpable')
end

--- Returns true if the cursor is in a snippet with a placeholder ahead. The way there leads through
--- normal mode, and is no verdict.
function M.is_in()
  return vim.snippet.active({ direction = 1 }) or is_plugin_ahead()
end

--- Returns true if a key is to go to the next placeholder of a snippet.
---@param mapping? table the mapping that the key has without Hone
function M.has(mapping)
  if not mapping then
    return false
  end
  local is_of_neovim = vim.startswith(mapping.desc or '', OF_NEOVIM)
  return vim.snippet.active({ direction = 1 }) or (not is_of_neovim and is_plugin_ahead())
end

return M
