--- The `hone` program: where it is, how Neovim's LSP client runs it, and what happens when it ends.

local models = require('hone.models')
local notify = require('hone.notify')
local options = require('hone.options')
local program = require('hone.program')
local session = require('hone.session')
local status = require('hone.status')
local window = require('hone.window')

local M = {}

local NAME = 'hone'

--- A server that lived at least this long is restarted when it ends. If it ends sooner, something
--- is wrong, and the user is told. Tests do not wait for it.
M.RESTART_MIN_LIFE_MS = 10000

M.RESTART_AFTER_MS = 1000

--- The time between two looks whether what is missing has come. Tests do not wait for it.
M.LOOK_AGAIN_MS = 10000

--- The time between two looks whether a client has ended.
local CLIENT_POLL_MS = 20

local started_at_ms = 0

--- Whether the user asked for the server's end, and how often.
local stopping, ends = false, 0

--- What the user was told is wrong or missing, so that there is no server, and when it was looked
--- for last.
---@type { message: string, looked_at_ms: number }?
local missing

--- Whether it is being looked for, and whether the server was started before.
local looking, was_started = false, false

---@return string[] command line of the language server
local function configured()
  local cmd = options.current.cmd
  return type(cmd) == 'string' and { cmd, 'lsp' } or cmd --[[@as string[] ]]
end

--- Returns the program's full path, or nil and what the user can do. It is no error if a program
--- that the user has not named is not there yet.
---@return string? path, string? advice, boolean? is_error
function M.find()
  local named = vim.fs.normalize(configured()[1])
  local path, reason = program.find(named)
  if path then
    return path
  elseif reason == 'relative' then
    local message = 'option cmd: %s is relative to the current folder; name its full path'
    return nil, message:format(named), true
  elseif options.current.cmd == options.defaults.cmd then
    return nil, '`hone` is not in PATH; `:Hone setup` says how to install it', false
  end
  return nil, ('option cmd: %s cannot be run; correct the path'):format(named), true
end

--- Starts the language server for Neovim's LSP client. Throws what the user can do if there is no
--- program, because the client would search for its name in the current folder.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@param config vim.lsp.ClientConfig
---@return vim.lsp.rpc.PublicClient
local function spawn(dispatchers, config)
  local path, advice = M.find()
  if not path then
    error(advice, 0)
  end
  return vim.lsp.rpc.start({ path, unpack(configured(), 2) }, dispatchers, {
    cwd = config.cmd_cwd,
    env = config.cmd_env,
    detached = config.detached,
  })
end

--- Runs `hone` with arguments and calls back on the main loop.
---@param arguments string[]
---@param on_done fun(result: vim.SystemCompleted)
function M.run(arguments, on_done)
  local path, advice = M.find()
  if not path then
    notify.say(advice, vim.log.levels.ERROR)
    return
  end
  -- What it prints has the width of the window that shows it.
  local how = { text = true, env = { COLUMNS = tostring(window.columns()) } }
  vim.system({ path, unpack(arguments) }, how, vim.schedule_wrap(notify.guard(on_done)))
end

--- The line of the result that says what is wrong.
---@param result vim.SystemCompleted
function M.error_line(result)
  local line = vim.trim(result.stderr or ''):gsub('^Error: ', '')
  return line ~= '' and line or ('ended with code %d'):format(result.code)
end

--- Shows what `hone` printed, also if it failed.
---@param result vim.SystemCompleted
function M.say_result(result)
  if result.code == 0 then
    notify.say(vim.trim(result.stdout))
  else
    notify.say(M.error_line(result), vim.log.levels.ERROR)
  end
end

local function wanted(buf)
  local filetype = vim.bo[buf].filetype
  return vim.api.nvim_buf_get_name(buf) ~= ''
    and not vim.list_contains(options.current.exclude_filetypes, filetype)
end

--- Reports what is wrong or missing, and no second time if it is still the same.
---@param message string
---@param level? integer
local function tell_missing(message, level)
  if not missing or missing.message ~= message then
    notify.say(message, level)
  end
  missing = { message = message, looked_at_ms = vim.uv.now() }
end

--- Calls `on_well` unless a model or a setting is wrong or missing, of which the user is told.
---@param on_well fun()
local function look(on_well)
  if type(options.current.cmd) == 'table' then
    on_well()
    return
  end
  local before = ends
  M.run({ 'model', 'list', '--json' }, function(result)
    looking = false
    if ends ~= before then
      return
    end
    local problem = result.code ~= 0 and M.error_line(result) or models.problem(result.stdout)
    local needed = not problem and models.needed(models.parse(result.stdout))
    if problem then
      status.failed(problem)
      tell_missing(problem, vim.log.levels.ERROR)
    elseif needed then
      -- That a model is needed is no error.
      status.needs('a model')
      tell_missing(('a model is needed (%s); `:Hone setup` fetches it'):format(models.size(needed)))
    else
      missing = nil
      on_well()
    end
  end)
end

--- Whether the server's end was asked for: by `:Hone stop`, by `vim.lsp.enable('hone', false)`, or
--- by leaving Neovim. The first Neovims that the plugin supports cannot say what is enabled.
local function is_end_wanted()
  local is_enabled = vim.lsp.is_enabled
  return stopping or vim.v.exiting ~= vim.NIL or (is_enabled ~= nil and not is_enabled(NAME))
end

local function start_again()
  if not is_end_wanted() then
    M.start()
  end
end

local function on_exit(code)
  if is_end_wanted() then
    return
  end
  if vim.uv.now() - started_at_ms >= M.RESTART_MIN_LIFE_MS then
    vim.defer_fn(notify.guard(start_again), M.RESTART_AFTER_MS)
    return
  end
  look(function()
    local why = ('the server keeps ending (code %d); see `:Hone log`'):format(code)
    status.failed(why)
    notify.say(why .. '; then `:Hone enable`', vim.log.levels.ERROR)
  end)
end

--- The configuration for |vim.lsp.config()|.
---@return vim.lsp.Config
function M.config()
  return {
    cmd = spawn,
    -- One server serves all folders, because Hone knows files and no projects.
    root_dir = function(buf, on_dir)
      if wanted(buf) then
        on_dir(nil)
      end
    end,
    reuse_client = function(client, config)
      return client.name == config.name and not client:is_stopped()
    end,
    init_options = { didChangeStatus = true },
    handlers = {
      didChangeStatus = notify.guard(function(_, line)
        if status.changed(line) then
          session.ask_again()
        end
      end),
    },
    on_exit = vim.schedule_wrap(notify.guard(on_exit)),
  }
end

local function enable()
  was_started, stopping = true, false
  started_at_ms = vim.uv.now()
  vim.lsp.enable(NAME)
end

function M.start()
  missing = nil
  local path, advice, is_error = M.find()
  if not path and is_error then
    status.failed(advice)
    notify.say(advice, vim.log.levels.WARN)
    return
  elseif not path then
    status.needs('its program')
    notify.say(advice)
    return
  end
  -- The model is checked first, because a server that cannot start says why only in Neovim's log.
  look(enable)
end

--- Is called when insert mode begins. Starts the server if what was missing is there by now.
function M.look_again()
  if not missing or looking or (was_started and is_end_wanted()) then
    return
  end
  if vim.uv.now() - missing.looked_at_ms >= M.LOOK_AGAIN_MS and M.find() then
    missing.looked_at_ms, looking = vim.uv.now(), true
    if not pcall(look, enable) then
      -- The program may just be copied.
      looking = false
    end
  end
end

--- Calls `next` once Neovim has no client of the server any more. A new start would take one that
--- is about to end.
local function after_client(next)
  if M.client() then
    vim.defer_fn(function()
      after_client(next)
    end, CLIENT_POLL_MS)
  else
    next()
  end
end

--- Disconnects from the server and stops the daemon, which all editors share.
---@param next? fun() called once the daemon has ended; without it, a message is shown
function M.stop(next)
  stopping, missing, ends = true, nil, ends + 1
  vim.lsp.enable(NAME, false)
  status.stopped()
  M.run({ 'stop' }, function(result)
    if next and result.code == 0 then
      after_client(next)
    else
      M.say_result(result)
    end
  end)
end

---@return vim.lsp.Client?
function M.client()
  return vim.lsp.get_clients({ name = NAME })[1]
end

--- Calls back with the path of the daemon's log.
---@param on_file fun(file: string)
function M.log_file(on_file)
  M.run({ 'status', '--json' }, function(result)
    if result.code ~= 0 then
      M.say_result(result)
      return
    end
    on_file(vim.json.decode(result.stdout).paths.log)
  end)
end

return M
