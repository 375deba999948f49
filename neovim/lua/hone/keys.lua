--- Insert-mode keys that act on a visible offer or ask for one. Without a visible offer they do
--- what they did before.

local notify = require('hone.notify')
local offers = require('hone.offer')
local options = require('hone.options')
local session = require('hone.session')
local api = vim.api

local M = {}

--- An earlier mapping is moved to this key while Hone's mapping calls it.
local FALLBACK = '<Plug>(hone-fallback)'

---@type table<string, { does: string, run: fun(): boolean }> by name in options.keymaps
local actions = {
  accept = {
    does = 'accept the suggestion',
    run = function()
      return session.accept(offers.whole)
    end,
  },
  accept_word = {
    does = 'accept the next word of the suggestion',
    run = function()
      return session.accept(offers.word)
    end,
  },
  accept_line = {
    does = 'accept the next line of the suggestion',
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
local function fall_back(key, shadowed)
  local mapping = shadowed or find(api.nvim_get_keymap('i'), key)
  if not mapping then
    api.nvim_feedkeys(raw(key), 'in', false)
    return
  end
  mapping = vim.deepcopy(mapping)
  mapping.lhs, mapping.lhsraw, mapping.lhsrawalt = FALLBACK, raw(FALLBACK), nil
  vim.fn.mapset('i', false, mapping)
  api.nvim_feedkeys(raw(FALLBACK), 'im', false)
end

local function description(action)
  return 'Hone: ' .. action.does
end

function M.attach(buf)
  for name, action in pairs(actions) do
    local key = options.current.keymaps[name]
    local before = key and find(api.nvim_buf_get_keymap(buf, 'i'), key)
    if key and not (before and before.desc == description(action)) then
      local run, otherwise = notify.guard(action.run), notify.guard(fall_back)
      vim.keymap.set('i', key, function()
        -- While the completion menu is open, the keys belong to it.
        if vim.fn.pumvisible() == 1 or not run() then
          otherwise(key, before)
        end
      end, { buffer = buf, desc = description(action) })
    end
  end
end

function M.detach(buf)
  for name, action in pairs(actions) do
    local key = options.current.keymaps[name]
    local mapping = key and find(api.nvim_buf_get_keymap(buf, 'i'), key)
    if mapping and mapping.desc == description(action) then
      vim.keymap.del('i', key, { buffer = buf })
    end
  end
end

return M
