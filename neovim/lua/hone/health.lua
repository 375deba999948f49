--- The checks of `:checkhealth hone`.

local models = require('hone.models')
local options = require('hone.options')
local server = require('hone.server')
local health = vim.health

local M = {}

--- Longest wait for a `hone` command. These commands only read files or ask the daemon.
local TIMEOUT_MS = 5000

local function run(path, ...)
  return vim.system({ path, ... }, { text = true, timeout = TIMEOUT_MS }):wait()
end

local function check_neovim()
  health.start('hone: Neovim')
  if vim.fn.has('nvim-0.11') == 0 then
    health.error('Neovim 0.11 or newer is needed', 'Install a newer Neovim')
    return false
  end
  if vim.lsp.inline_completion then
    health.ok('suggestions are part of the built-in vim.lsp.inline_completion')
  else
    health.ok("suggestions are Hone's own virtual text (Neovim 0.11)")
  end
  return true
end

---@return string? path
local function check_program()
  health.start('hone: server')
  local path, advice = server.find()
  if not path then
    health.error(advice)
    return
  end
  local version = run(path, '--version')
  if version.code ~= 0 then
    health.error(('%s: %s'):format(path, server.error_line(version)))
    return
  end
  health.ok(('%s (%s)'):format(vim.trim(version.stdout), path))
  return path
end

local function check_model(path)
  local listed = run(path, 'model', 'list', '--json')
  if listed.code ~= 0 then
    health.error('model: ' .. server.error_line(listed))
    return
  end
  local model = models.configured(models.parse(listed.stdout))
  if not model then
    health.error('model: ' .. (models.problem(listed.stdout) or 'none is configured'))
  elseif model.path then
    health.ok('model: ' .. model.path)
  else
    health.error(('model: %s is not here'):format(model.name), '`:Hone setup` fetches it')
  end
end

local function check_status(path)
  local result = run(path, 'status', '--json')
  local ok, status = pcall(vim.json.decode, result.stdout, { luanil = { object = true } })
  if result.code ~= 0 or not ok then
    health.error('status: ' .. server.error_line(result))
    return
  end
  for _, problem in ipairs(status.settings_problems or {}) do
    health.error('settings: ' .. problem)
  end
  if status.daemon then
    local daemon = 'daemon: pid %d, %d editor session(s)'
    health.ok(daemon:format(status.daemon.pid, status.daemon.sessions))
  else
    health.info('daemon: not running; an editor starts it')
  end
  local learner = status.learner
  local progress = 'learning: %s, %d of %d labels until the next update'
  health.info(progress:format(learner.state, learner.waiting, learner.batch))
  if learner.last_error then
    health.warn('learning: ' .. learner.last_error, '`:Hone log` says more')
  end
end

local function check_clients()
  health.start('hone: this session')
  local client = server.client()
  if not client then
    local advice = 'Open a file with a file type; use `:Hone enable` if Hone was stopped'
    health.warn('no buffer uses Hone yet', advice)
    return
  end
  local buffers = vim.tbl_count(client.attached_buffers)
  health.ok(('serves %d buffer(s), positions in %s'):format(buffers, client.offset_encoding))
  if not require('hone').is_enabled() then
    health.info('suggestions are off: `:Hone enable`')
  end
end

local function check_keys()
  local names = vim.tbl_keys(options.current.keymaps)
  table.sort(names)
  for _, name in ipairs(names) do
    health.info(('%s: %s'):format(name, options.current.keymaps[name] or 'no key'))
  end
end

function M.check()
  if not check_neovim() then
    return
  end
  local path = check_program()
  if path then
    check_model(path)
    check_status(path)
  end
  check_clients()
  check_keys()
end

return M
