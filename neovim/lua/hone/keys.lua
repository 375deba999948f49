--- Keys that act on a visible offer or next edit, or ask for one. Without a visible one they do
--- what they did before.

local macro = require('hone.macro')
local next_edit = require('hone.next_edit')
local notify = require('hone.notify')
local offers = require('hone.offer')
local options = require('hone.options')
local session = require('hone.session')
local snippet = require('hone.snippet')
local api = vim.api

local M = {}

--- An earlier mapping is moved to this key while Hone's mapping calls it.
local FALLBACK = '<Plug>(hone-fallback)'

--- The mappings of buffers that Hone's have replaced, by buffer and then by mode and key.
---@type table<integer, table<string, table>>
local replaced = {}

--- Modes in which a key acts, if it is not insert mode alone.
local INSERT = { 'i' }

---@class hone.Action
---@field does string
---@field run fun(): boolean
---@field modes? string[]
---@field inserts? boolean true if it puts a part of an offer into the buffer

---@type table<string, hone.Action> by name in options.keymaps
local actions = {
  accept = {
    does = 'accept the suggestion',
    inserts = true,
    run = function()
      return session.accept(offers.whole)
    end,
  },
  accept_word = {
    does = 'accept the next word of the suggestion',
    inserts = true,
    run = function()
      return session.accept(offers.word)
    end,
  },
  accept_line = {
    does = 'accept the next line of the suggestion',
    inserts = true,
    run = function()
      return session.accept(offers.line)
    end,
  },
  dismiss = { does = 'dismiss the suggestion', run = session.dismiss },
  next = {
    does = 'show another suggestion',
    run = function()
      return session.turn(1)
    end,
  },
  previous = {
    does = 'show the previous suggestion',
    run = function()
      return session.turn(-1)
    end,
  },
  trigger = { does = 'ask for a suggestion now', run = session.trigger },
  next_edit = {
    does = 'go to the next edit, or make it',
    run = next_edit.next,
    modes = { 'n', 'i' },
  },
  dismiss_edit = { does = 'reject the next edit', run = next_edit.dismiss, modes = { 'n' } },
}

local function raw(key)
  return api.nvim_replace_termcodes(key, true, true, true)
end

local function find(mappings, key)
  for _, mapping in ipairs(mappings) do
    if mapping.lhsraw == raw(key) or mapping.lhsrawalt == raw(key) then
      return mapping
    end
  end
end

--- Does what the key would have done: the buffer's mapping that Hone's replaced, else the current
--- global mapping, else the key itself.
local function fall_back(mode, key, shadowed)
  local mapping = shadowed or find(api.nvim_get_keymap(mode), key)
  if not mapping then
    api.nvim_feedkeys(raw(key), 'in', false)
    return
  end
  mapping = vim.deepcopy(mapping)
  mapping.lhs, mapping.lhsraw, mapping.lhsrawalt = FALLBACK, raw(FALLBACK), nil
  vim.fn.mapset(mode, false, mapping)
  api.nvim_feedkeys(raw(FALLBACK), 'im', false)
end

local function description(action)
  return 'Hone: ' .. action.does
end

--- Whether the menu of a plugin is open, by the description of that plugin's mappings. These menus
--- are windows of their own.
---@type table<string, fun(): boolean>
local menu_of = {
  ['blink.cmp'] = function()
    return require('blink.cmp').is_menu_visible()
  end,
  ['cmp.utils.keymap.set_map'] = function()
    return require('cmp').visible()
  end,
}

--- Lets a menu that is open have its key, if its mapping lies below Hone's, which is so where it
--- was made first.
---@return boolean whether the menu has used the key
local function menu_has_used(mode, key, below)
  local is_open = below and menu_of[below.desc]
  if not is_open or not is_open() then
    return false
  end
  if below.expr == 1 and below.callback then
    -- A mapping of blink.cmp that does nothing here answers with its key.
    local answer = below.callback()
    if answer == raw(key) then
      return false
    end
    api.nvim_feedkeys(answer or '', 'in', false)
  else
    fall_back(mode, key, below)
  end
  return true
end

--- Returns true if a key is to do what it does without Hone, whatever is on screen. An offer that
--- it leads away from has no verdict.
local function belongs_to_others(mode, key, action, before)
  -- While a completion menu is open, the keys belong to it.
  if vim.fn.pumvisible() == 1 or (mode == 'i' and macro.is_running()) then
    return true
  end
  if action.inserts and snippet.has(before or find(api.nvim_get_keymap(mode), key)) then
    session.abandon()
    return true
  end
  return false
end

local function attach(buf, mode, key, action)
  local before = find(api.nvim_buf_get_keymap(buf, mode), key)
  if before and before.desc == description(action) then
    return
  end
  replaced[buf] = replaced[buf] or {}
  replaced[buf][mode .. key] = before
  local run, otherwise = notify.guard(action.run), notify.guard(fall_back)
  local in_menu, is_others = notify.guard(menu_has_used), notify.guard(belongs_to_others)
  vim.keymap.set(mode, key, function()
    if is_others(mode, key, action, before) or not (in_menu(mode, key, before) or run()) then
      otherwise(mode, key, before)
    end
  end, { buffer = buf, desc = description(action) })
end

--- Calls `each` with every mode, key and action that the options have.
local function each_key(each)
  for name, action in pairs(actions) do
    local key = options.current.keymaps[name]
    for _, mode in ipairs(key and (action.modes or INSERT) or {}) do
      each(mode, key, action)
    end
  end
end

function M.attach(buf)
  each_key(function(mode, key, action)
    attach(buf, mode, key, action)
  end)
end

--- Takes Hone's mappings away, and puts back those that they replaced.
function M.detach(buf)
  local before = replaced[buf] or {}
  replaced[buf] = nil
  each_key(function(mode, key, action)
    local mapping = find(api.nvim_buf_get_keymap(buf, mode), key)
    if not mapping or mapping.desc ~= description(action) then
      return
    end
    vim.keymap.del(mode, key, { buffer = buf })
    local old = before[mode .. key]
    if old then
      api.nvim_buf_call(buf, function()
        vim.fn.mapset(mode, false, old)
      end)
    end
  end)
end

return M
