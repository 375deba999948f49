--- The painter for Neovim 0.11, which has no inline completion. It draws virtual text only.

local virtual = require('hone.painter.virtual')
local api = vim.api

local M = {}

local namespace = api.nvim_create_namespace('hone.ghost')

function M.attach() end

function M.detach() end

function M.is_enabled()
  return true
end

function M.request(client, ...)
  return client:request(...)
end

---@param offer hone.Offer
function M.draw(offer)
  virtual.draw(offer, namespace)
end

function M.clear(buf)
  virtual.clear(buf, namespace)
end

return M
