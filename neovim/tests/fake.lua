--- Real Neovims against a scripted server. These tests check what is sent and what is drawn in
--- cases that the real server cannot be made to produce.

local check = require('check')
local open = require('scripted').open
local wait = require('wait')

local COMPLETION = 'textDocument/inlineCompletion'

return {
  {
    'an offer of many lines is drawn below the cursor and accepted line by line',
    function(home)
      local editor, server = open(home, 'lines.c', 'int x;\n', { answer = ' {\n\tfoo();\n}' })
      editor:press('A')
      editor:wait_for('\n        foo();\n}\n')
      editor:wait_for('int x; {\n')
      check.equal({ 'int x;' }, editor:lines(), 'a ghost is not in the buffer')
      editor:press('C-End')
      editor:press('C-End')
      server:wait_for('textDocument/didPartiallyAcceptCompletion', 2)
      wait.until_('two lines', function()
        return vim.deep_equal(editor:lines(), { 'int x; {', '\tfoo();' })
      end)
      editor:wait_for('\n        foo();\n}\n')
      editor:press('Tab')
      server:wait_for('workspace/executeCommand', 1)
      check.equal({ 'int x; {', '\tfoo();', '}' }, editor:lines())
      local lengths = vim.tbl_map(function(message)
        return message.params.acceptedLength
      end, server:sent('textDocument/didPartiallyAcceptCompletion'))
      check.equal({ 2, 10 }, lengths)
      local accepted = server:sent('workspace/executeCommand')[1].params
      check.equal({ command = 'hone.accept', arguments = { 'offer-1' } }, accepted)
    end,
  },
  {
    'all lines of an offer are on screen before they are accepted',
    function(home)
      local text = ('x\n'):rep(30)
      local editor = open(home, 'room.txt', text, { answer = ' {\n  one\n  two\n  three\n}' })
      editor:type('20Gzb')
      editor:press('A')
      editor:wait_for('\nx {\n  one\n  two\n  three\n}\n')
      check.equal(20, tonumber(editor:eval('line(".")')), 'the cursor stays')
      check.equal(2, tonumber(editor:eval('col(".")')))
      editor:press('Tab')
      editor:wait_for_line(24, '}')
    end,
  },
  {
    'an offer that is higher than the window says how many lines are below it',
    function(home)
      local lines = {}
      for at = 1, 30 do
        table.insert(lines, 'line' .. at)
      end
      local answer = ' ' .. table.concat(lines, '\n')
      local editor = open(home, 'high.txt', 'x\n', { answer = answer })
      editor:press('A')
      editor:wait_for('x line1 … +')
      local seen, unseen = 1, tonumber(editor:screen():match('line1 … %+(%d+) lines'))
      for at = 2, 30 do
        seen = seen + (editor:screen():find('\nline' .. at .. '\n', 1, true) and 1 or 0)
      end
      check.equal(30, seen + unseen, editor:screen())
      editor:press('C-End')
      editor:wait_for_line(1, 'x line1')
    end,
  },
  {
    'once the model is loaded, an offer is asked for again where the user waits',
    function(home)
      local script = { answer = ' two', loads = true }
      local editor, server = open(home, 'loads.txt', 'one\n', script)
      editor:press('A')
      editor:wait_for('one two')
      check.equal(2, #server:sent(COMPLETION))
    end,
  },
  {
    'of several offers, the screen says which one it is',
    function(home)
      local script = { answer = ' one', choices = { ' one', ' two', ' three' } }
      local editor = open(home, 'choices.txt', 'x\n', script)
      editor:press('A')
      editor:wait_for('x one\n')
      editor:press('M-]')
      editor:wait_for('x two 2/3\n')
      editor:press('M-]')
      editor:wait_for('x three 3/3\n')
      editor:press('M-]')
      editor:wait_for('x one 1/3\n')
      editor:press('M-[')
      editor:wait_for('x three 3/3\n')
      editor:press('Tab')
      editor:wait_for_line(1, 'x three')
      editor:wait_until_gone('3/3')
    end,
  },
  {
    'asked for by hand behind a part that was typed, the next offer comes first',
    function(home)
      local script = { answer = ' one', choices = { ' one', ' only' } }
      local editor = open(home, 'next.txt', 'x\n', script)
      editor:press('A')
      editor:wait_for('x one\n')
      editor:type(' o')
      editor:wait_for('x one\n')
      editor:press('M-\\')
      editor:wait_for('x o only 2/2\n')
    end,
  },
  {
    'in a file of DOS an offer of many lines brings line breaks, and no other marks',
    function(home)
      local answer = ' {\r\nfoo();\r\n}'
      local editor, server = open(home, 'dos.txt', 'int x;\r\n', { answer = answer })
      check.equal('dos', vim.trim(editor:eval('&fileformat')))
      editor:press('A')
      editor:wait_for('\nfoo();\n}\n')
      editor:press('C-End')
      editor:press('C-End')
      server:wait_for('textDocument/didPartiallyAcceptCompletion', 2)
      local part = server:sent('textDocument/didPartiallyAcceptCompletion')[2].params
      check.equal(10, part.acceptedLength, 'the server counts its own line breaks')
      editor:press('Enter')
      editor:wait_for('foo();\n}\n')
      editor:press('Tab')
      server:wait_for('workspace/executeCommand', 1)
      check.equal({ 'int x; {', 'foo();', '}' }, editor:lines())
      check.equal({}, server:sent('hone/didReject'), 'a line break that is typed is the offer\'s')
    end,
  },
  {
    'where the server ends, a buffer has the mappings that Hone\'s replaced',
    function(home)
      local map = [[vim.api.nvim_create_autocmd('BufReadPost', { callback = function()
        vim.keymap.set('i', '<Tab>', '[local]', { buffer = true })
      end })]]
      local editor = open(home, 'mapped.txt', '\n', {}, map)
      editor:press('i')
      editor:press('Tab')
      editor:press('Escape')
      editor:type(':lua vim.lsp.stop_client(vim.lsp.get_clients(), true)')
      editor:press('Enter')
      wait.until_('no server', function()
        return vim.trim(editor:eval('luaeval("#vim.lsp.get_clients()")')) == '0'
      end)
      editor:press('A')
      editor:press('Tab')
      wait.until_('both by the mapping', function()
        return editor:lines()[1] == '[local][local]'
      end, function()
        return editor:screen()
      end)
    end,
  },
  {
    'the server is told where the cursor comes to rest',
    function(home)
      local editor, server = open(home, 'rests.txt', 'one\ntwo 😀!\n', { answer = 'null' })
      server:wait_for('textDocument/didFocus', 1)
      editor:press('j', '$')
      server:wait_for('textDocument/didFocus', 2)
      local told = server:sent('textDocument/didFocus')
      check.equal({ line = 1, character = 6 }, told[#told].params.position)
      check.equal({}, server:sent(COMPLETION), 'there is no request before the user types')
    end,
  },
  {
    'accepted lengths are UTF-16 units',
    function(home)
      local editor, server = open(home, 'units.txt', 'ß😀\n', { answer = '😀ß end' })
      editor:press('A')
      editor:wait_for('😀ß end')
      check.equal(3, server:sent(COMPLETION)[1].params.position.character)
      editor:press('C-Right')
      server:wait_for('textDocument/didPartiallyAcceptCompletion', 1)
      local part = server:sent('textDocument/didPartiallyAcceptCompletion')[1].params
      check.equal(3, part.acceptedLength)
      check.equal({ 'ß😀😀ß' }, editor:lines())
    end,
  },
  {
    'each place has one request and one report that the offer is shown',
    function(home)
      local editor, server = open(home, 'once.txt', 'one\n', { answer = ' two' })
      editor:press('A')
      editor:wait_for('one two')
      editor:rest()
      check.equal(1, #server:sent(COMPLETION))
      check.equal(1, #server:sent('textDocument/didShowCompletion'))
      editor:type(' t')
      editor:wait_for_line(1, 'one t')
      editor:rest()
      check.equal(1, #server:sent(COMPLETION), 'typing along makes no request')
      check.equal(1, #server:sent('textDocument/didShowCompletion'))
      check.equal({}, server:sent('hone/didReject'))
    end,
  },
  {
    'a newer request cancels the older, whose late answer is not shown',
    function(home)
      -- The late answer would fit what is typed by then.
      local script = { answer = 'b-late', delay_ms = 900, first_is_late = true }
      local editor, server = open(home, 'late.txt', '\n', script)
      editor:type('ia')
      server:wait_for(COMPLETION, 1)
      editor:type('b')
      server:wait_for(COMPLETION, 2)
      local requests, cancels = server:sent(COMPLETION), server:sent('$/cancelRequest')
      check.equal({ requests[1].id }, { cancels[1].params.id })
      editor:wait_for('abb-late')
      check.equal(1, #server:sent('late answer'))
      server:wait_for('textDocument/didShowCompletion', 1)
      local shown = vim.tbl_map(function(message)
        return message.params.item.command.arguments[1]
      end, server:sent('textDocument/didShowCompletion'))
      check.equal({ 'offer-2' }, shown)
    end,
  },
  {
    'leaving insert mode cancels the request, whose late answer is not shown',
    function(home)
      local script = { answer = '-late', first_is_late = true }
      local editor, server = open(home, 'left.txt', '\n', script)
      editor:type('ia')
      server:wait_for(COMPLETION, 1)
      editor:press('Escape')
      server:wait_for('late answer', 1)
      editor:rest()
      check.lacks(editor:screen(), '-late')
      check.equal({}, server:sent('textDocument/didShowCompletion'))
      check.equal({}, server:sent('hone/didReject'))
    end,
  },
  {
    'null is no offer and no error',
    function(home)
      local editor, server = open(home, 'null.txt', '\n', { answer = 'null' })
      editor:type('ia')
      server:wait_for(COMPLETION, 1)
      editor:rest()
      check.equal('', vim.trim(editor:messages()))
      check.equal({ 'a' }, editor:lines())
    end,
  },
  {
    'an error is shown once, however often it comes',
    function(home)
      local editor, server = open(home, 'error.txt', '\n', { answer = 'error' })
      editor:type('ia')
      wait.until_('the message', function()
        return editor:messages():find('hone: the engine is on fire', 1, true)
      end)
      editor:type('b')
      server:wait_for(COMPLETION, 2)
      editor:rest()
      local _, told = editor:messages():gsub('on fire', '')
      check.equal(1, told)
    end,
  },
  {
    'an acceptance is reported before the text changes',
    function(home)
      -- Neovim describes this insertion as one behind the first blank.
      local editor, server = open(home, 'order.txt', 'one, three\n', { answer = ' two,' })
      editor:type('0f,a')
      editor:wait_for('one, two, three')
      editor:type(' ')
      editor:wait_for('one, two, three')
      check.equal({ 'one,  three' }, editor:lines(), 'a ghost is not in the buffer')
      editor:press('BSpace')
      editor:press('Tab')
      server:wait_for('workspace/executeCommand', 1)
      editor:wait_for_line(1, 'one, two, three')
      editor:flush()
      local methods = {}
      for line in io.lines(server.log) do
        table.insert(methods, vim.json.decode(line).method)
      end
      local accepted, changed
      for at, method in ipairs(methods) do
        accepted = accepted or (method == 'workspace/executeCommand' and at)
        changed = method == 'textDocument/didChange' and at or changed
      end
      assert(accepted < changed, table.concat(methods, ', '))
    end,
  },
  {
    'a bracket that the offer closes too stays on screen, and is replaced on acceptance',
    function(home)
      local script = { answer = 'a, b).c();', replaces = 1 }
      local editor, server = open(home, 'closed.txt', 'foo()\n', script)
      editor:type('f(a')
      editor:wait_for('foo(a, b).c();')
      editor:press('C-Right')
      server:wait_for('textDocument/didPartiallyAcceptCompletion', 1)
      check.equal({ 'foo(a)' }, editor:lines())
      editor:wait_for('foo(a, b).c();')
      editor:press('Tab')
      server:wait_for('workspace/executeCommand', 1)
      check.equal({ 'foo(a, b).c();' }, editor:lines())
      check.equal(15, tonumber(editor:eval('col(".")')), 'the cursor is behind it')
    end,
  },
  {
    'when the text behind the cursor changes, the server is asked',
    function(home)
      local script = { answer = 'foo(a);', replaces = 0 }
      local editor, server = open(home, 'pairs.txt', '\n', script)
      editor:type('i')
      editor:eval('execute("inoremap ( ()<Left>")')
      editor:type(' ')
      editor:wait_for(' foo(a);')
      local before = #server:sent(COMPLETION)
      editor:type('foo(')
      server:wait_for(COMPLETION, before + 1)
      check.equal({ ' foo()' }, editor:lines())
    end,
  },
  {
    'an edit above the ghost moves it along',
    function(home)
      local editor = open(home, 'above.txt', 'one\n', { answer = ' two' })
      editor:press('A')
      editor:wait_for('one two')
      editor:eval('appendbufline("%", 0, "above")')
      editor:type(' ')
      editor:wait_for('above\none two')
      editor:press('Tab')
      wait.until_('the offer in the buffer', function()
        return vim.deep_equal(editor:lines(), { 'above', 'one two' })
      end)
    end,
  },
}
