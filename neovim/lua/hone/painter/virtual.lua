--- Draws what remains of an offer as virtual text. The first line is inline at the cursor, around
--- marks that stay where they are. The other lines are virtual lines below it.

local notify = require('hone.notify')
local offers = require('hone.offer')
local api = vim.api

local M = {}

local HIGHLIGHT, HINT = 'HoneGhost', 'HoneGhostHint'

--- The colour of offers in terminals with 256 colours if the colour scheme gives NonText no
--- terminal colour, as Neovim's own does. Otherwise an offer would look like text.
local GREY_CTERM = 8

local function set_highlight()
  api.nvim_set_hl(0, HINT, { link = 'DiagnosticHint', default = true })
  local base = api.nvim_get_hl(0, { name = 'NonText', link = false })
  if base.ctermfg then
    api.nvim_set_hl(0, HIGHLIGHT, { link = 'NonText', default = true })
  else
    api.nvim_set_hl(0, HIGHLIGHT, { fg = base.fg, ctermfg = GREY_CTERM, default = true })
  end
end

function M.setup()
  set_highlight()
  api.nvim_create_autocmd('ColorScheme', {
    group = api.nvim_create_augroup('hone.highlight', { clear = true }),
    callback = notify.guard(set_highlight),
  })
end

--- Replaces tabs by blanks, because virtual text shows a tab as one cell.
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

local function put(buf, namespace, row, col, lines)
  api.nvim_buf_set_extmark(buf, namespace, row, col, {
    virt_text = lines[1],
    virt_text_pos = 'inline',
    virt_lines = vim.list_slice(lines, 2),
    -- With `combine`, text behind a bracket that 'matchparen' marks would look marked too.
    hl_mode = 'replace',
  })
end

--- Scrolls so that the rows below the cursor's line are on screen, if the window has the room. The
--- cursor stays where it is in the text.
---@param rows integer
---@return integer how many of them have no room
local function make_room(rows)
  local function missing()
    return math.max(0, rows - (api.nvim_win_get_height(0) - vim.fn.winline()))
  end
  local above = vim.fn.winline() - 1 - vim.fn.getwinvar(0, '&scrolloff')
  local by = math.min(missing(), above)
  if by > 0 then
    local view = vim.fn.winsaveview()
    view.topline = math.min(view.topline + by, view.lnum)
    vim.fn.winrestview(view)
  end
  return missing()
end

--- Draws the offer at the cursor, which is in the offer's buffer. Nobody accepts a line unseen:
--- where the window has no room for all lines, the first one says how many there are below it.
---@param offer hone.Offer
---@param namespace integer
function M.draw(offer, namespace)
  M.clear(offer.buf, namespace)
  local row, col = unpack(api.nvim_win_get_cursor(0))
  local tabstop = vim.bo[offer.buf].tabstop
  local column = vim.fn.virtcol('.') - 1
  local pieces = offers.pieces(offers.rest(offer), offer.replaces)
  for at = 1, #pieces - 1 do
    if pieces[at] ~= '' then
      local text = expand_tabs(pieces[at], column, tabstop)
      put(offer.buf, namespace, row - 1, col + at - 1, { { { text, HIGHLIGHT } } })
    end
    column = column + vim.fn.strdisplaywidth(pieces[at]) + 1
  end
  local lines = {}
  for line in vim.gsplit(pieces[#pieces], '\n', { plain = true }) do
    lines[#lines + 1] = { { expand_tabs(line, column, tabstop), HIGHLIGHT } }
    column = 0
  end
  local unseen = #lines > 1 and make_room(#lines - 1) or 0
  if unseen > 0 then
    local unit = unseen == 1 and 'line' or 'lines'
    table.insert(lines[1], { (' … +%d %s'):format(unseen, unit), HINT })
  end
  put(offer.buf, namespace, row - 1, col + #pieces - 1, lines)
  if offer.choice then
    api.nvim_buf_set_extmark(offer.buf, namespace, row - 1, 0, {
      virt_text = { { offer.choice, HINT } },
      virt_text_pos = 'eol',
    })
  end
end

function M.clear(buf, namespace)
  if api.nvim_buf_is_valid(buf) then
    api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  end
end

return M
