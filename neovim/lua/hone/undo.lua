--- Steps of undo.

local M = {}

--- Starts a step of undo in the current buffer, so that one `u` takes back what follows alone.
---
--- Setting 'undolevels' does so even if the value stays as it is. Only the global value is set:
--- `let &undolevels = &undolevels` would give the global option the buffer's value, and take the
--- buffer's own value away.
function M.start_step()
  vim.cmd('let &g:undolevels = &g:undolevels')
end

return M
