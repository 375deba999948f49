--- A call after a pause. What a timer calls is only scheduled once its time is over, so a stopped
--- timer alone would not take back a call that waits for its turn.

---@class hone.Pause
---@field private timer uv.uv_timer_t
---@field private waiting? table the call that is meant
local Pause = {}
Pause.__index = Pause

---@return hone.Pause
function Pause.new()
  return setmetatable({ timer = assert(vim.uv.new_timer()) }, Pause)
end

--- Runs `run` after so many milliseconds, instead of what it was to run before.
---@param ms integer
---@param run fun()
function Pause:start(ms, run)
  local this = {}
  self.waiting = this
  self.timer:start(ms, 0, vim.schedule_wrap(function()
    if self.waiting == this then
      self.waiting = nil
      run()
    end
  end))
end

function Pause:stop()
  self.timer:stop()
  self.waiting = nil
end

function Pause:is_waiting()
  return self.waiting ~= nil
end

return Pause
