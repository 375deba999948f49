--- Keeps recorded macros true. A macro records keys, and a key of Hone means another thing when the
--- macro runs, because no offer is on screen then. So the register gets what the key did instead of
--- the key: the accepted text as if it had been typed, or as Neovim records a text that was pasted.

local api = vim.api

local M = {}

local PASTE_START, PASTE_END = vim.keycode('<t_PS>'), vim.keycode('<t_PE>')

--- Neovim puts this key, which does nothing, between others.
local IGNORE = vim.keycode('<Ignore>')

--- A byte that begins a special key, and how Neovim writes it within a character.
local SPECIAL, ESCAPED_SPECIAL = '\128', '\128\254X'

local namespace = api.nvim_create_namespace('hone.macro')

---@class hone.RecordedKey
---@field typed string
---@field instead? string

--- The keys since the recording began. nil while nothing is recorded.
---@type hone.RecordedKey[]?
local keys

--- What becomes of a register, once Neovim has written it.
---@type { register: string, recorded: string, instead: string }?
local due

--- Returns keys as a register has them.
local function as_recorded(typed)
  return (typed:gsub(ESCAPED_SPECIAL, SPECIAL):gsub(vim.pesc(IGNORE), ''))
end

local function rewrite()
  if not due then
    return
  end
  local register, recorded, instead = due.register, due.recorded, due.instead
  due = nil
  local now = vim.fn.getreg(register)
  -- A register that somebody else has changed is left alone.
  if vim.endswith(now, recorded) then
    vim.fn.setreg(register, now:sub(1, #now - #recorded) .. instead, 'v')
  end
end

local function on_key(_, typed)
  if due then
    rewrite()
    if not keys then
      vim.on_key(nil, namespace)
      return
    end
  end
  if keys and typed and typed ~= '' then
    table.insert(keys, { typed = typed })
  end
end

--- Is called when a recording begins.
function M.began()
  keys = {}
  vim.on_key(on_key, namespace)
end

--- Returns what is to be recorded instead of these keys, or nil if they are not what was recorded.
---@param all hone.RecordedKey[]
---@param recorded string what Neovim recorded; it lacks the key that ended the recording
---@return string?
local function substituted(all, recorded)
  local typed, instead = '', ''
  recorded = as_recorded(recorded)
  for _, key in ipairs(all) do
    if #typed >= #recorded then
      break
    end
    typed = typed .. as_recorded(key.typed)
    instead = instead .. (key.instead or as_recorded(key.typed))
  end
  return typed == recorded and instead or nil
end

--- Is called when a recording ends, before Neovim writes the register.
---@param event { regname: string, regcontents: string }
function M.ended(event)
  local instead = keys and substituted(keys, event.regcontents)
  keys = nil
  if not instead or instead == event.regcontents then
    vim.on_key(nil, namespace)
    return
  end
  -- The next key may run the macro already.
  due = { register = event.regname:lower(), recorded = event.regcontents, instead = instead }
  vim.schedule(function()
    rewrite()
    if not keys then
      vim.on_key(nil, namespace)
    end
  end)
end

--- Records what the latest key did instead of the key.
---@param did string keys; '' if a macro should do nothing in its place
local function record(did)
  local last = keys and keys[#keys]
  if last then
    last.instead = (last.instead or '') .. did
  end
end

--- Returns true if a mapping of insert mode begins with a character of the text.
local function is_mapped(text)
  local mappings = vim.list_extend(api.nvim_get_keymap('i'), api.nvim_buf_get_keymap(0, 'i'))
  return vim.iter(mappings):any(function(mapping)
    -- Keys that are no characters have names in brackets, and begin with other bytes.
    return text:find(mapping.lhsraw:sub(1, 1), 1, true) ~= nil
  end)
end

--- Returns true if a text goes into the buffer as it is when its characters are typed.
local function can_be_typed(text)
  local width = vim.bo.textwidth
  return not text:find('%c')
    and (width == 0 or vim.fn.virtcol('.') + vim.fn.strdisplaywidth(text) <= width)
    and vim.tbl_isempty(api.nvim_get_keymap('ia'))
    and vim.tbl_isempty(api.nvim_buf_get_keymap(0, 'ia'))
    and not is_mapped(text)
end

--- Is called when a key puts a text into the buffer.
---@param text string
---@param over integer characters behind the cursor that the text replaces
function M.inserted(text, over)
  if keys then
    local put = can_be_typed(text) and text or PASTE_START .. text .. PASTE_END
    record(vim.keycode('<Del>'):rep(over) .. put)
  end
end

--- Is called when a key has changed what is on screen, and no text.
function M.shown()
  record('')
end

--- Returns true while a macro runs. Keys then do what they do without Hone.
function M.is_running()
  return vim.fn.reg_executing() ~= ''
end

return M
