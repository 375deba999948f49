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
  'learn',
  'model',
  'pause',
  'report',
  'resume',
  'status',
  'why',
}

--- Shows an answer of one line as a message, and a longer one in a window.
local function pass_on(arguments)
  server.run(arguments, function(result)
    local lines = vim.split(vim.trim(result.stdout), '\n')
    if result.code == 0 and #lines > 1 then
      window.show('hone ' .. table.concat(arguments, ' '), lines)
    else
      server.say_result(result)
    end
  end)
end

local function forget()
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

--- Runs a command of `hone` that takes long, in a terminal that shows how far it is.
local function in_terminal(arguments)
  local path, advice = server.find()
  if not path then
    error(advice, 0)
  end
  vim.cmd.new()
  vim.fn.jobstart(vim.list_extend({ path }, arguments), { term = true })
end

---@type table<string, fun()>
local own = {
  disable = function()
    require('hone').enable(false)
  end,
  enable = function()
    require('hone').enable()
  end,
  forget = forget,
  history = function()
    in_terminal({ 'learn', '--history', vim.fn.getcwd() })
  end,
  log = log,
  next = function()
    if not require('hone').next_edit() then
      notify.say('Hone does not run in this buffer', vim.log.levels.WARN)
    end
  end,
  rehearse = function()
    in_terminal({ 'rehearse', '--repo', vim.fn.getcwd() })
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
  local all = vim.list_extend(vim.tbl_keys(own), PASSED_ON)
  table.sort(all)
  return all
end

local function run(arguments)
  local name = arguments[1]
  if own[name] then
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
