--- `:Hone status|learn|stop|log|enable|disable|toggle`

local notify = require('hone.notify')
local server = require('hone.server')
local window = require('hone.window')

local M = {}

---@type table<string, fun()>
local subcommands = {
  status = function()
    server.run({ 'status' }, function(result)
      if result.code == 0 then
        window.show('Hone', vim.split(vim.trim(result.stdout), '\n'))
      else
        server.say_result(result)
      end
    end)
  end,
  learn = function()
    server.run({ 'learn' }, server.say_result)
  end,
  stop = server.stop,
  log = function()
    local file = server.log_file()
    if vim.uv.fs_stat(file) then
      vim.cmd.sview(vim.fn.fnameescape(file))
    else
      notify.say(file .. ': no log yet; the daemon writes it once it runs', vim.log.levels.WARN)
    end
  end,
  enable = function()
    require('hone').enable()
  end,
  disable = function()
    require('hone').enable(false)
  end,
  toggle = function()
    local hone = require('hone')
    hone.enable(not hone.is_enabled())
  end,
}

local function names()
  local all = vim.tbl_keys(subcommands)
  table.sort(all)
  return all
end

function M.create()
  vim.api.nvim_create_user_command('Hone', function(command)
    local run = subcommands[command.args]
    if run then
      notify.guard(run)()
    else
      local known = table.concat(names(), ', ')
      notify.say(('no command %s; known: %s'):format(command.args, known), vim.log.levels.ERROR)
    end
  end, {
    nargs = 1,
    desc = 'Hone: status, learn, stop, log, enable, disable, toggle',
    complete = function(lead)
      return vim.tbl_filter(function(name)
        return vim.startswith(name, lead)
      end, names())
    end,
  })
end

return M
