--- What is left of a next edit while it is typed by hand, and what is drawn of it. This is pure
--- text. Nothing here knows the editor's state.

local M = {}

--- Characters of words, as in `hone.offer`.
local WORD = '[%w_$\128-\255]'

--- Bytes within a character, behind its first one.
local WITHIN = '^[\128-\191]'

--- The lengths of what two texts have in common at their start and at their end. No character is
--- cut in two.
local function affixes(one, other)
  local most = math.min(#one, #other)
  local head = 0
  while head < most and one:byte(head + 1) == other:byte(head + 1) do
    head = head + 1
  end
  while head > 0 and (one:find(WITHIN, head + 1) or other:find(WITHIN, head + 1)) do
    head = head - 1
  end
  local tail = 0
  while tail < most - head and one:byte(-1 - tail) == other:byte(-1 - tail) do
    tail = tail + 1
  end
  while tail > 0 and one:find(WITHIN, -tail) do
    tail = tail - 1
  end
  return head, tail
end

local function middle(text, head, tail)
  return text:sub(head + 1, #text - tail)
end

--- Whether a text is on the way from the old text to the new one: the beginning and the end of the
--- new one, and between them what is left of that which goes.
local function agrees(old, new, now)
  local gone = middle(old, affixes(old, new))
  return now ~= new and gone:find(middle(now, affixes(now, new)), 1, true) ~= nil
end

--- What the edit replaces, if this text is at its place by now. nil if it has been made, or if the
--- text disagrees with it.
---@param edit { old: string, new: string, is_begun?: boolean }
---@param now string
---@return string?
function M.left(edit, now)
  if now == edit.old or agrees(edit.old, edit.new, now) then
    return now
  end
  -- A text behind the place is none of the edit's business, unless it is where the user types it.
  local is_behind = edit.old ~= '' and not edit.is_begun and now ~= edit.new
  return is_behind and vim.startswith(now, edit.old) and edit.old or nil
end

---@class hone.EditPreview
---@field from integer bytes from the start of the old text; in the line, it may be before that
---@field to integer
---@field text string what comes there

--- What is drawn of an edit, if these texts are before its place and behind it. What old and new
--- text share is left out, but of a word that changes the whole is drawn.
---@return hone.EditPreview
function M.preview(old, new, before, behind)
  local head, tail = affixes(old, new)
  local gone, comes = middle(old, head, tail), middle(new, head, tail)
  local from, to = head, #old - tail
  if gone == '' then
    return { from = from, to = to, text = comes }
  end
  if (gone .. comes):find('\n', 1, true) then
    return { from = 0, to = #old, text = new }
  end
  local left, right = '', ''
  if gone:find('^' .. WORD) or comes:find('^' .. WORD) then
    left = (before .. old:sub(1, from)):match(WORD .. '*$')
  end
  if gone:find(WORD .. '$') or comes:find(WORD .. '$') then
    right = (old:sub(to + 1) .. behind):match('^' .. WORD .. '*')
  end
  return { from = from - #left, to = to + #right, text = left .. comes .. right }
end

return M
