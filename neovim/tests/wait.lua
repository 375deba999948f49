--- Waits for what a real editor and a real server do.

local M = {}

local TIMEOUT_MS = 30000
local POLL_MS = 40

--- Waits until `condition` returns something, and returns that.
function M.until_(what, condition, explain)
  local value
  local met = vim.wait(TIMEOUT_MS, function()
    value = condition()
    return value and true or false
  end, POLL_MS)
  if not met then
    error(('waited in vain for %s%s'):format(what, explain and '\n' .. explain() or ''), 2)
  end
  return value
end

--- Waits long enough for anything that would happen.
function M.settle()
  vim.wait(600)
end

return M
