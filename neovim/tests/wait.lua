--- Waits for what a real editor and a real server do.

local M = {}

local TIMEOUT_MS = 30000
local POLL_MS = 40

--- Waits until `condition` returns something, and returns that.
---@param explain? fun(): string
---@param poll_ms? integer
function M.until_(what, condition, explain, poll_ms)
  local value
  local met = vim.wait(TIMEOUT_MS, function()
    value = condition()
    return value and true or false
  end, poll_ms or POLL_MS)
  if not met then
    error(('waited in vain for %s%s'):format(what, explain and '\n' .. explain() or ''), 2)
  end
  return value
end

return M
