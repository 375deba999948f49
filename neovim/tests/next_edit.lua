--- Real Neovims against a scripted server that offers next edits: what is drawn, what each key does
--- to the text, and what is reported.

local check = require('check')
local open = require('scripted').open
local wait = require('wait')

local EDIT = 'textDocument/copilotInlineEdit'
local COMPLETION = 'textDocument/inlineCompletion'

local function wait_for_lines(editor, expected)
  local ok = pcall(wait.until_, 'the text', function()
    return vim.deep_equal(editor:lines(), expected)
  end)
  if not ok then
    check.equal(expected, editor:lines())
  end
end

local SCRIPT = { old = 'load', new = 'fetch' }

--- No edit comes by itself, and no suggestion.
local BY_KEY = 'vim.b.hone_enabled = false'

--- A mapping by which a test sees that a key did what it does without Hone.
local ESCAPES = [[vim.keymap.set('n', '<Esc>', function() vim.g.escaped = 1 end)]]

local function wait_for_escape(editor)
  wait.until_('the own mapping', function()
    return vim.trim(editor:eval('get(g:, "escaped", 0)')) == '1'
  end)
end

local function wait_for_cursor(editor, row)
  wait.until_(('the cursor in line %d'):format(row), function()
    return tonumber(editor:eval('line(".")')) == row
  end)
end

local function lua(editor, expression)
  return editor:eval(('luaeval("%s")'):format(expression))
end

--- Holds the answers of the server back, as a model does that takes its time, or sends them.
local function hold(editor, on)
  lua(editor, ("require('fake_server').hold(%s)"):format(on))
end

--- How the last change came about, as the server was told so often.
local function wait_for_after(server, count, expected)
  server:wait_for(EDIT, count)
  check.equal(expected, server:sent(EDIT)[count].params.context.after)
end

return {
  {
    'a next edit is drawn with its old and its new text, and nothing changes by itself',
    function(home)
      local editor, server = open(home, 'near.txt', 'one();\nload(1);\nload(2);\n', SCRIPT)
      editor:type('x')
      editor:wait_for('loadfetch(1);')
      server:wait_for('textDocument/didShowInlineEdit', 1)
      check.equal({ 'ne();', 'load(1);', 'load(2);' }, editor:lines())
      local params = server:sent(EDIT)[1].params
      check.equal(2, params.context.triggerKind)
      assert(type(params.textDocument.version) == 'number')
    end,
  },
  {
    'the key goes there, and again makes the edit, in one step of undo',
    function(home)
      local editor, server = open(home, 'go.txt', 'one();\nload(1);\nload(2);\n', SCRIPT)
      editor:type('x')
      editor:wait_for('loadfetch(1);')
      editor:press('M-n')
      wait.until_('the cursor at the place', function()
        return tonumber(editor:eval('line(".")')) == 2
      end)
      check.equal({ 'ne();', 'load(1);', 'load(2);' }, editor:lines(), 'it only went there')
      editor:press('M-n')
      wait_for_lines(editor, { 'ne();', 'fetch(1);', 'load(2);' })
      server:wait_for('workspace/executeCommand', 1)
      local accepted = server:sent('workspace/executeCommand')[1].params
      check.equal({ command = 'hone.accept', arguments = { 'edit-1' } }, accepted)
      -- The next one is asked for at once.
      editor:wait_for('loadfetch(2);')
      editor:press('M-n')
      editor:press('M-n')
      wait_for_lines(editor, { 'ne();', 'fetch(1);', 'fetch(2);' })
      editor:type('u')
      wait_for_lines(editor, { 'ne();', 'fetch(1);', 'load(2);' })
    end,
  },
  {
    'no suggestion comes by itself on the line of a next edit',
    function(home)
      local editor, server = open(home, 'room.txt', 'one();\nload(1);\nload(2);\n', SCRIPT)
      editor:type('i')
      editor:type('x')
      editor:wait_for('loadfetch(1);')
      editor:rest()
      local before = #server:sent(COMPLETION)
      assert(before > 0, 'suggestions come by themselves')
      editor:press('M-n')
      wait.until_('the cursor at the place', function()
        return tonumber(editor:eval('line(".")')) == 2
      end)
      editor:rest()
      check.equal(before, #server:sent(COMPLETION))
      editor:press('Up')
      server:wait_for(COMPLETION, before + 1)
    end,
  },
  {
    'who types next to an edit that a key has brought is shown suggestions again',
    function(home)
      local editor, server = open(home, 'past.txt', 'load(1); \n', SCRIPT)
      editor:press('M-n')
      editor:wait_for('loadfetch(1);')
      editor:type('A')
      editor:rest()
      check.equal({}, server:sent(COMPLETION))
      editor:type('x')
      server:wait_for(COMPLETION, 1)
    end,
  },
  {
    'where no edit is on screen the key goes to the next one, and again makes it',
    function(home)
      local far = 'one();\n' .. ('\n'):rep(40) .. 'load(1);\n'
      local init = 'vim.b.hone_enabled = false'
      local editor, server = open(home, 'first.txt', far, SCRIPT, init)
      editor:press('M-n')
      editor:wait_for('loadfetch(1);')
      check.equal(42, tonumber(editor:eval('line(".")')))
      check.equal(1, server:sent(EDIT)[1].params.context.triggerKind)
      editor:press('M-n')
      server:wait_for('workspace/executeCommand', 1)
      check.equal('fetch(1);', editor:lines()[42])
      editor:press('C-o')
      wait.until_('the way back', function()
        return tonumber(editor:eval('line(".")')) == 1
      end)
    end,
  },
  {
    'Escape rejects it and does what it did before where there is none',
    function(home)
      local editor, server = open(home, 'esc.txt', 'one();\nload(1);\n', SCRIPT, ESCAPES)
      editor:type('x')
      editor:wait_for('loadfetch(1);')
      editor:press('Escape')
      server:wait_for('hone/didReject', 1)
      check.equal({ id = 'edit-1', reason = 'esc' }, server:sent('hone/didReject')[1].params)
      editor:wait_until_gone('loadfetch')
      check.equal('0', vim.trim(editor:eval('get(g:, "escaped", 0)')))
      editor:press('Escape')
      wait_for_escape(editor)
    end,
  },
  {
    'a place that is not on screen has a hint with the way to it',
    function(home)
      local text = 'one();\n' .. ('\n'):rep(40) .. 'load(1);\n'
      local editor = open(home, 'far.txt', text, SCRIPT)
      editor:type('x')
      editor:wait_for('→ 41 lines below (<M-n>)')
      editor:type(':Hone next')
      editor:press('Enter')
      editor:wait_for('loadfetch(1);')
    end,
  },
  {
    'an answer to an old version, and one for a text that is not there, are not shown',
    function(home)
      local late = { old = 'load', new = 'fetch', late = 1 }
      local editor, server = open(home, 'late.txt', 'one();\nload(1);\n', late)
      editor:type('x')
      server:wait_for(EDIT, 1)
      editor:rest()
      check.lacks(editor:screen(), 'fetch')
      check.equal({}, server:sent('textDocument/didShowInlineEdit'))
    end,
  },
  {
    'a text that changes under the edit is never replaced',
    function(home)
      local editor = open(home, 'under.txt', 'one();\nload(1);\nlast();\n', SCRIPT)
      editor:type('x')
      editor:wait_for('loadfetch(1);')
      editor:press('M-n')
      wait.until_('the cursor at the place', function()
        return tonumber(editor:eval('line(".")')) == 2
      end)
      -- Another program changes the place, and the key comes before any event.
      local change = "lua vim.api.nvim_buf_set_text(0, 1, 1, 1, 3, { 'xx' })"
      editor:eval(('execute("%s; require(\'hone\').next_edit()")'):format(change))
      editor:rest()
      check.equal({ 'ne();', 'lxxd(1);', 'last();' }, editor:lines())
    end,
  },
  {
    'who moves on while the key waits for an edit is shown it, and stays there',
    function(home)
      local script = vim.tbl_extend('error', SCRIPT, { holds = true })
      local text = 'one();\nload(1);\nend();\n'
      local editor, server = open(home, 'moved.txt', text, script, BY_KEY)
      editor:press('M-n')
      server:wait_for(EDIT, 1)
      editor:type('jj')
      wait_for_cursor(editor, 3)
      hold(editor, false)
      editor:wait_for('loadfetch(1);')
      editor:rest()
      wait_for_cursor(editor, 3)
      editor:press('M-n')
      wait_for_cursor(editor, 2)
    end,
  },
  {
    'while the next edit is thought of, the keys are the user’s, and a late answer is not shown',
    function(home)
      local text = 'one();\nload(1);\nload(2);\n'
      local editor, server = open(home, 'thinks.txt', text, SCRIPT, BY_KEY .. '\n' .. ESCAPES)
      editor:press('M-n')
      editor:wait_for('loadfetch(1);')
      wait_for_cursor(editor, 2)
      hold(editor, true)
      editor:press('M-n')
      wait_for_lines(editor, { 'one();', 'fetch(1);', 'load(2);' })
      server:wait_for(EDIT, 2)
      wait_for_after(server, 2, 'accept')
      editor:press('Escape')
      wait_for_escape(editor)
      editor:press('M-n')
      server:wait_for(EDIT, 3)
      editor:press('M-n')
      editor:wait_for_keys()
      check.equal(3, #server:sent(EDIT), 'the same is asked once')
      editor:type('x')
      wait_for_lines(editor, { 'one();', 'etch(1);', 'load(2);' })
      hold(editor, false)
      editor:rest()
      check.lacks(editor:screen(), 'loadfetch')
      check.equal(1, #server:sent('textDocument/didShowInlineEdit'))
    end,
  },
  {
    'while the edit that a key asked for is computed, a hint says so',
    function(home)
      local script = vim.tbl_extend('error', SCRIPT, { holds = true })
      local editor, server = open(home, 'long.txt', 'one();\nload(1);\n', script, BY_KEY)
      editor:press('i')
      editor:wait_for_mode('i')
      editor:press('M-n')
      server:wait_for(EDIT, 1)
      editor:wait_for('one();  computing a next edit…')
      hold(editor, false)
      editor:wait_for('loadfetch(1);')
      editor:wait_until_gone('computing')
      wait_for_cursor(editor, 2)
    end,
  },
  {
    'the server is told how the text was changed last',
    function(home)
      local editor, server = open(home, 'after.txt', 'a line of more than a few words\n', {})
      editor:type('x')
      wait_for_after(server, 1, 'typing')
      editor:type('u')
      wait_for_after(server, 2, 'undo')
      editor:type('yyp')
      wait_for_after(server, 3, 'paste')
      editor, server = open(home, 'accepted.txt', 'one\n', { answer = ' two' })
      editor:press('A')
      editor:wait_for('one two')
      editor:press('Tab')
      wait_for_after(server, 1, 'accept')
    end,
  },
  {
    'nothing is asked by itself while a text is selected, or in a snippet',
    function(home)
      local editor, server = open(home, 'busy.txt', '\nload(1);\n', SCRIPT)
      editor:type('v')
      editor:wait_for_mode('v')
      lua(editor, "require('hone.next_edit').changed()")
      editor:rest()
      editor:press('Escape')
      editor:wait_for_mode('n')
      editor:type('i')
      editor:wait_for_mode('i')
      lua(editor, "vim.snippet.expand('f($1, $2)')")
      editor:type('x')
      editor:wait_for_line(1, 'f(x, )')
      editor:rest()
      lua(editor, 'vim.snippet.stop()')
      editor:type('y')
      server:wait_for(EDIT, 1)
      check.equal(1, #server:sent(EDIT))
      check.equal(4, server:sent(EDIT)[1].params.position.character)
    end,
  },
  {
    'typing that agrees with an edit leaves the rest of it on screen, and the key makes that',
    function(home)
      local editor, server = open(home, 'agrees.txt', 'one();\nload(1);\n', SCRIPT)
      editor:type('x')
      editor:wait_for('loadfetch(1);')
      editor:press('M-n')
      wait_for_cursor(editor, 2)
      editor:type('cwfe')
      editor:wait_for_line(2, 'fe(1);')
      editor:wait_for('fetch(1);')
      editor:rest()
      check.equal(1, #server:sent(EDIT), 'it is not asked for anew')
      editor:press('M-n')
      wait_for_lines(editor, { 'ne();', 'fetch(1);' })
      server:wait_for('workspace/executeCommand', 1)
      local accepted = server:sent('workspace/executeCommand')[1].params
      check.equal({ command = 'hone.accept', arguments = { 'edit-1' } }, accepted)
    end,
  },
  {
    'typing that disagrees takes the edit away',
    function(home)
      local editor = open(home, 'other.txt', 'one();\nload(1);\n', SCRIPT, BY_KEY)
      editor:press('M-n')
      editor:wait_for('loadfetch(1);')
      editor:type('cwfe')
      editor:wait_for('fetch(1);')
      editor:type('x')
      editor:wait_until_gone('tch(1);')
      editor:wait_for_line(2, 'fex(1);')
    end,
  },
  {
    'a line that is deleted with the place of an edit takes the edit away',
    function(home)
      local text = 'one();\nload(1);\nend();\n'
      local editor = open(home, 'gone.txt', text, SCRIPT, BY_KEY)
      editor:press('M-n')
      editor:wait_for('loadfetch(1);')
      editor:type('dd')
      editor:wait_until_gone('fetch')
      wait_for_lines(editor, { 'one();', 'end();' })
    end,
  },
  {
    'who begins the lines that an edit inserts sees the rest of them',
    function(home)
      local script = { old = '', new = 'two();\nthree();\n' }
      for _, keys in ipairs({ { 'ko' }, { 'kA', 'Enter' } }) do
        local name = ('lines%d.txt'):format(#keys)
        local editor = open(home, name, 'one();\nend();\n', script, BY_KEY)
        editor:press('M-n')
        editor:wait_for('two();\nthree();\nend();')
        wait_for_cursor(editor, 2)
        editor:type(keys[1])
        if keys[2] then
          editor:press(keys[2])
        end
        editor:type('tw')
        editor:wait_for_line(2, 'tw')
        editor:wait_for('one();\ntwo();\nthree();\nend();')
        editor:press('M-n')
        wait_for_lines(editor, { 'one();', 'two();', 'three();', 'end();' })
      end
    end,
  },
  {
    'of a word that changes the whole is drawn, and lines that change are drawn as lines',
    function(home)
      local word = { old = 'g', new = 's' }
      local editor = open(home, 'word.txt', 'one();\nx.getUser();\n', word, BY_KEY)
      editor:press('M-n')
      editor:wait_for('x.getUsersetUser();')
      local lines = { old = 'load(1)', new = 'load(\n  1\n)' }
      editor = open(home, 'split.txt', 'one();\nload(1);\nend();\n', lines, BY_KEY)
      editor:press('M-n')
      editor:wait_for('load(1);\nload(\n  1\n);\nend();')
    end,
  },
  {
    'a buffer that cannot be changed gets no next edit',
    function(home)
      local editor, server = open(home, 'ro.txt', 'one();\nload(1);\n', SCRIPT)
      editor:type(':setlocal nomodifiable')
      editor:press('Enter')
      editor:press('M-n')
      editor:wait_for_keys()
      check.equal({}, server:sent(EDIT))
      check.equal({ 'one();', 'load(1);' }, editor:lines())
    end,
  },
}
