--- The options of `setup()`: their defaults, and a check that names what is wrong.

local M = {}

--- After a longer pause, an answer would not feel like one to what was typed.
local DEBOUNCE_MAX_MS = 2000

---@class hone.Options
M.defaults = {
  --- The `hone` program: its path, or a whole command line as a list.
  ---@type string|string[]
  cmd = 'hone',
  --- Whether suggestions are on at the start.
  enabled = true,
  --- Pause in typing after which a suggestion is requested.
  debounce_ms = 75,
  --- File types without suggestions.
  ---@type string[]
  exclude_filetypes = { 'gitrebase', 'help' },
  --- Keys of insert mode; `next_edit` is one of normal mode too, and `dismiss_edit` of normal mode
  --- alone. `false` maps no key.
  ---@type table<string, string|false>
  keymaps = {
    accept = '<Tab>',
    accept_word = '<C-Right>',
    accept_line = '<C-End>',
    dismiss = '<C-]>',
    next = '<M-]>',
    previous = '<M-[>',
    trigger = '<M-Bslash>',
    next_edit = '<M-n>',
    dismiss_edit = '<Esc>',
  },
}

local function is_list_of_strings(value)
  return vim.islist(value)
    and vim.iter(value):all(function(entry)
      return type(entry) == 'string'
    end)
end

--- What each value must be, in words and as a test.
local is = {
  cmd = {
    'a path, or a list such as { "hone", "lsp" }',
    function(v)
      return type(v) == 'string' or (type(v) == 'table' and #v > 0 and is_list_of_strings(v))
    end,
  },
  enabled = {
    'true or false',
    function(v)
      return type(v) == 'boolean'
    end,
  },
  debounce_ms = {
    ('a number from 0 to %d'):format(DEBOUNCE_MAX_MS),
    function(v)
      return type(v) == 'number' and v >= 0 and v <= DEBOUNCE_MAX_MS
    end,
  },
  exclude_filetypes = {
    'a list of file types',
    function(v)
      return type(v) == 'table' and is_list_of_strings(v)
    end,
  },
  keymaps = {
    'a table',
    function(v)
      return type(v) == 'table'
    end,
  },
}

local function unknown(name, known)
  local names = vim.tbl_keys(known)
  table.sort(names)
  return ('unknown option %s; there are %s'):format(name, table.concat(names, ', '))
end

--- The first mistake in the user's options, or nil.
---@return string?
local function fault(given)
  if type(given) ~= 'table' then
    return 'setup takes a table of options'
  end
  for name, value in pairs(given) do
    if M.defaults[name] == nil then
      return unknown(tostring(name), M.defaults)
    end
    local words, test = unpack(is[name])
    if not test(value) then
      return ('option %s must be %s'):format(name, words)
    end
  end
  for name, key in pairs(given.keymaps or {}) do
    if M.defaults.keymaps[name] == nil then
      return unknown('keymaps.' .. tostring(name), M.defaults.keymaps)
    end
    if key ~= false and type(key) ~= 'string' then
      return ('option keymaps.%s must be a key such as <Tab>, or false'):format(name)
    end
  end
end

---@type hone.Options
M.current = vim.deepcopy(M.defaults)

--- Merges the user's options with the defaults.
---@return string? error what is wrong; in this case nothing was changed
function M.set(given)
  local wrong = fault(given)
  if wrong then
    return wrong
  end
  local merged = vim.tbl_deep_extend('force', M.defaults, given)
  -- A list replaces the default list and is not merged with it.
  merged.exclude_filetypes = given.exclude_filetypes or M.defaults.exclude_filetypes
  M.current = merged
end

return M
