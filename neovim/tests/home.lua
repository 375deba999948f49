--- A temporary HONE_HOME with the small model, and the editors that use it.

local Editor = require('editor')
local wait = require('wait')

local Home = {}
Home.__index = Home

Home.CONFIG = [[
[model]
name = "smollm2-135m"
threads = 1
[learning]
enabled = false
[gate]
enabled = false
[lab]
max_tokens = 8
min_token_probability = 0
trial = false
# A batch is larger than all tests make labels, so that no update disturbs the test that resumes
# learning.
batch_episodes = 1000
]]

--- Longest wait for a command of `hone`.
local COMMAND_TIMEOUT_MS = 10000

--- How often the daemon is asked how many editors it has.
local SESSIONS_POLL_MS = 200

local REMOVE_TIMEOUT_MS = 3000
local REMOVE_RETRY_MS = 200

local function write(path, text)
  local file = assert(io.open(path, 'w'))
  file:write(text)
  file:close()
end

function Home.create()
  -- The path is short, because a Unix socket lies in it.
  local path = assert(vim.uv.fs_mkdtemp(vim.uv.os_tmpdir() .. '/hone-nvim-XXXXXX'))
  local self = setmetatable({ path = path, editors = {}, events = {} }, Home)
  vim.fn.mkdir(path .. '/models', 'p')
  vim.fn.mkdir(path .. '/project', 'p')
  for name in vim.fs.dir(vim.env.HONE_MODELS) do
    local model = vim.fs.joinpath(vim.fs.abspath(vim.env.HONE_MODELS), name)
    assert(vim.uv.fs_symlink(model, path .. '/models/' .. name))
  end
  write(path .. '/config.toml', Home.CONFIG)
  self.env = {
    HONE_HOME = path,
    HONE_CLOCK = 'movable',
    PATH = vim.fs.abspath(vim.env.HONE_BIN) .. ':' .. vim.env.PATH,
  }
  self:follow()
  return self
end

local function program()
  return vim.fs.joinpath(vim.fs.abspath(vim.env.HONE_BIN), 'hone')
end

--- Reads the daemon's log as it is written.
function Home:follow()
  local rest = ''
  local function take(_, piece)
    local lines = vim.split(rest .. (piece or ''), '\n', { plain = true })
    rest = table.remove(lines)
    for _, line in ipairs(lines) do
      table.insert(self.events, vim.json.decode(line))
    end
  end
  local command = { program(), 'events', '--follow', '--json', '--with-code' }
  self.follower = vim.system(command, { env = self.env, stdout = take })
end

--- Runs `hone` and returns what it prints.
function Home:hone(...)
  local options = { text = true, env = self.env, timeout = COMMAND_TIMEOUT_MS }
  local result = vim.system({ program(), ... }, options):wait()
  assert(result.code == 0, ('hone %s: %s'):format(table.concat({ ... }, ' '), result.stderr))
  return result.stdout
end

---@class test.EditorOptions
---@field init? string Lua that Neovim runs at its start
---@field ready? string what the screen shows once it is ready
---@field env? table<string, string>
---@field columns? integer

--- Opens a file in a new Neovim and waits until the server is ready.
---@param name string the file's name, by which its offers are found
---@param text string
---@param options? test.EditorOptions
function Home:edit(name, text, options)
  local file = ('%s/project/%s'):format(self.path, name)
  write(file, text)
  options = options or {}
  local editor = Editor.open(self, file, options)
  table.insert(self.editors, editor)
  editor:wait_for(options.ready or 'hone smollm2')
  return editor
end

---@class test.Offer
---@field id string
---@field text string
---@field shown integer how often the client confirmed that it was shown
---@field parts integer[] UTF-16 lengths reported as partly accepted
---@field outcomes { kind: string, utf16?: integer, evidence: string }[]

---@param path string
---@return test.Offer[]
local function offers_in(events, path)
  local offers, by_id = {}, {}
  for _, event in ipairs(events) do
    if event.event == 'completion' and event.path == path and event.shown ~= '' then
      local offer = { id = event.id, text = event.shown, shown = 0, parts = {}, outcomes = {} }
      table.insert(offers, offer)
      by_id[event.id] = offer
    end
    local offer = by_id[event.id]
    if offer and event.event == 'shown' then
      offer.shown = offer.shown + 1
    elseif offer and event.event == 'partly_accepted' then
      table.insert(offer.parts, event.accepted_utf16)
    elseif offer and event.event == 'outcome' then
      local outcome = vim.tbl_extend('force', event.outcome, { evidence = event.evidence })
      table.insert(offer.outcomes, outcome)
    end
  end
  return offers
end

--- The offers in a file, in order, as far as they were logged by now. What was just done may be
--- missing.
---@return test.Offer[]
function Home:offers(name)
  return offers_in(self.events, self.path .. '/project/' .. name)
end

--- The offers in a file that are in the log now: all that the daemon knows of, and none that were
--- forgotten. This starts a process, so it is no look to be repeated.
---@return test.Offer[]
function Home:recorded(name)
  local events = {}
  local log = self:hone('events', '--json', '--with-code')
  for line in vim.gsplit(log, '\n', { trimempty = true }) do
    table.insert(events, vim.json.decode(line))
  end
  return offers_in(events, self.path .. '/project/' .. name)
end

--- What became of the next edits in a file, in order, as the daemon logged it.
---@return string[]
function Home:next_edit_outcomes(name)
  local path = ('%s/project/%s'):format(self.path, name)
  local is_there, outcomes = {}, {}
  for _, event in ipairs(self.events) do
    if event.event == 'next_edit' and event.path == path then
      is_there[event.id] = true
    elseif event.event == 'next_edit_outcome' and is_there[event.id] then
      table.insert(outcomes, event.outcome)
    end
  end
  return outcomes
end

--- Waits until the file has an offer, and returns it.
---@return test.Offer
function Home:first_offer(name)
  return wait.until_(('an offer in %s'):format(name), function()
    return self:offers(name)[1]
  end)
end

--- Moves the daemon's clock ahead.
function Home:advance_clock(ms)
  self:hone('advance-clock', tostring(ms))
end

--- Waits until the daemon has seen every editor end. What they reported is in the log by then.
function Home:wait_for_no_session()
  wait.until_('the end of all sessions', function()
    local daemon = vim.json.decode(self:hone('status', '--json')).daemon
    return type(daemon) ~= 'table' or daemon.sessions == 0
  end, nil, SESSIONS_POLL_MS)
end

--- Waits until the file's first offer has its outcome, and returns the offer.
---@return test.Offer
function Home:first_outcome(name)
  return wait.until_(('an outcome in %s'):format(name), function()
    local first = self:offers(name)[1]
    return first and first.outcomes[1] and first
  end)
end

function Home:close_editors()
  for _, editor in ipairs(self.editors) do
    editor:kill()
  end
  self.editors = {}
end

function Home:remove()
  self.follower:kill('sigterm')
  pcall(self.hone, self, 'stop')
  -- Programs that are about to end may still write.
  vim.wait(REMOVE_TIMEOUT_MS, function()
    vim.fn.delete(self.path, 'rf')
    return not vim.uv.fs_stat(self.path)
  end, REMOVE_RETRY_MS)
end

return Home
