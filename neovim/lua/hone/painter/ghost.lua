--- Own ghost text, for Neovim 0.11, which has no inline completion.

local virtual = require('hone.painter.virtual')
local api = vim.api

local M = {}

local namespace = api.nvim_create_namespace('hone.ghost')
local HIGHLIGHT = 'HoneGhost'

--- Where the colour scheme gives NonText no terminal colour (Neovim's own gives
--- none), a ghost in 256 colours would pass for text: it is made grey there.
local GREY_CTERM = 8

local function set_highlight()
  local base = api.nvim_get_hl(0, { name = 'NonText', link = false })
  if base.ctermfg then
    api.nvim_set_hl(0, HIGHLIGHT, { link = 'NonText', default = true })
  else
    api.nvim_set_hl(0, HIGHLIGHT, { fg = base.fg, ctermfg = GREY_CTERM, default = true })
  end
end

function M.setup()
  set_highlight()
  api.nvim_create_autocmd('ColorScheme', {
    group = api.nvim_create_augroup('hone.highlight', { clear = true }),
    callback = require('hone.notify').guard(set_highlight),
  })
end

function M.attach() end

function M.detach() end

function M.is_enabled()
  return true
end

M.request = function(client, ...)
  return client:request(...)
end

---@param offer hone.Offer
---@return boolean shown
function M.draw(offer)
  M.clear(offer.buf)
  virtual.draw(offer, namespace, HIGHLIGHT)
  return true
end

function M.clear(buf)
  if api.nvim_buf_is_valid(buf) then
    api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  end
end

return M
