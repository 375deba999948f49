--- Draws a next edit: the old text and the new one where they are, and a hint with the distance if
--- that is not on screen.

local places = require('hone.edit_place')
local rest = require('hone.edit_rest')
local api = vim.api

local M = {}

local OLD, NEW, HINT = 'HoneEditOld', 'HoneEditNew', 'HoneEditHint'

local namespace = api.nvim_create_namespace('hone.next_edit')

local function set_highlights()
  api.nvim_set_hl(0, OLD, { link = 'DiffDelete', default = true })
  api.nvim_set_hl(0, NEW, { link = 'DiffAdd', default = true })
  api.nvim_set_hl(0, HINT, { link = 'DiagnosticHint', default = true })
end

function M.setup()
  set_highlights()
  api.nvim_create_autocmd('ColorScheme', {
    group = api.nvim_create_augroup('hone.edit_highlight', { clear = true }),
    callback = set_highlights,
  })
end

function M.clear()
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) then
      api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    end
  end
end

local function virtual(lines)
  return vim.tbl_map(function(line)
    return { { line, NEW } }
  end, lines)
end

local function draw_new(buf, place, new)
  local lines = vim.split(new, '\n', { plain = true })
  local is_whole_lines = #lines > 1 and lines[#lines] == ''
  local last = api.nvim_buf_line_count(buf) - 1
  if is_whole_lines then
    table.remove(lines)
    local row = math.min(place.stop[1], last)
    api.nvim_buf_set_extmark(buf, namespace, row, 0, {
      virt_lines = virtual(lines),
      virt_lines_above = place.stop[1] <= last,
    })
    return
  end
  api.nvim_buf_set_extmark(buf, namespace, math.min(place.stop[1], last), place.stop[2], {
    virt_text = { { lines[1], NEW } },
    virt_text_pos = 'inline',
    virt_lines = virtual(vim.list_slice(lines, 2)),
    hl_mode = 'replace',
  })
end

--- Draws what becomes of lines that change in their middle, below them.
local function draw_lines(buf, row, text)
  api.nvim_buf_set_extmark(buf, namespace, math.min(row, api.nvim_buf_line_count(buf) - 1), 0, {
    virt_lines = virtual(vim.split(text, '\n', { plain = true })),
  })
end

--- Draws old and new text at the place.
---@param place hone.Place
---@param old string
---@param new string
function M.draw(buf, place, old, new)
  local before, behind = places.around(buf, place)
  local shown = rest.preview(old, new, before, behind)
  local start, stop = places.at(place, old, shown.from), places.at(place, old, shown.to)
  local replaces = shown.from < shown.to
  if replaces then
    api.nvim_buf_set_extmark(buf, namespace, start[1], start[2], {
      end_row = stop[1],
      end_col = stop[2],
      hl_group = OLD,
      strict = false,
    })
  end
  if shown.text == '' then
    return
  end
  local here = { start = start, stop = stop }
  local has_lines = start[1] ~= stop[1] or shown.text:find('\n', 1, true)
  local is_whole = start[2] == 0 and stop[2] == 0 and vim.endswith(shown.text, '\n')
  before, behind = places.around(buf, here)
  if has_lines and not is_whole and (replaces or behind ~= '') then
    draw_lines(buf, stop[1], before .. shown.text .. behind)
  else
    draw_new(buf, here, shown.text)
  end
end

--- Says at the end of the cursor's line where the edit is.
---@param text string
function M.hint(text)
  local buf, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] - 1
  api.nvim_buf_set_extmark(buf, namespace, row, 0, {
    virt_text = { { ' ' .. text, HINT } },
    virt_text_pos = 'eol',
  })
end

return M
