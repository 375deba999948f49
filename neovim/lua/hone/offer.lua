--- What remains of an offer while it is typed or taken bit by bit. Pure text;
--- nothing here knows the editor's state.

local M = {}

---@class hone.Offer
---@field id string what the server knows it by
---@field client vim.lsp.Client
---@field buf integer
---@field item lsp.InlineCompletionItem as the server sent it
---@field text string what goes in at the anchor
---@field taken integer bytes of `text` that stand in the buffer by now
---@field anchor integer extmark at the place where `text` goes in
---@field replaces string marks behind the cursor that the rest of `text` brings itself
---@field behind string what stood behind the cursor when the server said so
---@field shown boolean

--- Characters of words: letters, digits, `_`, and every byte of a character
--- beyond ASCII, so that none is cut in two.
local WORD = '[%w_\128-\255]'
local NO_WORD = '[^%w_%s\128-\255]'

---@param offer hone.Offer
function M.rest(offer)
  return offer.text:sub(offer.taken + 1)
end

--- How many bytes at the start of `marks` a text brings, in their order.
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

--- What is new of a text that takes the place of `marks`: before the first of them,
--- between each two, and behind the last. Only the last piece may have several lines.
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

--- Whether the text between anchor and cursor is how the offer begins.
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

--- The length LSP counts accepted text in, whatever encoding positions have.
function M.utf16_length(text)
  return vim.str_utfindex(text, 'utf-16')
end

return M
