--- The place of a next edit in a buffer: what stands there, and what it becomes. Positions are rows
--- and byte columns that count from 0.

local api = vim.api

local M = {}

---@class hone.Place
---@field start { [1]: integer, [2]: integer }
---@field stop { [1]: integer, [2]: integer }

--- A position of the server in a buffer. The end of the text may lie behind the last line.
local function byte_position(buf, position, encoding)
  local line = api.nvim_buf_get_lines(buf, position.line, position.line + 1, false)[1]
  if not line then
    return { position.line, 0 }
  end
  return { position.line, vim.str_byteindex(line, encoding, position.character, false) }
end

---@return hone.Place
function M.of(buf, range, encoding)
  return {
    start = byte_position(buf, range.start, encoding),
    stop = byte_position(buf, range['end'], encoding),
  }
end

--- A place within the buffer's lines, and whether it reached over the last line break.
local function clamp(buf, place)
  local count = api.nvim_buf_line_count(buf)
  if place.stop[1] < count then
    return place.start, place.stop, false
  end
  local last = api.nvim_buf_get_lines(buf, count - 1, count, false)[1]
  local stop = { count - 1, #last }
  local start = place.start[1] < count and place.start or stop
  return start, stop, true
end

--- What stands at a place, or nil if the buffer has no such place.
---@return string?
function M.text(buf, place)
  local start, stop, over = clamp(buf, place)
  local ok, lines = pcall(api.nvim_buf_get_text, buf, start[1], start[2], stop[1], stop[2], {})
  if not ok then
    return nil
  end
  local is_empty = place.start[1] == place.stop[1] and place.start[2] == place.stop[2]
  return table.concat(lines, '\n') .. (over and not is_empty and '\n' or '')
end

--- The text of the line before a place, and behind it.
---@return string, string
function M.around(buf, place)
  local function line(row)
    return api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  end
  local start, stop = place.start, place.stop
  return line(start[1]):sub(1, start[2]), line(stop[1]):sub(stop[2] + 1)
end

--- The position so many bytes behind the start of a text at a place. With fewer than none, or more
--- than the text has, it is in the line before it or behind it.
---@return { [1]: integer, [2]: integer }
function M.at(place, text, offset)
  if offset <= 0 then
    return { place.start[1], place.start[2] + offset }
  elseif offset >= #text then
    return { place.stop[1], place.stop[2] + offset - #text }
  end
  local lines = vim.split(text:sub(1, offset), '\n', { plain = true })
  local column = #lines == 1 and place.start[2] or 0
  return { place.start[1] + #lines - 1, column + #lines[#lines] }
end

--- Puts a text at a place, in one step of undo.
function M.replace(buf, place, text)
  local start, stop, over = clamp(buf, place)
  local lines = vim.split(text, '\n', { plain = true })
  if over then
    if start[1] == stop[1] and start[2] == stop[2] and text ~= '' then
      -- Lines behind the last one.
      table.remove(lines)
      table.insert(lines, 1, '')
    elseif text == '' and start[2] == 0 and start[1] > 0 then
      -- The last lines go, and the line break before them with them.
      local above = api.nvim_buf_get_lines(buf, start[1] - 1, start[1], false)[1]
      start = { start[1] - 1, #above }
    elseif lines[#lines] == '' then
      table.remove(lines)
    end
  end
  api.nvim_buf_set_text(buf, start[1], start[2], stop[1], stop[2], lines)
end

return M
