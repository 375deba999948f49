--- Messages to the user. Hone must not throw an error while the user types, and it reports a
--- problem once and not at every key.

local M = {}

---@param message string
---@param level? integer one of vim.log.levels; INFO by default
function M.say(message, level)
  vim.schedule(function()
    vim.notify('hone: ' .. message, level or vim.log.levels.INFO)
  end)
end

---@param message string
---@param level? integer one of vim.log.levels; ERROR by default
function M.once(message, level)
  vim.schedule(function()
    vim.notify_once('hone: ' .. message, level or vim.log.levels.ERROR)
  end)
end

--- Wraps a function so that it reports an error and returns nil instead of throwing.
---@generic F: function
---@param f F
---@return F
function M.guard(f)
  return function(...)
    local ok, result = pcall(f, ...)
    if ok then
      return result
    end
    M.once(tostring(result))
  end
end

return M
