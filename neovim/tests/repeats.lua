--- Whatever repeats an insertion repeats what was accepted: `.`, a count, a visual block and a
--- macro. A real Neovim plays them against a scripted server.

local check = require('check')
local open = require('scripted').open
local wait = require('wait')

local COMPLETION = 'textDocument/inlineCompletion'

--- The next words of every line, as an offer.
local OFFER = ' = load(x);'

local function wait_for_lines(editor, expected)
  local found
  local ok = pcall(wait.until_, 'the text', function()
    found = editor:lines()
    return editor:mode() == 'n' and vim.deep_equal(found, expected)
  end)
  if not ok then
    check.equal(expected, found, editor:screen())
  end
end

--- Opens a file, presses keys that lead to an offer, accepts it with `accept`, and ends the
--- insertion.
local function accepted(home, name, text, keys, script, accept)
  local answers = vim.tbl_extend('keep', script or {}, { answer = OFFER })
  local editor, server = open(home, name, text, answers)
  editor:type(keys)
  server:wait_for('textDocument/didShowCompletion', 1)
  editor:press(unpack(accept or { 'Tab' }))
  server:wait_for('workspace/executeCommand', 1)
  return editor
end

local function escape(editor)
  editor:press('Escape')
  wait.until_('normal mode', function()
    return editor:mode() == 'n'
  end)
end

--- Waits until register `a` has these keys.
local function wait_for_register(editor, expected)
  local found
  wait.until_('the register', function()
    found = vim.trim(editor:eval('keytrans(getreg("a"))'))
    return found == expected
  end, function()
    return found
  end)
end

return {
  {
    '`.` repeats what was accepted with what was typed',
    function(home)
      local editor = accepted(home, 'dot.txt', 'one\ntwo\nsix\n', 'Ax')
      editor:type('!')
      escape(editor)
      editor:type('j.j2.')
      local twice = 'sixx = load(x);!x = load(x);!'
      wait_for_lines(editor, { 'onex = load(x);!', 'twox = load(x);!', twice })
    end,
  },
  {
    'a count repeats what was accepted',
    function(home)
      local editor = accepted(home, 'count.txt', 'one\n', '3Ax')
      escape(editor)
      wait_for_lines(editor, { 'one' .. ('x = load(x);'):rep(3) })
    end,
  },
  {
    'lines that were opened with a count have what was accepted',
    function(home)
      local editor = accepted(home, 'opened.txt', 'one\n', '2ox')
      escape(editor)
      wait_for_lines(editor, { 'one', 'x = load(x);', 'x = load(x);' })
    end,
  },
  {
    'a visual block has what was accepted in every line',
    function(home)
      local editor, server = open(home, 'block.txt', 'one\ntwo\nsix\n', { answer = OFFER })
      editor:press('C-v')
      editor:type('jj$A')
      editor:type('x')
      -- An offer may have been shown already when the insertion began.
      editor:wait_for('onex = load(x);')
      editor:press('Tab')
      server:wait_for('workspace/executeCommand', 1)
      escape(editor)
      local lines = { 'onex = load(x);', 'twox = load(x);', 'sixx = load(x);' }
      wait_for_lines(editor, lines)
    end,
  },
  {
    'a change of a selection is repeated with what was accepted',
    function(home)
      local editor = accepted(home, 'visual.txt', 'one;\ntwo;\n', 'viwcx')
      escape(editor)
      editor:type('j0.')
      wait_for_lines(editor, { 'x = load(x);;', 'x = load(x);;' })
    end,
  },
  {
    'several lines are repeated without another indentation',
    function(home)
      local answer = { answer = ' {\n    foo();\n  }' }
      local editor = accepted(home, 'lines.txt', '  one\n  two\n', 'Ax', answer)
      escape(editor)
      editor:type('G.')
      local body = { '    foo();', '  }' }
      wait_for_lines(editor, { '  onex {', body[1], body[2], '  twox {', body[1], body[2] })
    end,
  },
  {
    'words that were accepted one by one are repeated',
    function(home)
      local answer, keys = { answer = ' = load' }, { 'C-Right', 'C-Right' }
      local editor = accepted(home, 'words.txt', 'one\ntwo\n', 'Ax', answer, keys)
      escape(editor)
      editor:type('j.')
      wait_for_lines(editor, { 'onex = load', 'twox = load' })
    end,
  },
  {
    'a bracket that the offer replaced is replaced in the repetition too',
    function(home)
      local script = { answer = 'a, b).c();', replaces = 1 }
      local editor = accepted(home, 'bracket.txt', 'f()\nf()\n', 'f(ax, ', script)
      escape(editor)
      editor:type('j0f(.')
      wait_for_lines(editor, { 'f(x, a, b).c();', 'f(x, a, b).c();' })
    end,
  },
  {
    'one undo takes back what was accepted, and another one the rest',
    function(home)
      local editor = accepted(home, 'undone.txt', 'one\ntwo\n', 'Ax')
      editor:type('!')
      escape(editor)
      editor:type('u')
      wait_for_lines(editor, { 'onex', 'two' })
      editor:type('u')
      wait_for_lines(editor, { 'one', 'two' })
      editor:press('C-r', 'C-r')
      wait_for_lines(editor, { 'onex = load(x);!', 'two' })
      editor:type('j.')
      wait_for_lines(editor, { 'onex = load(x);!', 'twox = load(x);!' })
    end,
  },
  {
    'a macro has what was accepted, and does the same again at once and later',
    function(home)
      local editor = accepted(home, 'macro.txt', 'one\ntwo\nsix\nten\n', 'qaAx')
      editor:type('!')
      escape(editor)
      -- The macro runs with the keys that end it.
      editor:type('qj@aj2@@')
      local twice = 'sixx = load(x);!x = load(x);!'
      wait_for_lines(editor, { 'onex = load(x);!', 'twox = load(x);!', twice, 'ten' })
      wait_for_register(editor, 'Ax<Space>=<Space>load(x);!<Esc>')
      editor:type('G.')
      wait.until_('the repetition', function()
        return vim.startswith(editor:lines()[4], 'tenx = load(x);!')
      end)
    end,
  },
  {
    'a macro has a text literally where typing it would do something else',
    function(home)
      local init = [[
        vim.keymap.set('i', '(', '()<Left>')
        vim.o.autoindent = true
      ]]
      for name, case in pairs({
        ['mapped.txt'] = { answer = ' f(x);', lines = { '  onex f(x);', '  twox f(x);' } },
        ['body.txt'] = { answer = ' {\n  }', lines = { '  onex {', '  }', '  twox {', '  }' } },
      }) do
        local editor, server = open(home, name, '  one\n  two\n', { answer = case.answer }, init)
        editor:type('qaAx')
        server:wait_for('textDocument/didShowCompletion', 1)
        editor:press('Tab')
        server:wait_for('workspace/executeCommand', 1)
        escape(editor)
        editor:type('qG@a')
        wait_for_lines(editor, case.lines)
      end
    end,
  },
  {
    'a macro has no key that only changed what is on screen',
    function(home)
      local editor, server = open(home, 'shown.txt', 'one\ntwo\n', { answer = OFFER })
      editor:type('qaAx')
      server:wait_for('textDocument/didShowCompletion', 1)
      editor:press('M-]')
      server:wait_for('textDocument/didShowCompletion', 2)
      editor:press('C-]')
      server:wait_for('hone/didReject', 1)
      editor:type('!')
      escape(editor)
      editor:type('qj@a')
      wait_for_lines(editor, { 'onex!', 'twox!' })
      wait_for_register(editor, 'Ax!<Esc>')
    end,
  },
  {
    'a macro that is continued keeps its beginning, and a Tab without an offer stays a Tab',
    function(home)
      local editor, server = open(home, 'more.txt', 'one\ntwo\n', { answer = 'null' })
      editor:type('qaAx')
      editor:press('Tab')
      wait.until_('the tab', function()
        return editor:lines()[1] == 'onex\t'
      end)
      escape(editor)
      editor:type('q')
      wait_for_register(editor, 'Ax<Tab><Esc>')
      editor:type('qA')
      local asked = #server:sent(COMPLETION)
      editor:type('Aü')
      server:wait_for(COMPLETION, asked + 1)
      editor:eval('luaeval("require(\'fake_server\').answer(_A)", "ß!")')
      editor:type('y')
      server:wait_for('textDocument/didShowCompletion', 1)
      editor:press('Tab')
      server:wait_for('workspace/executeCommand', 1)
      escape(editor)
      editor:type('qj@a')
      wait_for_lines(editor, { 'onex\tüyß!', 'twox\tüyß!' })
    end,
  },
}
