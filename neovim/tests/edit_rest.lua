--- What is left of a next edit and what is drawn of it, and how a text was changed last.

local check = require('check')
local last_change = require('hone.last_change')
local rest = require('hone.edit_rest')
local api = vim.api

local EDIT = { old = 'load', new = 'fetch' }

local function left(old, new, now)
  return rest.left({ old = old, new = new }, now)
end

--- What goes and what comes on screen.
local function preview(old, new, before, behind)
  before = before or ''
  local shown = rest.preview(old, new, before, behind or '')
  local whole = before .. old .. (behind or '')
  return { whole:sub(#before + shown.from + 1, #before + shown.to), shown.text }
end

--- Runs `run` in a window of a buffer with these lines.
local function in_buffer(lines, run)
  local buf = api.nvim_create_buf(true, false)
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  api.nvim_win_set_buf(0, buf)
  run(buf)
  api.nvim_buf_delete(buf, { force = true })
end

local function normal(keys)
  vim.cmd('silent normal! ' .. vim.keycode(keys))
end

return {
  {
    'of an edit that is typed by hand, what is left stays',
    function()
      for _, now in ipairs({ 'load', 'lo', '', 'f', 'fetc', 'fload', 'feoad' }) do
        check.equal(now, rest.left(EDIT, now), now)
      end
      for _, now in ipairs({ 'fetch', 'xload', 'loxad', 'lad', 'fx' }) do
        check.equal(nil, rest.left(EDIT, now), now)
      end
      check.equal(',', left('', ', 2', ','))
      check.equal('    \n', left('', '    two;\n', '    \n'))
    end,
  },
  {
    'what comes behind its place is none of the edit, unless that has been begun',
    function()
      check.equal('load', rest.left(EDIT, 'load(1)'))
      check.equal(nil, rest.left({ old = 'fe', new = 'fetch', is_begun = true }, 'fex'))
      check.equal('fet', rest.left({ old = 'fe', new = 'fetch', is_begun = true }, 'fet'))
      check.equal(nil, left('', 's', 'x'))
    end,
  },
  {
    'whole words are drawn of an edit, and nothing that stays',
    function()
      check.equal({ 'getUser', 'setUser' }, preview('g', 's', 'x.', 'etUser();'))
      check.equal({ 'loads', 'load' }, preview('s', '', 'file.load', '('))
      check.equal({ 'load', 'fetch' }, preview('a.load(1)', 'a.fetch(1)'))
      check.equal({ '(', '[' }, preview('(', '[', 'größe', 'x'))
      check.equal({ '😀', '😁' }, preview('😀', '😁'))
      check.equal({ '', 'tch' }, preview('fe', 'fetch'))
      check.equal({ '', 's' }, preview('', 's', 'load', '('))
      check.equal({ '', 'o;\n    three;' }, preview('    tw\n', '    two;\n    three;\n'))
      check.equal({ 'one;\n', '' }, preview('one;\n', ''))
      local old, new = 'a(1);\na(2);\n', 'b(1);\nb(2);\n'
      check.equal({ old, new }, preview(old, new))
    end,
  },
  {
    'how a text was changed is told by the last change',
    function()
      in_buffer({ 'a line of more than a few words', 'x' }, function(buf)
        last_change.watch(buf)
        check.equal(nil, last_change.kind(buf))
        normal('jix')
        check.equal('typing', last_change.kind(buf))
        normal('ggyyp')
        check.equal('paste', last_change.kind(buf))
        normal('u')
        check.equal('undo', last_change.kind(buf))
        check.equal('undo', last_change.kind(buf))
        normal('<C-r>')
        check.equal('undo', last_change.kind(buf))
        vim.bo[buf].autoindent = true
        normal('A<CR>')
        check.equal('typing', last_change.kind(buf))
        normal('dd')
        check.equal('typing', last_change.kind(buf))
        api.nvim_buf_set_text(buf, 0, 0, 0, 0, { 'what Hone has put there' })
        last_change.accepted(buf)
        check.equal('accept', last_change.kind(buf))
        api.nvim_buf_set_text(buf, 0, 0, 0, 4, { 'what a tool has put there' })
        check.equal(nil, last_change.kind(buf))
        api.nvim_buf_set_text(buf, 0, 0, 0, 0, { 'an_entry_of_a_completion_menu' })
        check.equal('typing', last_change.kind(buf))
      end)
    end,
  },
}
