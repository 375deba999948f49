--- Tests that need neither a screen nor a server.

local Pause = require('hone.pause')
local check = require('check')
local commands = require('hone.commands')
local models = require('hone.models')
local notify = require('hone.notify')
local offers = require('hone.offer')
local options = require('hone.options')
local scratch = require('hone.scratch')
local server = require('hone.server')
local undo = require('hone.undo')
local wait = require('wait')

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

--- Runs `run` while some fields are replaced, and puts them back.
---@param replaced { [1]: table, [2]: string, [3]: any }[]
local function with(replaced, run)
  local before = {}
  for at, one in ipairs(replaced) do
    local owner, name, instead = unpack(one)
    before[at] = rawget(owner, name)
    owner[name] = instead
  end
  local ok, trouble = pcall(run)
  for at, one in ipairs(replaced) do
    rawset(one[1], one[2], before[at])
  end
  assert(ok, trouble)
end

--- What `:Hone` runs for these words: where, and with which arguments.
local function ran(words)
  local found
  local function noted(where)
    return function(arguments)
      found = { where, table.concat(arguments, ' ') }
    end
  end
  local replaced = {
    { server, 'find', function()
      return 'hone'
    end },
    { server, 'run', noted('aside') },
    { vim.fn, 'jobstart', noted('terminal') },
    { notify, 'say', function(text)
      found = { 'said', text }
    end },
  }
  with(replaced, function()
    commands.create()
    vim.cmd('Hone ' .. words)
    vim.cmd('silent! only!')
  end)
  return found
end

--- How often the server is started again after it has ended.
local function starts_after_end(is_enabled)
  local starts, is_over = 0, false
  local replaced = {
    { vim.lsp, 'is_enabled', is_enabled },
    { server, 'start', function()
      starts = starts + 1
    end },
    { server, 'RESTART_MIN_LIFE_MS', 0 },
    { server, 'RESTART_AFTER_MS', 0 },
  }
  with(replaced, function()
    server.config().on_exit(0)
    -- It goes the same way as a start, and comes after it.
    vim.schedule(function()
      vim.defer_fn(function()
        is_over = true
      end, 0)
    end)
    assert(vim.wait(10000, function()
      return is_over
    end, 1))
  end)
  return starts
end

return {
  {
    'a command passes its arguments on, and what takes long runs in a terminal',
    function()
      local here, home = vim.fn.getcwd(), vim.uv.os_homedir()
      local expected = {
        ['history --author Ada'] = 'hone learn --history ' .. here .. ' --author Ada',
        ['rehearse --limit 9'] = 'hone rehearse --repo ' .. here .. ' --limit 9',
        ['rehearse --repo ~/a'] = 'hone rehearse --repo ' .. home .. '/a',
        ['forget --folder ~/a'] = 'hone forget --folder ' .. home .. '/a',
        ['learn --history'] = 'hone learn --history',
        ['learn --history=a'] = 'hone learn --history=a',
        ['model pull x'] = 'hone model pull x',
        ['model add ~/a.gguf'] = 'hone model add ' .. home .. '/a.gguf',
      }
      for words, command in pairs(expected) do
        check.equal({ 'terminal', command }, ran(words), words)
      end
      check.equal({ 'aside', 'model use x' }, ran('model use x'))
      check.equal({ 'aside', 'learn' }, ran('learn'))
      check.equal({ 'said', ':Hone stop takes no arguments' }, ran('stop now'))
    end,
  },
  {
    'a server that is enabled no more is not started again',
    function()
      check.equal(0, starts_after_end(function()
        return false
      end))
      check.equal(1, starts_after_end(function()
        return true
      end))
      check.equal(1, starts_after_end(nil), 'a Neovim that cannot say it')
    end,
  },
  {
    'a call that waits for its turn after its pause is taken back',
    function()
      local pause, calls, after = Pause.new(), {}, false
      local function call(name)
        return function()
          table.insert(calls, name)
        end
      end
      pause:start(0, call('stopped'))
      -- Time passes while nothing else has its turn.
      vim.uv.sleep(2)
      vim.uv.run('nowait')
      check.equal(true, pause:is_waiting())
      pause:stop()
      check.equal(false, pause:is_waiting())
      pause:start(0, call('replaced'))
      vim.uv.sleep(2)
      vim.uv.run('nowait')
      pause:start(0, call('meant'))
      wait.until_('the call that is meant', function()
        return not pause:is_waiting()
      end)
      vim.schedule(function()
        after = true
      end)
      wait.until_('what was scheduled before', function()
        return after
      end)
      check.equal({ 'meant' }, calls)
    end,
  },
  {
    'a step of undo begins, and the option has the values that it had',
    function()
      vim.cmd.enew()
      vim.go.undolevels, vim.bo.undolevels = 1000, 500
      vim.keymap.set('i', '<F2>', function()
        undo.start_step()
        vim.api.nvim_buf_set_text(0, 0, 2, 0, 2, { ' offered' })
      end, { buffer = true })
      vim.api.nvim_feedkeys(vim.keycode('iab<F2><Esc>'), 'tx', false)
      check.equal('ab offered', vim.api.nvim_get_current_line())
      vim.cmd('silent undo')
      check.equal('ab', vim.api.nvim_get_current_line())
      check.equal({ 1000, 500 }, { vim.go.undolevels, vim.bo.undolevels })
      vim.cmd('bwipeout!')
    end,
  },
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
      local function length(text, is_dos)
        return offers.utf16_length({ text = text .. 'rest', entered = #text, is_dos = is_dos })
      end
      check.equal({ 3, 2, 1 }, vim.tbl_map(length, { 'abc', '😀', 'ß' }))
      check.equal({ 5, 8 }, { length('a\n\nß\n'), length('a\nß\n\n', true) })
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
      check.equal('big', models.needed(all).name)
      check.equal('big', models.configured(all).name)
      all[1].present = true
      check.equal(nil, models.needed(all), 'the one that serves is here')
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
