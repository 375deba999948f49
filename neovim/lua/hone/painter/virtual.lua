--- Virtual text for what remains of an offer: the first line inline at the
--- cursor, the others as virtual lines below it.

local offers = require('hone.offer')
local api = vim.api

local M = {}

--- Virtual text shows a tab as one cell; the text it becomes does not.
local function expand_tabs(text, column, width)
  local expanded = ''
  for piece, tab in text:gmatch('([^\t]*)(\t?)') do
    expanded = expanded .. piece
    if tab ~= '' then
      local at = column + vim.fn.strdisplaywidth(expanded)
      expanded = expanded .. (' '):rep(width - at % width)
    end
  end
  return expanded
end

--- Draws at the cursor, which is in the offer's buffer.
---@param offer hone.Offer
---@param namespace integer
---@param highlight string
function M.draw(offer, namespace, highlight)
  local row, col = unpack(api.nvim_win_get_cursor(0))
  local tabstop = vim.bo[offer.buf].tabstop
  local column = vim.fn.virtcol('.') - 1
  local lines = {}
  for line in vim.gsplit(offers.rest(offer), '\n', { plain = true }) do
    lines[#lines + 1] = { { expand_tabs(line, column, tabstop), highlight } }
    column = 0
  end
  api.nvim_buf_set_extmark(offer.buf, namespace, row - 1, col, {
    virt_text = lines[1],
    virt_text_pos = 'inline',
    virt_lines = vim.list_slice(lines, 2),
    hl_mode = 'combine',
  })
end

return M
