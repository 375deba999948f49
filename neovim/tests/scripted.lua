--- A real Neovim whose server is `fake_server.lua`, and what it sent to that server.

local wait = require('wait')

local TESTS = vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2)))

---@class test.Scripted
---@field log string every message, a line of JSON each
local Scripted = {}
Scripted.__index = Scripted

--- Opens a file in a Neovim whose server answers as the script says.
---@param script table what `fake_server.lua` takes; it has a log and answers nothing by default
---@param init? string Lua that Neovim runs at its start
function Scripted.open(home, name, text, script, init)
  local log = ('%s/%s.log'):format(home.path, name)
  local options = vim.tbl_extend('keep', { log = log }, script, {
    answer = 'null',
    delay_ms = 0,
    replaces = 0,
  })
  local start = [[
    package.path = %q .. '/?.lua;' .. package.path
    require('fake_server').configure(vim.json.decode(%q))
  ]]
  local editor = home:edit(name, text, {
    init = start:format(TESTS, vim.json.encode(options)) .. (init or ''),
    ready = script.loads and 'hone loading the model' or 'hone scripted',
  })
  return editor, setmetatable({ log = log }, Scripted)
end

--- The messages of one kind, in order.
function Scripted:sent(method)
  local messages = {}
  for line in io.lines(self.log) do
    local message = vim.json.decode(line)
    if message.method == method then
      table.insert(messages, message)
    end
  end
  return messages
end

function Scripted:wait_for(method, count)
  wait.until_(('%d × %s'):format(count, method), function()
    return #self:sent(method) >= count
  end)
end

return Scripted
