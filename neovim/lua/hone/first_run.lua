--- `:Hone setup`: the first minute. It chooses a model, fetches it while the progress is shown,
--- starts the server, and opens a file in which the first Tab is pressed.

local models = require('hone.models')
local notify = require('hone.notify')
local scratch = require('hone.scratch')
local server = require('hone.server')

local M = {}

--- It fits a terminal of 80 columns.
local QUESTION = 'Which model? Code stays here; the network is used for the download alone'

--- The last entries of the list of models.
local OTHERS = '  another model: a larger one, or one whose size the hub has yet to tell'
local FROM_FILE = '  a file on this disk, where there is no network'

local INSTALL = 'to install `hone`, see https://github.com/hone-dev/hone'

--- Shows a line that the next one takes the place of.
local function show(text)
  vim.schedule(function()
    -- A question that was answered still stands there, and two lines would ask for a key.
    vim.cmd.redraw()
    vim.api.nvim_echo({ { 'hone: ' .. text } }, false, {})
  end)
end

local function try_it()
  local options = { prompt = 'Hone is ready: a file to try it in', format_item = function(one)
    return one.name
  end }
  vim.ui.select(scratch.for_filetype(vim.bo.filetype), options, function(one)
    if one then
      scratch.open(one)
    end
  end)
end

--- Serves the model from now on. A daemon serves one model, so another model needs another daemon.
local function use(name)
  server.run({ 'model', 'use', name }, function(used)
    if used.code ~= 0 then
      server.say_result(used)
      return
    end
    server.stop(function()
      require('hone').enable()
      try_it()
    end)
  end)
end

---@param path string of `hone`
---@param name string
local function pull(path, name)
  local take = models.progress(function(percent)
    show(('downloading %s: %d %%'):format(name, percent))
  end)
  show('downloading ' .. name)
  local options = { text = true, stdout = function(_, piece)
    take(piece)
  end }
  vim.system({ path, 'model', 'pull', name, '--json' }, options, vim.schedule_wrap(notify.guard(
    function(result)
      if result.code == 0 then
        use(name)
        return
      end
      -- The line names what was asked and by which way.
      local why = server.error_line(result)
      notify.say(why .. '; `:Hone setup` continues where it ended', vim.log.levels.ERROR)
    end
  )))
end

local function add()
  local options = { prompt = 'Hone: the file of the model: ', completion = 'file' }
  vim.ui.input(options, function(file)
    if not file or file == '' then
      return
    end
    show('comparing the checksum, and copying')
    server.run({ 'model', 'add', vim.fs.normalize(file), '--json' }, function(result)
      if result.code == 0 then
        use(vim.json.decode(result.stdout).name)
      else
        notify.say(server.error_line(result), vim.log.levels.ERROR)
      end
    end)
  end)
end

--- Shows `first`, and `others` to those who ask for another one: all of them fill more than a
--- terminal, and Neovim would ask for them page by page.
local function choose(path, first, others)
  local entries = vim.list_slice(first)
  if #others > 0 then
    table.insert(entries, OTHERS)
  end
  table.insert(entries, FROM_FILE)
  local options = { prompt = QUESTION, format_item = function(entry)
    return type(entry) == 'table' and models.line(entry) or entry
  end }
  vim.ui.select(entries, options, function(entry)
    if entry == FROM_FILE then
      add()
    elseif entry == OTHERS then
      choose(path, others, {})
    elseif entry and entry.present then
      use(entry.name)
    elseif entry then
      pull(path, entry.name)
    end
  end)
end

function M.start()
  local path = server.find()
  if not path then
    notify.say(INSTALL)
    return
  end
  server.run({ 'model', 'list', '--json' }, function(result)
    if result.code == 0 then
      choose(path, models.suggested(models.parse(result.stdout)))
    else
      server.say_result(result)
    end
  end)
end

return M
