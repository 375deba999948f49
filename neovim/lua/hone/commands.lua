--- The command `:Hone`. Some of its subcommands concern this Neovim; the others are passed on to
--- `hone`.

local notify = require('hone.notify')
local server = require('hone.server')
local window = require('hone.window')

local M = {}

--- Commands of `hone` that print text. They are passed on with their arguments.
local PASSED_ON = {
  'adapter',
  'config',
  'doctor',
  'learn',
  'model',
  'pause',
  'report',
  'resume',
  'status',
  'why',
}

--- Commands that take long, such as a download.
local LONG = {
  learn = { '--history' },
  model = { 'add', 'pull' },
}

--- Does to an argument what a shell would do: `~/` begins at the home folder. `%` alone is this
--- buffer's file.
local function expand(argument)
  if argument == '%' then
    return vim.api.nvim_buf_get_name(0)
  end
  local is_at_home = vim.startswith(argument, '~/')
  return is_at_home and vim.uv.os_homedir() .. argument:sub(2) or argument
end

--- Runs a command of `hone` in a terminal. There one sees how far it is, and can answer it.
local function in_terminal(arguments)
  local path, advice = server.find()
  if not path then
    error(advice, 0)
  end
  local command = vim.list_extend({ path }, vim.tbl_map(expand, arguments))
  vim.cmd.new()
  vim.fn.jobstart(command, { term = true })
end

local function takes_long(arguments)
  local words = LONG[arguments[1]] or {}
  return vim.iter(arguments):skip(1):any(function(argument)
    -- An option may have its value behind a `=`.
    return vim.list_contains(words, (argument:gsub('=.*', '')))
  end)
end

--- The lines of a text. The blanks before the first one are part of a table.
local function lines_of(text)
  return vim.split((text:gsub('%s+$', '')), '\n')
end

--- Shows an answer of one line as a message, and a longer one in a window, with what explains it
--- below. A command that takes long gets a terminal.
local function pass_on(arguments)
  if takes_long(arguments) then
    in_terminal(arguments)
    return
  end
  server.run(arguments, function(result)
    local lines = lines_of(result.stdout)
    -- The doctor fails if it finds something, after it has said what.
    if #lines > 1 then
      if vim.trim(result.stderr) ~= '' then
        vim.list_extend(lines, { '', unpack(lines_of(result.stderr)) })
      end
      window.show('hone ' .. table.concat(arguments, ' '), lines)
    else
      server.say_result(result)
    end
  end)
end

--- Forgets what the arguments name, after a question of `hone` itself.
local function forget_named(arguments)
  in_terminal(vim.list_extend({ 'forget' }, arguments))
  vim.cmd.startinsert()
end

--- Forgets this buffer's file after a question, or what the arguments name.
local function forget(arguments)
  if #arguments > 0 then
    forget_named(arguments)
    return
  end
  local file = vim.api.nvim_buf_get_name(0)
  if file == '' then
    notify.say('this buffer has no file', vim.log.levels.ERROR)
    return
  end
  local question = 'Forget what Hone recorded about %s, and every adapter that learned from it?'
  if vim.fn.confirm(question:format(file), '&Forget\n&Cancel', 2, 'Warning') == 1 then
    server.run({ 'forget', '--file', file, '--yes' }, server.say_result)
  end
end

local function log()
  server.log_file(function(file)
    if vim.uv.fs_stat(file) then
      vim.cmd.sview(vim.fn.fnameescape(file))
    else
      local message = file .. ' does not exist yet; the daemon writes it once it runs'
      notify.say(message, vim.log.levels.WARN)
    end
  end)
end

local function history(arguments)
  in_terminal(vim.list_extend({ 'learn', '--history', vim.fn.getcwd() }, arguments))
end

--- Rehearses on the current folder's repository, unless the arguments name others.
local function rehearse(arguments)
  local names_repository = vim.iter(arguments):any(function(argument)
    return vim.startswith(argument, '--repo')
  end)
  local where = names_repository and {} or { '--repo', vim.fn.getcwd() }
  in_terminal(vim.iter({ 'rehearse', where, arguments }):flatten():totable())
end

--- Those of this Neovim's commands that take arguments. They get what follows the name.
---@type table<string, fun(arguments: string[])>
local with_arguments = { forget = forget, history = history, rehearse = rehearse }

---@type table<string, fun()>
local own = {
  disable = function()
    require('hone').enable(false)
  end,
  enable = function()
    require('hone').enable()
  end,
  log = log,
  next = function()
    if not require('hone').next_edit() then
      notify.say('Hone does not run in this buffer', vim.log.levels.WARN)
    end
  end,
  restart = function()
    server.stop(server.start)
  end,
  setup = function()
    require('hone.first_run').start()
  end,
  stop = function()
    server.stop()
  end,
  toggle = function()
    local hone = require('hone')
    hone.enable(not hone.is_enabled())
  end,
}

local function names()
  local all = vim.iter({ vim.tbl_keys(own), vim.tbl_keys(with_arguments), PASSED_ON })
  all = all:flatten():totable()
  table.sort(all)
  return all
end

local function run(arguments)
  local name = arguments[1]
  if with_arguments[name] then
    with_arguments[name](vim.list_slice(arguments, 2))
  elseif own[name] and #arguments > 1 then
    error((':Hone %s takes no arguments'):format(name), 0)
  elseif own[name] then
    own[name]()
  elseif vim.list_contains(PASSED_ON, name) then
    pass_on(arguments)
  else
    error(('there is no command %s; there are %s'):format(name, table.concat(names(), ', ')), 0)
  end
end

function M.create()
  vim.api.nvim_create_user_command('Hone', function(command)
    local ok, trouble = pcall(run, command.fargs)
    if not ok then
      notify.say(trouble, vim.log.levels.ERROR)
    end
  end, {
    nargs = '+',
    desc = 'Hone: ' .. table.concat(names(), ', '),
    complete = function(lead, line)
      -- Only `hone` knows what may follow the name.
      local is_name = not line:find('Hone%s+%S+%s')
      return is_name and vim.tbl_filter(function(name)
        return vim.startswith(name, lead)
      end, names()) or {}
    end,
  })
end

return M
