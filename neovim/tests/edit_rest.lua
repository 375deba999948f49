--- What is drawn of a next edit.

local check = require('check')
local rest = require('hone.edit_rest')

--- What goes and what comes on screen.
local function preview(old, new, before, behind)
  before = before or ''
  local shown = rest.preview(old, new, before, behind or '')
  local whole = before .. old .. (behind or '')
  return { whole:sub(#before + shown.from + 1, #before + shown.to), shown.text }
end

return {
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
}
