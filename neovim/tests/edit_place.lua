--- The place of a next edit in a buffer, without a screen and without a server.

local check = require('check')
local places = require('hone.edit_place')
local api = vim.api

--- A buffer with these lines.
local function buffer(lines)
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  return buf
end

local function range(from_line, from, to_line, to)
  return {
    start = { line = from_line, character = from },
    ['end'] = { line = to_line, character = to },
  }
end

--- Replaces a range and returns what stood there and what the buffer is then.
local function replaced(lines, at, text)
  local buf = buffer(lines)
  local place = places.of(buf, at, 'utf-16')
  local old = places.text(buf, place)
  places.replace(buf, place, text)
  return old, api.nvim_buf_get_lines(buf, 0, -1, true)
end

return {
  {
    'a place is found behind characters of several units',
    function()
      local old, lines = replaced({ 'one', 'é😀 load();' }, range(1, 4, 1, 8), 'fetch')
      check.equal('load', old)
      check.equal({ 'one', 'é😀 fetch();' }, lines)
    end,
  },
  {
    'whole lines are inserted, deleted and replaced, at the end of the text too',
    function()
      local function lines_after(...)
        return select(2, replaced(...))
      end
      local three = { 'a', 'b', 'c' }
      check.equal({ 'a', 'x', 'b', 'c' }, lines_after(three, range(1, 0, 1, 0), 'x\n'))
      check.equal({ 'a', 'c' }, lines_after(three, range(1, 0, 2, 0), ''))
      check.equal({ 'a', 'b', 'c', 'x' }, lines_after(three, range(3, 0, 3, 0), 'x\n'))
      check.equal({ 'a', 'b' }, lines_after(three, range(2, 0, 3, 0), ''))
      check.equal({ 'a', 'b', 'x' }, lines_after(three, range(2, 0, 3, 0), 'x\n'))
    end,
  },
  {
    'the last line break belongs to what stands there',
    function()
      local old = replaced({ 'a', 'b' }, range(1, 0, 2, 0), '')
      check.equal('b\n', old)
      check.equal('', (replaced({ 'a' }, range(1, 0, 1, 0), 'x\n')))
    end,
  },
  {
    'a position in the text of a place is found, and in the line around it',
    function()
      local place = { start = { 3, 4 }, stop = { 4, 2 } }
      check.equal({ 3, 4 }, places.at(place, 'ab\ncd', 0))
      check.equal({ 3, 1 }, places.at(place, 'ab\ncd', -3))
      check.equal({ 3, 6 }, places.at(place, 'ab\ncd', 2))
      check.equal({ 4, 1 }, places.at(place, 'ab\ncd', 4))
      check.equal({ 4, 5 }, places.at(place, 'ab\ncd', 8))
      local buf = buffer({ 'one two', 'three' })
      local around = { places.around(buf, { start = { 0, 3 }, stop = { 1, 2 } }) }
      check.equal({ 'one', 'ree' }, around)
    end,
  },
  {
    'a place that ends before it begins has no text',
    function()
      local place = { start = { 1, 0 }, stop = { 0, 1 } }
      check.equal(nil, places.text(buffer({ 'a', 'b' }), place))
    end,
  },
}
