--- How programs are found, and the places that start one.

local check = require('check')
local programs = require('hone.program')

local SOURCES = vim.fs.joinpath(
  vim.fs.dirname(vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2)))),
  'lua'
)

--- The places that start a program, and how often. Each takes the full path that `server.find()`
--- returns, and a list of arguments that no shell reads. A new place needs the same.
local STARTS = {
  ['hone/commands.lua'] = { ['vim.fn.jobstart'] = 1 },
  ['hone/first_run.lua'] = { ['vim.system'] = 1 },
  ['hone/health.lua'] = { ['vim.system'] = 1 },
  ['hone/server.lua'] = { ['vim.lsp.rpc.start'] = 1, ['vim.system'] = 1 },
}

--- Everything in Neovim's Lua that starts a program or searches one.
local STARTERS = {
  'vim.system',
  'vim.fn.system',
  'vim.fn.jobstart',
  'vim.fn.termopen',
  'vim.fn.exepath',
  'vim.lsp.rpc.start',
  'uv.spawn',
  'loop.spawn',
  'io.popen',
  'os.execute',
  'vim.ui.open',
  'vim.cmd.terminal',
  'vim.cmd.make',
  'vim.cmd.grep',
}

--- Finds a program where these files can be run.
local function found(program, path, files, is_windows)
  local file, reason = programs.find(program, {
    path = path,
    is_windows = is_windows or false,
    is_executable = function(name)
      return vim.list_contains(files, name)
    end,
  })
  return file or reason
end

return {
  {
    'a program is searched in the absolute entries of PATH alone',
    function()
      check.equal('/usr/bin/hone', found('hone', '/bin:/usr/bin', { '/usr/bin/hone' }))
      local of_folder = { 'hone', './hone', 'bin/hone', '/hone' }
      check.equal('missing', found('hone', '.:bin::./', of_folder))
      check.equal('missing', found('hone', '', of_folder))
    end,
  },
  {
    'on Windows neither the current folder nor the current drive is searched',
    function()
      local right = [[C:\Program Files\hone/hone.exe]]
      local path = [[.;bin;\bin;C:bin;;"C:\Program Files\hone"]]
      local of_folder =
        { 'hone.exe', './hone.exe', 'bin/hone.exe', [[\bin/hone.exe]], 'C:bin/hone.exe' }
      check.equal('missing', found('hone', path, of_folder, true))
      check.equal(right, found('hone', path, vim.list_extend({ right }, of_folder), true))
      check.equal(right, found('hone.exe', path, { right }, true))
      local others = { [[C:\bin/hone]], [[C:\bin/hone.cmd]] }
      check.equal('missing', found('hone', [[C:\bin]], others, true))
    end,
  },
  {
    'a program that is named by its path needs its full path',
    function()
      check.equal('/opt/hone', found('/opt/hone', '/bin', { '/opt/hone' }))
      check.equal('missing', found('/opt/hone', '/bin', { '/bin/hone' }))
      check.equal('relative', found('./hone', '/bin', { './hone', '/bin/hone' }))
      check.equal('relative', found('bin/hone', '/bin', { 'bin/hone' }))
      check.equal('relative', found([[C:hone]], '', { 'C:hone.exe' }, true))
      check.equal('relative', found([[\hone]], '', { [[\hone.exe]] }, true))
      check.equal([[C:\hone.exe]], found([[C:\hone.exe]], '', { [[C:\hone.exe]] }, true))
    end,
  },
  {
    'this machine is searched too',
    function()
      check.equal('relative', select(2, programs.find('./sh')))
      check.equal(1, vim.fn.executable(assert(programs.find('sh'))))
    end,
  },
  {
    'only known places start a program',
    function()
      local starts = {}
      for name in vim.fs.dir(SOURCES, { depth = 3 }) do
        local path = vim.fs.joinpath(SOURCES, name)
        local source = vim.endswith(name, '.lua') and assert(io.open(path)):read('a') or ''
        for _, starter in ipairs(STARTERS) do
          local _, count = source:gsub(vim.pesc(starter) .. '[%s(]', '')
          if count > 0 then
            starts[name] = starts[name] or {}
            starts[name][starter] = count
          end
        end
      end
      check.equal(STARTS, starts)
    end,
  },
}
