--- What a user does with an offer in a real Neovim, with the real server and a real model, and the
--- label that the daemon logged for it. A wrong label would teach the wrong thing.

local check = require('check')
local wait = require('wait')

--- The model continues this with ` Thursday, Friday, …`.
local WEEK = '// Monday, Tuesday, Wednesday,'

local GHOST = WEEK .. ' Thursday, Friday'

local function kinds(offer)
  return vim.tbl_map(function(outcome)
    return outcome.kind
  end, offer.outcomes)
end

--- Opens a file whose first line the model continues, and waits for the offer.
---@return test.Editor
local function with_ghost(home, name, options)
  local editor = home:edit(name, WEEK .. '\n\nfn main() {}\n', options)
  editor:press('A')
  editor:wait_for(GHOST)
  check.equal(WEEK, editor:lines()[1], 'a ghost is not in the buffer')
  return editor
end

--- Checks that the file's first offer has this one outcome and was shown once, and that no offer of
--- the file has two outcomes.
local function outcome_is(home, editor, name, expected)
  local offer = home:first_outcome(name)
  wait.settle()
  editor:quit()
  for _, any in ipairs(home:offers(name)) do
    assert(#any.outcomes <= 1, 'two outcomes: ' .. vim.inspect(any))
  end
  offer = home:offers(name)[1]
  check.equal({ expected }, kinds(offer), name)
  check.equal(1, offer.shown, 'confirmed as shown')
  return offer
end

local stories = {
  {
    'Tab accepts',
    function(home)
      local editor = with_ghost(home, 'tab.rs')
      local text = home:offers('tab.rs')[1].text
      editor:press('Tab')
      wait.until_('the offer in the buffer', function()
        return editor:lines()[1] == WEEK .. text
      end)
      check.equal('i', editor:mode():sub(1, 1))
      check.equal(#WEEK + #text + 1, tonumber(editor:eval('col(".")')), 'the cursor is behind it')
      outcome_is(home, editor, 'tab.rs', 'accepted')
    end,
  },
  {
    'one undo removes what was accepted and keeps what was typed',
    function(home)
      local editor = with_ghost(home, 'undo.rs')
      editor:type(' T')
      editor:wait_for(GHOST)
      editor:press('Tab')
      wait.until_('the offer in the buffer', function()
        return #editor:lines()[1] > #WEEK + 2
      end)
      editor:press('Escape')
      editor:type('u')
      wait.until_('the typed text', function()
        return editor:lines()[1] == WEEK .. ' T'
      end)
      outcome_is(home, editor, 'undo.rs', 'accepted')
    end,
  },
  {
    'Escape rejects and leaves insert mode',
    function(home)
      local editor = with_ghost(home, 'esc.rs')
      editor:press('Escape')
      editor:wait_until_gone('Thursday')
      check.equal('n', editor:mode())
      local offer = outcome_is(home, editor, 'esc.rs', 'rejected_esc')
      check.equal('client_notice', offer.outcomes[1].evidence)
    end,
  },
  {
    'CTRL-C rejects too',
    function(home)
      local editor = with_ghost(home, 'ctrlc.rs')
      editor:press('C-c')
      editor:wait_until_gone('Thursday')
      outcome_is(home, editor, 'ctrlc.rs', 'rejected_esc')
    end,
  },
  {
    'CTRL-] rejects and stays in insert mode',
    function(home)
      local editor = with_ghost(home, 'dismiss.rs')
      editor:press('C-]')
      editor:wait_until_gone('Thursday')
      check.equal('i', editor:mode():sub(1, 1))
      check.equal(WEEK, editor:lines()[1])
      outcome_is(home, editor, 'dismiss.rs', 'rejected_esc')
    end,
  },
  {
    'typing another letter rejects',
    function(home)
      local editor = with_ghost(home, 'edit.rs')
      editor:type('x')
      editor:wait_until_gone('Thursday')
      outcome_is(home, editor, 'edit.rs', 'rejected_edit')
    end,
  },
  {
    'typing what the ghost says shortens it without a request',
    function(home)
      local editor = with_ghost(home, 'through.rs')
      local text = home:offers('through.rs')[1].text
      for at = 1, #text do
        editor:type(text:sub(at, at))
        if at < #text then
          editor:wait_for(WEEK .. text)
        end
      end
      local offer = outcome_is(home, editor, 'through.rs', 'typed_through')
      check.equal(#text, offer.outcomes[1].utf16)
    end,
  },
  {
    'an offer that is typed fast is typed through as well',
    function(home)
      local editor = with_ghost(home, 'fast.rs')
      editor:type(home:offers('fast.rs')[1].text)
      outcome_is(home, editor, 'fast.rs', 'typed_through')
    end,
  },
  {
    'deleting a letter brings the ghost back',
    function(home)
      local editor = with_ghost(home, 'back.rs')
      editor:type(' Thu')
      editor:press('BSpace')
      editor:press('BSpace')
      wait.settle()
      editor:wait_for(GHOST)
      check.equal(WEEK .. ' T', editor:lines()[1])
      check.equal(1, #home:offers('back.rs'), 'offers')
      editor:press('Tab')
      outcome_is(home, editor, 'back.rs', 'accepted')
    end,
  },
  {
    'an accepted word and then something else is a part',
    function(home)
      local editor = with_ghost(home, 'word.rs')
      editor:press('C-Right')
      wait.until_('the word in the buffer', function()
        return editor:lines()[1] == WEEK .. ' Thursday'
      end)
      editor:wait_for(GHOST)
      editor:type('#')
      local offer = outcome_is(home, editor, 'word.rs', 'partly_accepted')
      check.equal({ 9 }, offer.parts)
      check.equal(9, offer.outcomes[1].utf16)
    end,
  },
  {
    'an accepted word and then Escape is a part',
    function(home)
      local editor = with_ghost(home, 'wordesc.rs')
      editor:press('C-Right')
      wait.settle()
      editor:press('Escape')
      outcome_is(home, editor, 'wordesc.rs', 'partly_accepted')
    end,
  },
  {
    'typed a bit, then a word: the length counts from the start of the offer',
    function(home)
      local editor = with_ghost(home, 'typedword.rs')
      editor:type(' Th')
      editor:press('C-Right')
      wait.until_('the word in the buffer', function()
        return editor:lines()[1] == WEEK .. ' Thursday'
      end)
      editor:press('Escape')
      check.equal({ 9 }, outcome_is(home, editor, 'typedword.rs', 'partly_accepted').parts)
    end,
  },
  {
    'words to the end are an acceptance',
    function(home)
      local editor = with_ghost(home, 'words.rs')
      local text = home:offers('words.rs')[1].text
      wait.until_('the offer in the buffer', function()
        editor:press('C-Right')
        return editor:lines()[1] == WEEK .. text
      end)
      outcome_is(home, editor, 'words.rs', 'accepted')
    end,
  },
  {
    'an accepted line is all of a one-line offer',
    function(home)
      local editor = with_ghost(home, 'line.rs')
      editor:press('C-End')
      local offer = outcome_is(home, editor, 'line.rs', 'accepted')
      check.equal({}, offer.parts)
    end,
  },
  {
    'one normal-mode command in between is no rejection',
    function(home)
      local editor = with_ghost(home, 'ctrlo.rs')
      editor:press('C-o')
      editor:type('zz')
      editor:wait_for(GHOST)
      wait.settle()
      check.equal({ 'superseded' }, kinds(home:offers('ctrlo.rs')[1]))
      editor:press('Tab')
      wait.until_('the second offer is accepted', function()
        return vim.deep_equal({ 'accepted' }, kinds(home:offers('ctrlo.rs')[2]))
      end)
      editor:quit()
    end,
  },
  {
    'moving the cursor away is no rejection, nor is it ten seconds later',
    function(home)
      local editor = with_ghost(home, 'left.rs')
      editor:press('Left')
      outcome_is(home, editor, 'left.rs', 'superseded')
    end,
  },
  {
    'after characters beyond ASCII, counted in UTF-8',
    function(home)
      local line = '// 😀ß Monday, Tuesday, Wednesday,'
      local editor = home:edit('utf8.rs', line .. '\n')
      editor:press('A')
      editor:wait_for('Thursday')
      check.contains(editor:eval('luaeval("vim.lsp.get_clients()[1].offset_encoding")'), 'utf-8')
      editor:press('C-Right')
      editor:press('Tab')
      local offer = outcome_is(home, editor, 'utf8.rs', 'accepted')
      check.equal({ 9 }, offer.parts)
    end,
  },
  {
    'after characters beyond ASCII, counted in UTF-16',
    function(home)
      local line = '// 😀ß Monday, Tuesday, Wednesday,'
      local editor = home:edit('utf16.rs', line .. '\n', {
        init = [[vim.lsp.config('hone', {
          capabilities = { general = { positionEncodings = { 'utf-16' } } } })]],
      })
      editor:press('A')
      editor:wait_for(line .. ' Thursday')
      check.contains(editor:eval('luaeval("vim.lsp.get_clients()[1].offset_encoding")'), 'utf-16')
      local text = home:offers('utf16.rs')[1].text
      editor:press('C-Right')
      editor:press('Tab')
      wait.until_('the offer in the buffer', function()
        return editor:lines()[1] == line .. text
      end)
      check.equal({ 9 }, outcome_is(home, editor, 'utf16.rs', 'accepted').parts)
    end,
  },
  {
    'without a ghost Tab is a tab',
    function(home)
      local editor = home:edit('plain.txt', '')
      editor:press('i')
      editor:press('Tab')
      editor:type('x')
      wait.until_('a tab in the buffer', function()
        return editor:lines()[1] == '\tx'
      end)
    end,
  },
  {
    'without a ghost Tab does what the user mapped it to, with a ghost it accepts',
    function(home)
      local maps = [[
        vim.keymap.set('i', '<Tab>', function() return '[global]' end, { expr = true })
        vim.api.nvim_create_autocmd('BufEnter', { pattern = '*.py', callback = function()
          vim.keymap.set('i', '<Tab>', '[local]', { buffer = true })
        end })
      ]]
      for name, mapped in pairs({ ['global.rs'] = '[global]', ['local.py'] = '[local]' }) do
        local editor = home:edit(name, '\n' .. WEEK .. '\n', { init = maps })
        editor:press('i')
        editor:press('Tab')
        editor:press('Escape')
        wait.until_('the mapping to act', function()
          return editor:lines()[1] == mapped
        end, function()
          return editor:screen()
        end)
        editor:type('jA')
        editor:wait_for(GHOST)
        editor:press('Tab')
        wait.until_('the offer in the buffer', function()
          return vim.startswith(editor:lines()[2], GHOST)
        end)
      end
    end,
  },
  {
    'disable hides the ghost and stops requests, and toggle brings it back',
    function(home)
      local editor = home:edit('off.rs', WEEK .. '\n')
      editor:type(':Hone disable')
      editor:press('Enter')
      editor:wait_for('hone off')
      editor:press('A')
      wait.settle()
      check.lacks(editor:screen(), 'Thursday')
      check.equal({}, home:offers('off.rs'))
      editor:press('Escape')
      editor:type(':Hone toggle')
      editor:press('Enter')
      editor:press('A')
      editor:wait_for(GHOST)
    end,
  },
  {
    'switched off in one buffer',
    function(home)
      local init = "vim.cmd('autocmd BufEnter * let b:hone_enabled = v:false')"
      local editor = home:edit('bufferoff.rs', WEEK .. '\n', { init = init })
      editor:press('A')
      wait.settle()
      check.lacks(editor:screen(), 'Thursday')
      check.equal({}, home:offers('bufferoff.rs'))
    end,
  },
  {
    'it can be set up long after the start, as a plugin manager may do',
    function(home)
      -- The test's entry in 'runtimepath' is removed before Neovim looks for plugins.
      local init = [[
        local plugin = vim.opt.rtp:get()[#vim.opt.rtp:get()]
        vim.opt.rtp:remove(plugin)
        vim.o.statusline = 'bare'
        vim.keymap.set('n', 'L', function()
          vim.opt.rtp:append(plugin)
          require('hone').setup({ keymaps = { accept = '<C-y>' } })
          vim.o.statusline = "%{v:lua.require'hone'.statusline()}"
        end)
      ]]
      local editor = home:edit('lazy.rs', WEEK .. '\n', { init = init, ready = 'bare' })
      check.equal('0', vim.trim(editor:eval('exists(":Hone")')))
      editor:type('L')
      editor:wait_for('hone smollm2')
      check.equal('2', vim.trim(editor:eval('exists(":Hone")')))
      editor:press('A')
      editor:wait_for(GHOST)
      editor:press('C-y')
      outcome_is(home, editor, 'lazy.rs', 'accepted')
    end,
  },
  {
    'the commands show what hone prints',
    function(home)
      local editor = home:edit('commands.rs', WEEK .. '\n')
      editor:type(':Hone status')
      editor:press('Enter')
      editor:wait_for('smollm2-135m (llama)')
      editor:press('q')
      editor:wait_until_gone('smollm2-135m (llama)')
      editor:type(':Hone log')
      editor:press('Enter')
      wait.until_('the log', function()
        return editor:eval('expand("%:t")'):find('daemon.log', 1, true)
      end)
      editor:type(':Hone nonsense')
      editor:press('Enter')
      editor:wait_for('there is no command nonsense; there are adapter, config, disable')
    end,
  },
  {
    'pause and config reach the server, and the answer is shown',
    function(home)
      local editor = home:edit('pause.rs', WEEK .. '\n')
      local function say(command, answer)
        editor:type(':Hone ' .. command)
        editor:press('Enter')
        editor:wait_for(answer)
      end
      say('config set completion.max_tokens 9', 'completion.max_tokens = 9')
      check.equal('9', vim.trim(home:hone('config', 'get', 'completion.max_tokens', '--json')))
      say('config set completion.max_tokens 8', 'completion.max_tokens = 8')
      say('resume', 'learning goes on')
      say('pause', 'learning is paused')
      editor:wait_for('learning paused')
      say('adapter list', 'nothing learned yet')
    end,
  },
  {
    'a file is forgotten after a question',
    function(home)
      local editor = with_ghost(home, 'forget.rs')
      editor:press('Tab')
      wait.until_('a label', function()
        return home:offers('forget.rs')[1].outcomes[1]
      end)
      editor:press('Escape')
      for _, key in ipairs({ 'c', 'f' }) do
        -- After the acceptance more may have been offered, which does not matter here.
        assert(home:offers('forget.rs')[1], 'the offers are still there')
        editor:type(':Hone forget')
        editor:press('Enter')
        editor:wait_for('(F)orget')
        editor:type(key)
        wait.settle()
      end
      wait.until_('nothing is known of it', function()
        return #home:offers('forget.rs') == 0
      end)
    end,
  },
  {
    'another of several offers is shown and accepted, and it alone gets a verdict',
    function(home)
      local editor = with_ghost(home, 'another.rs')
      editor:press('M-]')
      local another = wait.until_('another offer', function()
        return home:offers('another.rs')[2]
      end)
      editor:wait_for(WEEK .. another.text)
      editor:press('Tab')
      -- An offer to an invoked request may have several lines.
      local whole = vim.split(WEEK .. another.text, '\n')
      wait.until_('it in the buffer', function()
        return vim.deep_equal(whole, vim.list_slice(editor:lines(), 1, #whole))
      end)
      wait.until_('a label', function()
        return home:offers('another.rs')[2].outcomes[1]
      end)
      local found = vim.tbl_map(kinds, home:offers('another.rs'))
      check.equal({ 'accepted' }, found[2])
      check.lacks(vim.inspect(found[1]), 'rejected')
    end,
  },
  {
    'an invoked request brings an offer also where suggestions are off',
    function(home)
      local init = "vim.cmd('autocmd BufEnter * let b:hone_enabled = v:false')"
      local editor = home:edit('byhand.rs', WEEK .. '\n', { init = init })
      editor:press('A')
      wait.settle()
      check.lacks(editor:screen(), 'Thursday')
      editor:press('M-\\')
      editor:wait_for(GHOST)
      editor:press('Tab')
      outcome_is(home, editor, 'byhand.rs', 'accepted')
    end,
  },
  {
    'restart brings another daemon',
    function(home)
      local editor = home:edit('restart.rs', WEEK .. '\n')
      local function pid()
        local daemon = vim.json.decode(home:hone('status', '--json')).daemon
        return type(daemon) == 'table' and daemon.pid
      end
      local before = pid()
      editor:type(':Hone restart')
      editor:press('Enter')
      wait.until_('another daemon', function()
        local ok, now = pcall(pid)
        return ok and now and now ~= before
      end)
      editor:press('A')
      editor:wait_for(GHOST)
    end,
  },
  {
    'stop ends the daemon, enable starts it again',
    function(home)
      local editor = home:edit('stop.rs', WEEK .. '\n')
      editor:type(':Hone stop')
      editor:press('Enter')
      editor:wait_for('hone stopped')
      editor:wait_for('hone: stopped')
      editor:press('A')
      editor:type(' x')
      editor:press('BSpace')
      editor:press('BSpace')
      editor:press('Escape')
      editor:type(':Hone enable')
      editor:press('Enter')
      editor:wait_for('hone smollm2')
      editor:press('A')
      editor:wait_for(GHOST)
      editor:press('Tab')
      outcome_is(home, editor, 'stop.rs', 'accepted')
    end,
  },
  {
    'a server that had run for a while and ended is restarted',
    function(home)
      local editor = home:edit('again.rs', WEEK .. '\n')
      vim.wait(10500)
      home:hone('stop')
      editor:press('A')
      editor:wait_for(GHOST)
      check.equal('', vim.trim(editor:messages()))
    end,
  },
  {
    'a missing program is reported once, with the fix, and typing continues',
    function(home)
      local editor = home:edit('missing.rs', WEEK .. '\n', {
        init = [[require('hone').setup({ cmd = '/nowhere/hone' })]],
        ready = '/nowhere/hone cannot be run',
      })
      editor:press('A')
      editor:type(' x')
      editor:press('Tab')
      editor:press('Escape')
      wait.settle()
      check.equal(WEEK .. ' x    ', editor:lines()[1])
      local _, told = editor:messages():gsub('/nowhere/hone', '')
      check.equal(1, told, 'notices')
    end,
  },
  {
    'a missing model is reported with the command that downloads it',
    function(home)
      local empty = home.path .. '/empty'
      vim.fn.mkdir(empty, 'p')
      local editor = home:edit('nomodel.rs', WEEK .. '\n', {
        env = { HONE_HOME = empty },
        ready = 'hone model pull',
      })
      editor:press('Enter')
      check.contains(editor:messages(), 'run `hone model pull qwen2.5-coder-0.5b`')
    end,
  },
  {
    'a wrong option is reported',
    function(home)
      local editor = home:edit('option.rs', WEEK .. '\n', {
        init = [[require('hone').setup({ debouncems = 10 })]],
        ready = 'unknown option debouncems; there are cmd',
      })
      editor:press('Enter')
      editor:press('A')
      editor:wait_for(GHOST)
    end,
  },
  {
    ':checkhealth hone finds nothing wrong',
    function(home)
      local editor = home:edit('health.rs', WEEK .. '\n')
      editor:type(':checkhealth hone')
      editor:press('Enter')
      local report = wait.until_('the report', function()
        local lines = table.concat(editor:lines(), '\n')
        return lines:find('accept_word: <C-Right>', 1, true) and lines
      end)
      check.lacks(report, 'ERROR')
      check.lacks(report, 'WARNING')
      check.contains(report, 'model: ')
      check.contains(report, 'serves 1 buffer(s), positions in utf-8')
    end,
  },
  {
    'two windows of one file and another file: the ghost stays with its cursor',
    function(home)
      local editor = with_ghost(home, 'windows.rs')
      editor:press('Escape')
      editor:type(':split | edit ' .. home.path .. '/project/other.rs')
      editor:press('Enter')
      editor:type('i// one, two, three,')
      editor:wait_for('three, four')
      check.lacks(editor:screen(), 'Thursday')
      editor:press('Tab')
      outcome_is(home, editor, 'windows.rs', 'rejected_esc')
      check.equal({ 'accepted' }, kinds(home:offers('other.rs')[1]))
    end,
  },
  {
    ':Hone setup chooses a model and opens a file in which the first Tab is pressed',
    function(home)
      local editor = home:edit('setup.py', '\n')
      editor:type(':Hone setup')
      editor:press('Enter')
      editor:wait_for('Which model?')
      local screen = editor:screen()
      check.contains(screen, '94 MiB, about 0.1 s a line, here')
      check.contains(screen, 'a file on this disk')
      check.contains(screen, 'another model')
      local number = screen:match('(%d+): → smollm2')
      editor:type(assert(number, screen))
      editor:press('Enter')
      editor:wait_for('a file to try it in')
      editor:wait_for('1: Python')
      editor:type('1')
      editor:press('Enter')
      editor:wait_for('return a - b')
      check.equal('    return', editor:lines()[8])
      editor:press('Tab')
      wait.until_('the offer in the buffer', function()
        return editor:lines()[8] == '    return a - b'
      end)
      editor:quit()
    end,
  },
  {
    ':Hone setup takes a model from a file, and says what is wrong with one that is none',
    function(home)
      local file = home.path .. '/project/other.gguf'
      vim.fn.writefile({ 'no model' }, file)
      local editor = home:edit('setup.rs', '\n')
      editor:type(':Hone setup')
      editor:press('Enter')
      editor:wait_for('Which model?')
      editor:type(assert(editor:screen():match('(%d+):   a file on this disk')))
      editor:press('Enter')
      editor:wait_for('the file of the model:')
      editor:type(file)
      editor:press('Enter')
      editor:wait_for('other.gguf: no known model has 9 bytes')
      -- The message is longer than the line.
      editor:press('Enter')
      editor:quit()
    end,
  },
}

if vim.lsp.inline_completion then
  vim.list_extend(stories, {
    {
      "the built-in client's own get() accepts, typed a bit before or not",
      function(home)
        local init = "vim.keymap.set('i', '<C-y>', function() vim.lsp.inline_completion.get() end)"
        local editor = with_ghost(home, 'get.rs', { init = init })
        local text = home:offers('get.rs')[1].text
        -- The built-in client makes its first request 200 ms after it starts in a buffer.
        wait.settle()
        editor:type(' Th')
        editor:press('C-y')
        wait.until_('the offer in the buffer', function()
          return editor:lines()[1] == WEEK .. text
        end)
        outcome_is(home, editor, 'get.rs', 'accepted')
      end,
    },
    {
      'inline completion switched off is off',
      function(home)
        local editor = with_ghost(home, 'builtinoff.rs')
        editor:press('Escape')
        editor:type(':lua vim.lsp.inline_completion.enable(false, { bufnr = 0 })')
        editor:press('Enter')
        editor:press('A')
        wait.settle()
        check.lacks(editor:screen(), 'Thursday')
        check.equal('', vim.trim(editor:messages()))
        outcome_is(home, editor, 'builtinoff.rs', 'rejected_esc')
      end,
    },
  })
end

return stories
