--- A temporary HONE_HOME with the small model, and the editors that use it.

local Editor = require('editor')
local wait = require('wait')

local Home = {}
Home.__index = Home

local CONFIG = [[
[model]
name = "smollm2-135m"
threads = 1
[completion]
max_tokens = 8
min_probability = 0
[gate]
enabled = false
[learning]
enabled = false
trial = false
# A batch is larger than all tests make labels, so that no update disturbs the test that resumes
# learning.
batch_episodes = 1000
]]

--- Longest wait for a command of `hone`.
local COMMAND_TIMEOUT_MS = 10000

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
  local self = setmetatable({ path = path, editors = {} }, Home)
  vim.fn.mkdir(path .. '/models', 'p')
  vim.fn.mkdir(path .. '/project', 'p')
  for name in vim.fs.dir(vim.env.HONE_MODELS) do
    local model = vim.fs.joinpath(vim.fs.abspath(vim.env.HONE_MODELS), name)
    assert(vim.uv.fs_symlink(model, path .. '/models/' .. name))
  end
  write(path .. '/config.toml', CONFIG)
  self.env = {
    HONE_HOME = path,
    PATH = vim.fs.abspath(vim.env.HONE_BIN) .. ':' .. vim.env.PATH,
  }
  return self
end

--- Runs `hone` and returns what it prints.
function Home:hone(...)
  local program = vim.fs.joinpath(vim.fs.abspath(vim.env.HONE_BIN), 'hone')
  local options = { text = true, env = self.env, timeout = COMMAND_TIMEOUT_MS }
  local result = vim.system({ program, ... }, options):wait()
  assert(result.code == 0, ('hone %s: %s'):format(table.concat({ ... }, ' '), result.stderr))
  return result.stdout
end

--- Opens a file in a new Neovim and waits until the server is ready.
---@param name string the file's name, by which its offers are found
---@param text string
---@param options? { init?: string, ready?: string, env?: table<string, string> }
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

--- The offers in a file, in order, as the daemon logged them.
---@return test.Offer[]
function Home:offers(name)
  local path = ('%s/project/%s'):format(self.path, name)
  local offers, by_id = {}, {}
  local log = self:hone('events', '--json', '--with-code')
  for line in vim.gsplit(log, '\n', { trimempty = true }) do
    local event = vim.json.decode(line)
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

--- What became of the next edits in a file, in order, as the daemon logged it.
---@return string[]
function Home:next_edit_outcomes(name)
  local path = ('%s/project/%s'):format(self.path, name)
  local is_there, outcomes = {}, {}
  for line in vim.gsplit(self:hone('events', '--json'), '\n', { trimempty = true }) do
    local event = vim.json.decode(line)
    if event.event == 'next_edit' and event.path == path then
      is_there[event.id] = true
    elseif event.event == 'next_edit_outcome' and is_there[event.id] then
      table.insert(outcomes, event.outcome)
    end
  end
  return outcomes
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
  pcall(self.hone, self, 'stop')
  -- Programs that are about to end may still write.
  vim.wait(REMOVE_TIMEOUT_MS, function()
    vim.fn.delete(self.path, 'rf')
    return not vim.uv.fs_stat(self.path)
  end, REMOVE_RETRY_MS)
end

return Home
