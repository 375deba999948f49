--- What a user does with an offer in a real Neovim, with the real server and a real model, and the
--- label that the daemon logged for it. A wrong label would teach the wrong thing.

local check = require('check')
local ghost = require('ghost')
local wait = require('wait')

local WEEK, GHOST = ghost.WEEK, ghost.GHOST
local with_ghost, outcome_is = ghost.with_ghost, ghost.outcome_is

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
      editor:wait_for_line(1, WEEK .. ' T')
      editor:rest()
      editor:wait_for(GHOST)
      check.equal(1, #home:recorded('back.rs'), 'offers')
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
      editor:wait_for_line(1, WEEK .. ' Thursday')
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
      wait.until_('the second offer on the screen', function()
        local second = home:offers('ctrlo.rs')[2]
        return second and second.shown == 1
      end)
      check.equal({ 'superseded' }, ghost.kinds(home:offers('ctrlo.rs')[1]))
      editor:press('Tab')
      wait.until_('the second offer is accepted', function()
        return vim.deep_equal({ 'accepted' }, ghost.kinds(home:offers('ctrlo.rs')[2]))
      end)
      editor:quit()
      home:wait_for_no_session()
      check.equal({ 'superseded' }, ghost.kinds(home:recorded('ctrlo.rs')[1]))
    end,
  },
  {
    'moving the cursor away is no rejection, nor is it ten seconds later',
    function(home)
      local editor = with_ghost(home, 'left.rs')
      editor:press('Left')
      home:first_outcome('left.rs')
      home:advance_clock(10500)
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
      home:first_offer('utf16.rs')
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
}

if vim.lsp.inline_completion then
  vim.list_extend(stories, {
    {
      "the built-in client's own get() accepts, typed a bit before or not",
      function(home)
        local editor = with_ghost(home, 'get.rs')
        local text = home:offers('get.rs')[1].text
        editor:type(' Th')
        editor:wait_for_line(1, WEEK .. ' Th')
        -- The built-in client knows no offer before its first request, which comes after a pause.
        wait.until_('an offer for get()', function()
          return editor:eval([[luaeval('vim.lsp.inline_completion.get()')]]):find('true', 1, true)
        end)
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
        editor:wait_for_mode('i')
        editor:rest()
        check.lacks(editor:screen(), 'Thursday')
        check.equal('', vim.trim(editor:messages()))
        outcome_is(home, editor, 'builtinoff.rs', 'rejected_esc')
      end,
    },
  })
end

return stories
