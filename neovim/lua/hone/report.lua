--- Tells the server what became of an offer. These labels are what Hone learns
--- from; the server works out the rest (typed through, typed over) from the text.

local M = {}

---@param offer hone.Offer
function M.shown(offer)
  offer.client:notify('textDocument/didShowCompletion', { item = offer.item })
end

--- The whole text stands in the buffer.
---@param offer hone.Offer
function M.accepted(offer)
  offer.client:exec_cmd(offer.item.command, { bufnr = offer.buf })
end

---@param offer hone.Offer
---@param utf16_length integer from the start of the offer's text
function M.partly_accepted(offer, utf16_length)
  offer.client:notify(
    'textDocument/didPartiallyAcceptCompletion',
    { item = offer.item, acceptedLength = utf16_length }
  )
end

--- The user turned it down by a key of its own.
---@param offer hone.Offer
function M.rejected(offer)
  offer.client:notify('hone/didReject', { id = offer.id, reason = 'esc' })
end

--- It is not on screen, and nobody said no to it: without this the server would
--- take its standing there for ten seconds as a reject.
---@param client vim.lsp.Client
---@param id string
function M.hidden(client, id)
  client:notify('hone/didReject', { id = id, reason = 'hidden' })
end

return M
