--- The edge to the user: nothing of ours may throw while they type, and a
--- trouble is told once, not at every key.

local M = {}

---@param message string
---@param level? integer of vim.log.levels; INFO by default
function M.say(message, level)
  vim.schedule(function()
    vim.notify('hone: ' .. message, level or vim.log.levels.INFO)
  end)
end

---@param message string
---@param level? integer of vim.log.levels; ERROR by default
function M.once(message, level)
  vim.schedule(function()
    vim.notify_once('hone: ' .. message, level or vim.log.levels.ERROR)
  end)
end

--- A function that reports instead of throwing, and then returns nil.
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
