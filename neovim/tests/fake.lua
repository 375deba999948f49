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
    'the server is told where the cursor comes to rest',
    function(home)
      local editor, server = open(home, 'rests.txt', 'one\ntwo 😀!\n', { answer = 'null' })
      server:wait_for('textDocument/didFocus', 1)
      editor:press('j')
      editor:press('$')
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
      wait.settle()
      check.equal(1, #server:sent(COMPLETION))
      check.equal(1, #server:sent('textDocument/didShowCompletion'))
      editor:type(' t')
      wait.settle()
      check.equal(1, #server:sent(COMPLETION), 'typing along makes no request')
      check.equal(1, #server:sent('textDocument/didShowCompletion'))
      check.equal({}, server:sent('hone/didReject'))
    end,
  },
  {
    'a newer request cancels the older, whose late answer is not shown',
    function(home)
      local script = { answer = '-late', delay_ms = 900 }
      local editor, server = open(home, 'late.txt', '\n', script)
      editor:type('ia')
      server:wait_for(COMPLETION, 1)
      editor:type('b')
      server:wait_for(COMPLETION, 2)
      local requests, cancels = server:sent(COMPLETION), server:sent('$/cancelRequest')
      check.equal({ requests[1].id }, { cancels[1].params.id })
      vim.wait(500)
      check.lacks(editor:screen(), '-late')
      editor:wait_for('ab-late')
      check.equal(1, #server:sent('textDocument/didShowCompletion'))
    end,
  },
  {
    'leaving insert mode cancels the request, whose late answer is not shown',
    function(home)
      local script = { answer = '-late', delay_ms = 600 }
      local editor, server = open(home, 'left.txt', '\n', script)
      editor:type('ia')
      server:wait_for(COMPLETION, 1)
      editor:press('Escape')
      server:wait_for('$/cancelRequest', 1)
      vim.wait(900)
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
      wait.settle()
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
      wait.settle()
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
      wait.settle()
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
      check.equal({ 'one, two, three' }, editor:lines())
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
