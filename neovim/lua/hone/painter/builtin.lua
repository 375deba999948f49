--- Draws through Neovim 0.12's `vim.lsp.inline_completion`.
---
--- The built-in client asks 200 ms after a key, never cancels, keeps a stale
--- ghost, and tells the server nothing of what became of it. So its requests
--- end here: the first one brings the handler that draws in its buffer, and from
--- then on that handler is given what Hone's own session knows to be current.
--- `vim.lsp.inline_completion.get()` keeps working, on the right range.

local notify = require('hone.notify')
local offers = require('hone.offer')
local virtual = require('hone.painter.virtual')
local api = vim.api

local M = {}

local METHOD = 'textDocument/inlineCompletion'

--- Where the built-in client draws; looked at to know what is on screen.
local namespace = api.nvim_create_namespace('nvim.lsp.inline_completion')

--- The highlight group it draws in.
local HIGHLIGHT = 'ComplHint'

---@type table<integer, lsp.Handler> by buffer
local handlers = {}

--- What is drawn, by buffer.
---@type table<integer, hone.Offer>
local drawn = {}

--- `Client:request` as it was, by client id.
---@type table<integer, function>
local requests = {}

--- Called with a buffer once its handler is known.
local on_ready

--- The built-in client takes text after the cursor that the offer begins with for
--- typed, and draws the offer behind it: `a,| b` with ` c,` looks like `a, c,b`.
local function repair(buf)
  local offer = drawn[buf]
  local mark = offer and api.nvim_buf_get_extmarks(buf, namespace, 0, -1, { limit = 1 })[1]
  local row, col = unpack(api.nvim_win_get_cursor(0))
  if mark and (mark[2] ~= row - 1 or mark[3] ~= col) then
    api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    virtual.draw(offer, namespace, HIGHLIGHT)
  end
end

---@param ready fun(buf: integer)
function M.setup(ready)
  on_ready = ready
end

function M.attach(client, buf)
  if not requests[client.id] then
    requests[client.id] = client.request
    client.request = function(self, method, params, handler, bufnr)
      if method ~= METHOD then
        return requests[client.id](self, method, params, handler, bufnr)
      end
      local asked = (bufnr == nil or bufnr == 0) and api.nvim_get_current_buf() or bufnr
      handlers[asked] = handler
      on_ready(asked)
      return true
    end
  end
  vim.lsp.inline_completion.enable(true, { bufnr = buf })
  -- Made after the built-in client's own, so that they come after it.
  api.nvim_create_autocmd({ 'CursorMovedI', 'TextChangedP' }, {
    group = api.nvim_create_augroup(('hone.repair:%d'):format(buf), { clear = true }),
    buffer = buf,
    callback = notify.guard(function()
      repair(buf)
    end),
  })
  if buf == api.nvim_get_current_buf() and vim.startswith(api.nvim_get_mode().mode, 'i') then
    -- It asks at a key; one that began typing before the server was there waits for it.
    local group = ('nvim.lsp.inline_completion:%d'):format(buf)
    pcall(api.nvim_exec_autocmds, 'CursorMovedI', { group = group, buffer = buf })
  end
end

function M.detach(buf)
  handlers[buf], drawn[buf] = nil, nil
  pcall(api.nvim_del_augroup_by_name, ('hone.repair:%d'):format(buf))
  if api.nvim_buf_is_valid(buf) then
    vim.lsp.inline_completion.enable(false, { bufnr = buf })
  end
end

function M.is_enabled(buf)
  return vim.lsp.inline_completion.is_enabled({ bufnr = buf })
end

function M.request(client, ...)
  return requests[client.id](client, ...)
end

local function give(buf, client_id, items)
  local context = { method = METHOD, client_id = client_id, bufnr = buf }
  handlers[buf](nil, { items = items }, context)
end

---@param offer hone.Offer
---@return boolean shown
function M.draw(offer)
  if not handlers[offer.buf] then
    return false
  end
  local cursor = vim.lsp.util.make_position_params(0, offer.client.offset_encoding).position
  give(offer.buf, offer.client.id, {
    {
      insertText = offers.rest(offer),
      range = { start = cursor, ['end'] = cursor },
      command = offer.item.command,
    },
  })
  drawn[offer.buf] = offer
  repair(offer.buf)
  return #api.nvim_buf_get_extmarks(offer.buf, namespace, 0, -1, { limit = 1 }) > 0
end

function M.clear(buf, client_id)
  drawn[buf] = nil
  if not api.nvim_buf_is_valid(buf) then
    return
  end
  if handlers[buf] and client_id then
    give(buf, client_id, {})
  end
  -- The handler does nothing outside insert mode.
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
end

return M
