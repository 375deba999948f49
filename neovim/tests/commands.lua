--- The commands of `:Hone`, and what happens around the server in a real Neovim: it is switched
--- off, restarted, missing or set up.

local Editor = require('editor')
local Home = require('home')
local check = require('check')
local ghost = require('ghost')
local mirror = require('mirror')
local wait = require('wait')

local WEEK, GHOST = ghost.WEEK, ghost.GHOST
local with_ghost, outcome_is = ghost.with_ghost, ghost.outcome_is

return {
  {
    'disable hides the ghost and stops requests, and toggle brings it back',
    function(home)
      local editor = home:edit('off.rs', WEEK .. '\n')
      editor:type(':Hone disable')
      editor:press('Enter')
      editor:wait_for('hone off')
      editor:press('A')
      editor:wait_for_mode('i')
      editor:rest()
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
      editor:wait_for_mode('i')
      editor:rest()
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
      -- `hone` breaks lines where the window ends, but no path.
      local long = [[filter(getline(1, '$'), 'strdisplaywidth(v:val) > winwidth(0)')]]
      local words = [[len(filter(%s, 'v:val !~ "/"'))]]
      check.equal('0', vim.trim(editor:eval(words:format(long))))
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
      editor:type(':Hone doctor')
      editor:press('Enter')
      editor:wait_for('hone doctor')
      editor:press('q')
      editor:type(':Hone model list')
      editor:press('Enter')
      editor:wait_for('   name ')
      editor:type('G')
      editor:wait_for('checksum')
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
      say('config set lab.max_tokens 9', 'lab.max_tokens = 9')
      check.equal('9', vim.trim(home:hone('config', 'get', 'lab.max_tokens', '--json')))
      say('config set lab.max_tokens 8', 'lab.max_tokens = 8')
      say('resume', 'learning continues')
      say('pause', 'learning is paused')
      editor:wait_for('learning paused')
      say('adapter', 'nothing learned yet')
    end,
  },
  {
    'a file is forgotten after a question',
    function(home)
      local editor = with_ghost(home, 'forget.rs')
      editor:press('Tab')
      home:first_outcome('forget.rs')
      editor:press('Escape')
      for _, key in ipairs({ 'c', 'f' }) do
        -- After the acceptance more may have been offered, which does not matter here.
        assert(home:recorded('forget.rs')[1], 'the offers are still there')
        editor:type(':Hone forget')
        editor:press('Enter')
        editor:wait_for('(F)orget')
        editor:type(key)
        editor:wait_until_gone('(F)orget')
      end
      editor:wait_for('forgotten: ')
      check.equal({}, home:recorded('forget.rs'))
    end,
  },
  {
    'a folder is forgotten in a terminal, where hone asks',
    function(home)
      -- Next edits are not looked for in what was forgotten, so the folder is of this test alone.
      vim.fn.mkdir(home.path .. '/project/private', 'p')
      local name = 'private/folder.rs'
      local editor = with_ghost(home, name)
      editor:press('Tab')
      home:first_outcome(name)
      editor:press('Escape')
      editor:type(':Hone forget --folder ' .. home.path .. '/project/private')
      editor:press('Enter')
      editor:wait_for('This cannot be undone.')
      assert(home:recorded(name)[1], 'it asks first')
      editor:type('y')
      editor:press('Enter')
      editor:wait_for('forgotten: ')
      check.equal({}, home:recorded(name))
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
      local found = vim.tbl_map(ghost.kinds, home:offers('another.rs'))
      check.equal({ 'accepted' }, found[2])
      -- A slow machine may need more than ten seconds to make other offers.
      for _, kind in ipairs(found[1]) do
        assert(vim.tbl_contains({ 'superseded', 'unseen', 'rejected_timeout' }, kind), kind)
      end
    end,
  },
  {
    'an invoked request brings an offer also where suggestions are off',
    function(home)
      local init = "vim.cmd('autocmd BufEnter * let b:hone_enabled = v:false')"
      local editor = home:edit('byhand.rs', WEEK .. '\n', { init = init })
      editor:press('A')
      editor:wait_for_mode('i')
      editor:rest()
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
      local init = [[require('hone.server').RESTART_MIN_LIFE_MS = 0]]
      local editor = home:edit('again.rs', WEEK .. '\n', { init = init })
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
      editor:wait_for_line(1, WEEK .. ' x    ')
      local _, told = editor:messages():gsub('/nowhere/hone', '')
      check.equal(1, told, 'notices')
    end,
  },
  {
    'a missing model is no error: one line says its size and how to fetch it',
    function(home)
      local empty = home.path .. '/empty'
      vim.fn.mkdir(empty, 'p')
      local editor = home:edit('nomodel.rs', WEEK .. '\n', {
        columns = Editor.USUAL_COLUMNS,
        env = { HONE_HOME = empty },
        ready = 'hone needs a model',
      })
      local line = 'hone: a model is needed (469 MiB); `:Hone setup` fetches it'
      editor:wait_for(line)
      check.equal(line, vim.trim(editor:messages()))
      editor:press('A')
      editor:type('x')
      editor:wait_for_line(1, WEEK .. 'x')
    end,
  },
  {
    'once a setting and a model are repaired, the next insert mode brings the server',
    function(home)
      local late = home.path .. '/late'
      vim.fn.mkdir(late .. '/models', 'p')
      local function configure(config)
        vim.fn.writefile(vim.split(config, '\n'), late .. '/config.toml')
      end
      configure('lab.max_tokens = 0')
      local editor = home:edit('late.rs', WEEK .. '\n', {
        init = [[require('hone.server').LOOK_AGAIN_MS = 0]],
        env = { HONE_HOME = late },
        ready = 'lab.max_tokens must be from 1 to 128',
      })
      local function insert()
        editor:press('Escape')
        editor:wait_for_mode('n')
        editor:press('A')
        editor:wait_for_mode('i')
      end
      -- The message is longer than the line.
      editor:press('Enter')
      insert()
      -- The time for an answer begins before the model is in memory.
      configure(Home.CONFIG .. 'budget_ms = 60000')
      wait.until_('the setting to be looked at again', function()
        insert()
        return editor:screen():find('hone needs a model', 1, true)
      end)
      local name = 'SmolLM2-135M-Instruct.Q4_1.gguf'
      local there, here = home.path .. '/models/' .. name, late .. '/models/' .. name
      for served = 1, 2 do
        insert()
        assert(vim.uv.fs_symlink(assert(vim.uv.fs_realpath(there)), here))
        wait.until_('the model to be looked for again', function()
          insert()
          return not editor:screen():find('hone needs a model', 1, true)
        end)
        editor:wait_for(GHOST)
        for told, times in pairs({ ['from 1 to 128'] = 1, ['a model is needed'] = served }) do
          local _, found = editor:messages():gsub(vim.pesc(told), '')
          check.equal(times, found, told)
        end
        if served == 1 then
          -- The server ends, and there is no model any more.
          assert(vim.uv.fs_unlink(here))
          home.hone({ env = vim.tbl_extend('force', home.env, { HONE_HOME = late }) }, 'stop')
          editor:wait_for('hone needs a model')
        end
      end
      editor:press('Escape')
      editor:type(':Hone stop')
      editor:press('Enter')
      editor:wait_for('hone: stopped')
    end,
  },
  {
    'a program that is not there is no error: one line says how to install it',
    function(home)
      local editor = home:edit('noprogram.rs', WEEK .. '\n', {
        columns = Editor.USUAL_COLUMNS,
        env = { PATH = '/usr/bin:/bin' },
        ready = 'hone needs its program',
      })
      local line = 'hone: `hone` is not in PATH; `:Hone setup` says how to install it'
      editor:wait_for(line)
      check.equal(line, vim.trim(editor:messages()))
      editor:type(':Hone setup')
      editor:press('Enter')
      editor:wait_for('hone: to install `hone`, see https://github.com/hone-dev/hone')
      -- A message that waited for a key would take this one.
      editor:press('A')
      editor:type('x')
      editor:wait_for_line(1, WEEK .. 'x')
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
      check.equal({ 'accepted' }, ghost.kinds(home:first_outcome('other.rs')))
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
      editor:wait_for('Hone is ready: a file to try it in')
      editor:wait_for('1: Python')
      editor:type('1')
      editor:press('Enter')
      editor:wait_for('return a - b')
      check.equal('    return', editor:lines()[8])
      editor:press('Tab')
      editor:wait_for_line(8, '    return a - b')
      -- Nothing keeps a user from leaving.
      editor:press('Escape')
      editor:type(':qa')
      editor:press('Enter')
      editor:wait_for_end()
    end,
  },
  {
    ':Hone setup fetches the model that is missing, and then everything is ready',
    function(home)
      local hub = mirror.of(vim.env.HONE_MODELS)
      local empty = home.path .. '/fetched'
      vim.fn.mkdir(empty, 'p')
      -- The time for an answer begins before the model is in memory.
      local config = Home.CONFIG .. 'budget_ms = 60000'
      vim.fn.writefile(vim.split(config, '\n'), empty .. '/config.toml')
      local editor = home:edit('fetched.py', '\n', {
        columns = Editor.USUAL_COLUMNS,
        env = { HONE_HOME = empty, HF_ENDPOINT = hub.url },
        ready = 'hone: a model is needed (94 MiB); `:Hone setup` fetches it',
      })
      editor:type(':Hone setup')
      editor:press('Enter')
      editor:wait_for('94 MiB, about 0.1 s a line, not here yet')
      editor:type(assert(editor:screen():match('(%d+): → smollm2')))
      editor:press('Enter')
      editor:wait_for('Hone is ready: a file to try it in')
      hub.close()
      editor:type('1')
      editor:press('Enter')
      editor:wait_for('return a - b')
      editor:wait_for('hone smollm2')
      editor:press('Escape')
      editor:type(':Hone stop')
      editor:press('Enter')
      editor:wait_for('hone: stopped')
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
