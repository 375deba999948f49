--- What the status line shows. It comes from the server's notification `didChangeStatus`.

local notify = require('hone.notify')

local M = {}

---@class hone.StatusLine what the server sends
---@field busy boolean
---@field kind 'Normal'|'Warning'|'Error'
---@field message string

---@type hone.StatusLine?
local line

local function set(new)
  line = new
  vim.cmd.redrawstatus({ bang = true })
end

--- The message of a server whose model is not in memory yet.
local LOADING = 'loading the model'

---@param new hone.StatusLine
---@return boolean whether a model that was being loaded is in memory now
function M.changed(new)
  local was_loading = line ~= nil and line.busy and line.message == LOADING
  set(new)
  if new.kind ~= 'Normal' then
    local level = new.kind == 'Error' and vim.log.levels.ERROR or vim.log.levels.WARN
    notify.once(new.message, level)
  end
  return was_loading and new.message ~= LOADING and new.kind == 'Normal'
end

--- Is called when the server cannot run.
function M.failed(why)
  set({ busy = false, kind = 'Error', message = why })
end

--- Is called when something is not there yet, which is no error.
---@param what string
function M.needs(what)
  set({ busy = false, kind = 'Normal', message = 'needs ' .. what })
end

function M.stopped()
  set({ busy = false, kind = 'Normal', message = 'stopped' })
end

--- A few words, or '' before the server reported anything.
---@param enabled boolean
---@return string
function M.text(enabled)
  if not line then
    return ''
  elseif line.kind ~= 'Normal' then
    return 'hone! ' .. line.message
  elseif not enabled then
    return 'hone off'
  end
  return 'hone ' .. line.message .. (line.busy and '…' or '')
end

return M
