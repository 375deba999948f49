--- Reads what `hone model` prints as JSON.

local M = {}

local MIB = 1024 * 1024

---@class hone.Model
---@field name string
---@field bytes integer
---@field licence string
---@field present boolean whether its file is on this machine
---@field path? string where its file is, if it is here
---@field configured boolean
---@field expected_line_ms? integer how long a line takes on two cores, by an estimate
---@field suggested? boolean whether to show it first; an older `hone` does not tell
---@field learns? boolean whether Hone learns on it

---@param text string what `hone model list --json` prints
---@return hone.Model[]
function M.parse(text)
  return vim.json.decode(text, { luanil = { object = true } }).models
end

--- Returns what is wrong with the settings, if anything is. A server takes no wrong ones.
---@param text string what `hone model list --json` prints
---@return string?
function M.problem(text)
  return vim.json.decode(text, { luanil = { object = true } }).problem
end

--- Those to choose from first, and all the others.
---@param all hone.Model[]
---@return hone.Model[], hone.Model[]
function M.suggested(all)
  local first, others = {}, {}
  for _, model in ipairs(all) do
    table.insert(model.suggested == false and others or first, model)
  end
  return first, others
end

--- Returns the model that is to serve.
---@param all hone.Model[]
---@return hone.Model?
function M.configured(all)
  for _, model in ipairs(all) do
    if model.configured then
      return model
    end
  end
end

--- Returns the model that is to serve, if its file is not here.
---@param all hone.Model[]
---@return hone.Model?
function M.needed(all)
  local model = M.configured(all)
  return model and not model.present and model or nil
end

---@param model hone.Model
function M.size(model)
  return ('%d MiB'):format(math.floor(model.bytes / MIB + 0.5))
end

--- One line for a list: what a user weighs before choosing.
---@param model hone.Model
function M.line(model)
  local parts = { M.size(model) }
  if model.expected_line_ms then
    table.insert(parts, ('about %.1f s a line'):format(model.expected_line_ms / 1000))
  end
  table.insert(parts, model.present and 'here' or 'not here yet')
  if model.learns == false then
    table.insert(parts, 'nothing is learned on it')
  end
  table.insert(parts, model.licence)
  local mark = model.configured and '→ ' or '  '
  return mark .. model.name .. ': ' .. table.concat(parts, ', ')
end

--- Returns a function that takes what `hone model pull --json` prints, in pieces as they come, and
--- calls back with each new whole percent.
---@param on_percent fun(percent: integer)
---@return fun(piece?: string)
function M.progress(on_percent)
  local rest, shown = '', 0
  return function(piece)
    local lines = vim.split(rest .. (piece or ''), '\n', { plain = true })
    rest = table.remove(lines)
    for _, line in ipairs(lines) do
      local ok, told = pcall(vim.json.decode, line)
      local total = ok and type(told) == 'table' and told.total or 0
      if total > 0 and told.bytes then
        local percent = math.floor(100 * told.bytes / total)
        if percent > shown then
          shown = percent
          on_percent(percent)
        end
      end
    end
  end
end

return M
