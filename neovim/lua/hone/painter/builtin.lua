--- Makes offers part of Neovim 0.12's `vim.lsp.inline_completion`.
---
--- The built-in client asks 200 ms after a key and never cancels a request. It keeps a stale offer
--- on screen, draws an offer wrongly before text that the offer begins with, and reports no
--- outcomes to the server.
---
--- So its requests are intercepted here. The first one brings the handler that holds the built-in
--- client's state for a buffer. From then on that handler receives the offer that Hone's own
--- session holds. So `get()` accepts what is on screen at the right place.

local notify = require('hone.notify')
local offers = require('hone.offer')
local virtual = require('hone.painter.virtual')
local api = vim.api

local M = {}

local METHOD = 'textDocument/inlineCompletion'

--- The namespace in which the built-in client draws.
local namespace = api.nvim_create_namespace('nvim.lsp.inline_completion')

---@type table<integer, lsp.Handler> by buffer
local handlers = {}

--- The offer on screen, by buffer.
---@type table<integer, hone.Offer>
local drawn = {}

--- The original `Client:request`, by client id.
---@type table<integer, function>
local requests = {}

--- Gives these items to the built-in client as the answer of Hone's server.
local function give(buf, client_id, items)
  if not handlers[buf] then
    return
  end
  local context = { method = METHOD, client_id = client_id, bufnr = buf }
  if not pcall(handlers[buf], nil, { items = items }, context) then
    -- The buffer was removed, or inline completion was switched off in it.
    handlers[buf] = nil
  end
end

--- Draws again what the built-in client may have drawn in its own way.
local function redraw(buf)
  if drawn[buf] and buf == api.nvim_get_current_buf() then
    virtual.draw(drawn[buf], namespace)
  end
end

---@param offer hone.Offer
function M.draw(offer)
  drawn[offer.buf] = offer
  local cursor = vim.lsp.util.make_position_params(0, offer.client.offset_encoding).position
  -- A mark is one unit in every encoding.
  local stop = { line = cursor.line, character = cursor.character + #offer.replaces }
  give(offer.buf, offer.client.id, {
    {
      insertText = offers.rest(offer),
      range = { start = cursor, ['end'] = stop },
      command = offer.item.command,
    },
  })
  redraw(offer.buf)
end

function M.clear(buf, client_id)
  drawn[buf] = nil
  give(buf, client_id, {})
  -- The handler does nothing outside insert mode.
  virtual.clear(buf, namespace)
end

--- Intercepts the requests of the built-in client.
local function intercept(client)
  requests[client.id] = client.request
  client.request = function(self, method, params, handler, bufnr)
    if method ~= METHOD then
      return requests[client.id](self, method, params, handler, bufnr)
    end
    local buf = (bufnr == nil or bufnr == 0) and api.nvim_get_current_buf() or bufnr
    handlers[buf] = handler
    if drawn[buf] and buf == api.nvim_get_current_buf() then
      notify.guard(M.draw)(drawn[buf])
    end
    return true
  end
end

function M.request(client, ...)
  return requests[client.id](client, ...)
end

local function group_name(buf)
  return ('hone.redraw:%d'):format(buf)
end

function M.attach(client, buf)
  if not requests[client.id] then
    intercept(client)
  end
  vim.lsp.inline_completion.enable(true, { bufnr = buf })
  -- These are created after the built-in client's own, so that they run after them.
  api.nvim_create_autocmd({ 'CursorMovedI', 'TextChangedP' }, {
    group = api.nvim_create_augroup(group_name(buf), { clear = true }),
    buffer = buf,
    callback = notify.guard(function()
      redraw(buf)
    end),
  })
end

function M.detach(buf)
  handlers[buf], drawn[buf] = nil, nil
  pcall(api.nvim_del_augroup_by_name, group_name(buf))
  if api.nvim_buf_is_valid(buf) then
    vim.lsp.inline_completion.enable(false, { bufnr = buf })
  end
end

function M.is_enabled(buf)
  return vim.lsp.inline_completion.is_enabled({ bufnr = buf })
end

return M
