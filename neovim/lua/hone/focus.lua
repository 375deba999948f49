--- Tells the server where the cursor came to rest. The model can then read the surrounding code
--- before the first request comes.

local Pause = require('hone.pause')
local session = require('hone.session')
local api = vim.api

local M = {}

local METHOD = 'textDocument/didFocus'

--- A cursor that only passes through a line does not rest there.
local RESTS_MS = 250

local pause = Pause.new()

local function tell()
  local buf = api.nvim_get_current_buf()
  local client = vim.lsp.get_clients({ bufnr = buf, name = 'hone' })[1]
  if client and session.wanted(buf) then
    client:notify(METHOD, vim.lsp.util.make_position_params(0, client.offset_encoding))
  end
end

--- Is called when the cursor moved or another window became current.
function M.moved()
  pause:start(RESTS_MS, tell)
end

return M
