--- How a text was changed last, as the server is told.

local api = vim.api

local M = {}

--- From how many characters on an insertion is no typing.
local PASTED_CHARS_MIN = 16

---@class hone.Splice
---@field row integer where it begins
---@field col integer
---@field gone integer bytes that went
---@field rows integer rows that came
---@field cols integer columns that came in the last one of them

--- The last splice of each buffer that is watched, or false where there was none.
---@type table<integer, hone.Splice|false>
local splices = {}

--- The text of each buffer after an offer or a next edit was accepted, by its changedtick.
---@type table<integer, integer>
local accepted = {}

--- The place in the undo tree when it was looked at last.
---@type table<integer, { now: integer, last: integer, tick: integer, is_undone: boolean }>
local seen = {}

--- Watches a buffer as long as it is there.
function M.watch(buf)
  if splices[buf] ~= nil then
    return
  end
  splices[buf] = false
  api.nvim_buf_attach(buf, false, {
    on_bytes = function(_, _, _, row, col, _, _, _, gone, rows, cols)
      splices[buf] = { row = row, col = col, gone = gone, rows = rows, cols = cols }
    end,
    on_reload = function() end,
    on_detach = function()
      splices[buf], accepted[buf], seen[buf] = nil, nil, nil
    end,
  })
end

--- Is called when an offer, a part of one or a next edit has been put into the buffer.
function M.accepted(buf)
  accepted[buf] = api.nvim_buf_get_changedtick(buf)
end

--- Returns true if nothing has changed since.
function M.is_accepted(buf)
  return accepted[buf] == api.nvim_buf_get_changedtick(buf)
end

--- Returns true if the current buffer was changed last by going back or on in its undo tree.
local function is_undone(buf)
  local tick, before = api.nvim_buf_get_changedtick(buf), seen[buf]
  if before and before.tick == tick then
    return before.is_undone
  end
  local now, last = unpack(api.nvim_eval('[undotree().seq_cur, undotree().seq_last]'))
  local has_moved = before and before.last == last and before.now ~= now
  local undone = now < last or has_moved or false
  seen[buf] = { now = now, last = last, tick = tick, is_undone = undone }
  return undone
end

--- The text that came by the last splice.
local function came(buf, splice)
  local col = splice.rows == 0 and splice.col + splice.cols or splice.cols
  local stop = splice.row + splice.rows
  local ok, lines
  if splice.col == 0 and splice.cols == 0 and splice.rows > 0 then
    -- Whole lines may be the last ones.
    ok, lines = pcall(api.nvim_buf_get_lines, buf, splice.row, stop, true)
  else
    ok, lines = pcall(api.nvim_buf_get_text, buf, splice.row, splice.col, stop, col, {})
  end
  return ok and table.concat(lines, '\n') or nil
end

--- How the current buffer was changed last. nil if that cannot be told.
---@return 'typing'|'paste'|'undo'|'accept'|nil
function M.kind(buf)
  local splice = splices[buf]
  local undone = is_undone(buf)
  if M.is_accepted(buf) then
    return 'accept'
  elseif undone then
    return 'undo'
  end
  local text = splice and came(buf, splice)
  if not text then
    return nil
  end
  -- Enter inserts line breaks and blanks alone, and an entry of a completion menu has none.
  text = vim.trim(text)
  local is_long = vim.fn.strchars(text) >= PASTED_CHARS_MIN or text:find('\n', 1, true)
  if not is_long or not text:find('%s') then
    return 'typing'
  end
  -- What replaces a text may be of a tool that formats.
  return splice.gone == 0 and 'paste' or nil
end

return M
