--- Reports the outcome of an offer to the server. Hone learns from these labels. The server sees
--- the other outcomes, such as typed through and typed over, in the text.

local M = {}

---@param offer hone.Offer
function M.shown(offer)
  offer.client:notify('textDocument/didShowCompletion', { item = offer.item })
end

--- The whole text was accepted.
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

--- The user rejected the offer with a key.
---@param offer hone.Offer
function M.rejected(offer)
  offer.client:notify('hone/didReject', { id = offer.id, reason = 'esc' })
end

--- The offer is not on screen, and the user did not reject it. Without this report the server would
--- take ten seconds without an answer for a rejection.
---@param client vim.lsp.Client
---@param id string
function M.hidden(client, id)
  client:notify('hone/didReject', { id = id, reason = 'hidden' })
end

return M
