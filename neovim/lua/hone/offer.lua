--- What remains of an offer while it is typed or accepted piece by piece. This is pure text.
--- Nothing here knows the editor's state.

local M = {}

---@class hone.Offer
---@field id string the server's id of the offer
---@field client vim.lsp.Client
---@field buf integer
---@field item lsp.InlineCompletionItem as the server sent it
---@field text string what goes in at the anchor, with the line breaks that buffers have
---@field is_dos boolean whether the server's text has CRLF as its line breaks
---@field entered integer bytes of `text` that are in the buffer by now
---@field anchor integer extmark at the place where `text` is inserted
---@field replaces string marks behind the cursor, such as brackets, that `text` contains too
---@field behind string the text behind the cursor when the server computed `replaces`
---@field shown boolean
---@field choice? string which of several the user has turned to, such as `2/3`

--- Characters of words: letters, digits, `_`, and every byte of a character beyond ASCII, so that
--- no character is cut in two.
local WORD = '[%w_\128-\255]'
local NO_WORD = '[^%w_%s\128-\255]'

---@param offer hone.Offer
function M.rest(offer)
  return offer.text:sub(offer.entered + 1)
end

--- How many bytes at the start of `marks` a text contains in this order.
---@return integer
function M.brings(text, marks)
  local count = 0
  for c in text:gmatch('.') do
    if c == marks:sub(count + 1, count + 1) then
      count = count + 1
    end
  end
  return count
end

--- The new pieces of a text that replaces `marks`: before the first mark, between each two, and
--- behind the last. Only the last piece may have several lines.
---@return string[]
function M.pieces(text, marks)
  local pieces = {}
  for mark in marks:gmatch('.') do
    local at = text:find(mark, 1, true)
    pieces[#pieces + 1] = text:sub(1, at - 1)
    text = text:sub(at + 1)
  end
  pieces[#pieces + 1] = text
  return pieces
end

--- Whether the offer begins with the text between anchor and cursor.
function M.agrees(text, typed)
  return vim.startswith(text, typed)
end

---@param rest string
---@return string
function M.word(rest)
  return rest:match('^%s*' .. WORD .. '+') or rest:match('^%s*' .. NO_WORD .. '+') or rest
end

---@param rest string
---@return string
function M.line(rest)
  return rest:match('^\n?[^\n]*')
end

---@param rest string
---@return string
function M.whole(rest)
  return rest
end

--- The length of what is in the buffer by now, in the server's text. LSP counts it in UTF-16 units
--- in every position encoding.
---@param offer hone.Offer
function M.utf16_length(offer)
  local entered = offer.text:sub(1, offer.entered)
  local _, breaks = entered:gsub('\n', '')
  return vim.str_utfindex(entered, 'utf-16') + (offer.is_dos and breaks or 0)
end

return M
