--- Puts accepted text into the buffer as if it had been typed: `.`, a count and a visual block
--- repeat it, a macro has it, and one `u` takes it back.

local macro = require('hone.macro')
local undo = require('hone.undo')
local api = vim.api

local M = {}

--- Deletes characters as a key does, so that `.` deletes them too.
local DELETE = '<Del>'

--- The insertion that waits for its deletions.
---@type fun()?
local waiting

local function put(lines)
  local row, col = unpack(api.nvim_win_get_cursor(0))
  api.nvim_buf_set_text(0, row - 1, col, row - 1, col, lines)
  local last = lines[#lines]
  api.nvim_win_set_cursor(0, { row + #lines - 1, #lines == 1 and col + #last or #last })
end

--- Inserts a text at the cursor. Neovim remembers a paste for `.`, and nothing else that is
--- inserted by a function. `vim.paste` is the user's to change, so it is replaced meanwhile.
local function paste(text)
  local users = vim.paste
  vim.paste = function(lines)
    put(lines)
    return true
  end
  local ok, trouble = pcall(api.nvim_paste, text, false, -1)
  vim.paste = users
  if not ok then
    error(trouble, 0)
  end
end

--- Does what waits for the deletions.
function M.continue()
  local now = waiting
  waiting = nil
  if now then
    now()
  end
end

--- Inserts a text at the cursor.
---@param text string
---@param over integer characters behind the cursor that the text replaces
---@param done fun() is called when the text is in the buffer
function M.insert(text, over, done)
  macro.inserted(text, over)
  -- One `u` removes what was accepted and keeps what was typed.
  undo.start_step()
  if over == 0 then
    paste(text)
    done()
    return
  end
  waiting = function()
    paste(text)
    done()
  end
  local keys = DELETE:rep(over) .. "<Cmd>lua require('hone.insertion').continue()<CR>"
  api.nvim_feedkeys(vim.keycode(keys), 'in', false)
end

return M
