--- Tests that need neither a screen nor a server.

local check = require('check')
local models = require('hone.models')
local offers = require('hone.offer')
local options = require('hone.options')
local scratch = require('hone.scratch')

--- Cuts a text with `part` until nothing is left.
local function pieces(text, part)
  local cut = {}
  while text ~= '' do
    local piece = part(text)
    table.insert(cut, piece)
    text = text:sub(#piece + 1)
  end
  return cut
end

return {
  {
    'words are cut at punctuation, with the blanks before them',
    function()
      local expected = { 'let', ' x1_y', ' =', ' foo', '.', 'bar', '();', '\n  baz', '  ' }
      check.equal(expected, pieces('let x1_y = foo.bar();\n  baz  ', offers.word))
    end,
  },
  {
    'words never cut a character in two',
    function()
      local expected = { 'größe', ' 😀', '(', 'naïve', ')' }
      check.equal(expected, pieces('größe 😀(naïve)', offers.word))
    end,
  },
  {
    'lines are cut before their line break',
    function()
      check.equal({ 'a {', '\n  b', '\n', '\n}' }, pieces('a {\n  b\n\n}', offers.line))
    end,
  },
  {
    'marks that a text brings stay where they are, and the rest is drawn around them',
    function()
      check.equal({ 'a, b', ';' }, offers.pieces('a, b);', ')'))
      check.equal({ 'c', '', '' }, offers.pieces('c")', '")'))
      check.equal({ 'x' }, offers.pieces('x', ''))
      check.equal(1, offers.brings('a);', ')'))
      check.equal(1, offers.brings('a"', '")'), 'the first of two')
      check.equal(0, offers.brings('a', ')'))
    end,
  },
  {
    'accepted text is counted in UTF-16 units',
    function()
      check.equal({ 3, 2, 1 }, vim.tbl_map(offers.utf16_length, { 'abc', '😀', 'ß' }))
    end,
  },
  {
    'options are taken over the defaults',
    function()
      local given = { debounce_ms = 10, keymaps = { accept = '<C-y>', dismiss = false } }
      check.equal(nil, options.set(given))
      check.equal(10, options.current.debounce_ms)
      local keymaps = options.current.keymaps
      local keys = { keymaps.accept, keymaps.accept_word, keymaps.dismiss }
      check.equal({ '<C-y>', '<C-Right>', false }, keys)
      check.equal(nil, options.set({ exclude_filetypes = {} }))
      check.equal({}, options.current.exclude_filetypes)
      options.set({})
    end,
  },
  {
    'a wrong option is named, with what it should be',
    function()
      local function fault(given)
        return options.set(given)
      end
      check.contains(fault({ debounce = 1 }), 'unknown option debounce; there are cmd, debounce_ms')
      local keymap = fault({ keymaps = { tab = 'x' } })
      check.contains(keymap, 'unknown option keymaps.tab; there are accept, accept_line')
      local range = 'option debounce_ms must be a number from 0 to 2000'
      check.equal(range, fault({ debounce_ms = '75' }))
      local command = 'option cmd must be a path, or a list such as { "hone", "lsp" }'
      check.equal(command, fault({ cmd = {} }))
      check.contains(fault({ keymaps = { accept = true } }), 'option keymaps.accept must be a key')
      check.equal('setup takes a table of options', fault('fast'))
      check.equal(options.defaults, options.current, 'a faulty table changes nothing')
    end,
  },
  {
    'a list of models names what a user weighs',
    function()
      local all = models.parse([[{"models":[
        {"name":"big","bytes":491400064,"licence":"MIT","present":false,"configured":true,
         "expected_line_ms":405,"learns":true,"suggested":true},
        {"name":"moe","bytes":1048576,"licence":"MIT","present":false,"configured":false,
         "learns":false,"suggested":false},
        {"name":"old","bytes":1048576,"licence":"MIT","present":true,"configured":false}]}]])
      local size = '469 MiB, about 0.4 s a line, not here yet, MIT'
      local moe = '  moe: 1 MiB, not here yet, nothing is learned on it, MIT'
      local lines = { '→ big: ' .. size, moe, '  old: 1 MiB, here, MIT' }
      check.equal(lines, vim.tbl_map(models.line, all))
      local first, others = models.suggested(all)
      check.equal({ lines[1], lines[3] }, vim.tbl_map(models.line, first))
      check.equal({ moe }, vim.tbl_map(models.line, others))
    end,
  },
  {
    'progress comes in pieces and by whole percents, and not back',
    function()
      local told = {}
      local take = models.progress(function(percent)
        table.insert(told, percent)
      end)
      for _, piece in ipairs({
        '{"bytes":3,"total":400}\n{"bytes":5',
        '0,"total":400}\n',
        '{"bytes":0,"total":400}\nno JSON\n{"note":"checked"}\n',
        '{"bytes":400,"total":400}\n{"path":"/m.gguf"}\n',
      }) do
        take(piece)
      end
      take(nil)
      check.equal({ 12, 100 }, told)
    end,
  },
  {
    'the file to try it in is in the language in use, with the cursor behind a word',
    function()
      check.equal('go', scratch.for_filetype('go')[1].filetype)
      check.equal(#scratch.all, #scratch.for_filetype('go'))
      check.equal(scratch.all, scratch.for_filetype('text'))
      for _, one in ipairs(scratch.all) do
        check.equal('return', vim.trim(one.before[#one.before]), one.name)
        check.contains(one.before[1], 'Tab accepts it')
      end
    end,
  },
}
