--- The live offer of this Neovim, from the request to its end. The server has one live offer for
--- each connection, so there is one here.

local Pause = require('hone.pause')
local insertion = require('hone.insertion')
local last_change = require('hone.last_change')
local line_breaks = require('hone.line_breaks')
local macro = require('hone.macro')
local notify = require('hone.notify')
local offers = require('hone.offer')
local options = require('hone.options')
local painter = require('hone.painter')
local report = require('hone.report')
local snippet = require('hone.snippet')
local api = vim.api

local M = {}

local METHOD = 'textDocument/inlineCompletion'

--- LSP's `InlineCompletionTriggerKind`. An invoked request may bring several offers to choose from;
--- an automatic one comes as the user types.
local INVOKED, AUTOMATIC = 1, 2

--- LSP's error codes for a request that something newer made pointless.
local OUTDATED = { [-32800] = true, [-32801] = true, [-32802] = true }

local anchors = api.nvim_create_namespace('hone.anchor')

---@type hone.Offer?
local live

---@type { client: vim.lsp.Client, id?: integer }?
local pending

local debounce = Pause.new()

--- Buffer, its changedtick and the cursor at the last event. One key can cause two events, and an
--- answer is valid only at the place of its request.
local place

local enabled = true

--- Returns true if something else is drawn on the line of the cursor.
---@type fun(): boolean
local is_taken = function()
  return false
end

local function here()
  local buf = api.nvim_get_current_buf()
  local cursor = api.nvim_win_get_cursor(0)
  return { buf, api.nvim_buf_get_changedtick(buf), cursor[1], cursor[2] }
end

local function inserting()
  return api.nvim_get_mode().mode:sub(1, 1) == 'i'
end

---@return vim.lsp.Client?
local function client_of(buf)
  return vim.lsp.get_clients({ bufnr = buf, name = 'hone' })[1]
end

--- Whether suggestions are wanted in a buffer as the user types.
function M.wanted(buf)
  return enabled and vim.b[buf].hone_enabled ~= false and painter.is_enabled(buf)
end

--- Lets no suggestion come by itself where something else is drawn.
---@param is_drawn fun(): boolean
function M.make_room_for(is_drawn)
  is_taken = is_drawn
end

local function is_wanted_here(buf)
  return M.wanted(buf) and not is_taken()
end

local function cancel()
  debounce:stop()
  if pending then
    if pending.id then
      pending.client:cancel_request(pending.id)
    end
    pending = nil
  end
end

local function drop()
  if not live then
    return
  end
  local offer = live
  live = nil
  if api.nvim_buf_is_valid(offer.buf) then
    api.nvim_buf_del_extmark(offer.buf, anchors, offer.anchor)
  end
  painter.clear(offer.buf, offer.client.id)
end

--- How many bytes of the live offer are between its anchor and the cursor. nil if the text there is
--- not the beginning of the offer.
---@return integer?
local function entered()
  local buf, row, col = live.buf, unpack(api.nvim_win_get_cursor(0))
  if buf ~= api.nvim_get_current_buf() then
    return
  end
  row = row - 1
  local anchor = api.nvim_buf_get_extmark_by_id(buf, anchors, live.anchor, {})
  local before = anchor[1] and (row < anchor[1] or (row == anchor[1] and col < anchor[2]))
  if not anchor[1] or before then
    return
  end
  local typed = api.nvim_buf_get_text(buf, anchor[1], anchor[2], row, col, {})
  typed = table.concat(typed, '\n')
  return offers.agrees(live.text, typed) and #typed or nil
end

--- The text behind the cursor on its line.
local function behind()
  return api.nvim_get_current_line():sub(api.nvim_win_get_cursor(0)[2] + 1)
end

--- Whether the text behind the cursor differs from what the server has seen. Most likely a bracket
--- was closed or typed over. Only the server can say whether the offer closes it too.
local function is_doubtful()
  return live.behind ~= behind()
end

local function draw()
  painter.draw(live)
  if not live.shown then
    live.shown = true
    report.shown(live)
  end
end

--- Updates the ghost text to the buffer. Returns false if the offer is over.
local function follow()
  local now = live and entered()
  if not now or now == #live.text then
    -- If an edit ended the offer, the server knows. Otherwise only the cursor moved.
    if live and not now then
      report.hidden(live.client, live.id)
    end
    drop()
    return false
  end
  live.entered = now
  local rest = offers.rest(live)
  if is_doubtful() or offers.brings(rest, live.replaces) < #live.replaces then
    live.replaces = ''
  end
  draw()
  return true
end

---@param client vim.lsp.Client
---@param item lsp.InlineCompletionItem
---@param choice? string which of several it is, if the user turned to it
local function offer(client, item, choice)
  local id = vim.tbl_get(item, 'command', 'arguments', 1)
  if type(id) ~= 'string' or type(item.insertText) ~= 'string' then
    drop()
    return
  end
  local buf = api.nvim_get_current_buf()
  local start = item.range and item.range.start
    or vim.lsp.util.make_position_params(0, client.offset_encoding).position
  local stop = item.range and item.range['end'] or start
  local line = api.nvim_buf_get_lines(buf, start.line, start.line + 1, true)[1]
  local function byte(at)
    return vim.str_byteindex(line, client.offset_encoding, at.character, false)
  end
  local col = byte(start)
  local replaces = line:sub(col + 1, byte(stop))
  if live and live.id == id then
    live.replaces, live.behind, live.choice = replaces, line:sub(col + 1), choice
    follow()
    return
  end
  drop()
  live = {
    id = id,
    client = client,
    buf = buf,
    item = item,
    text = line_breaks.unix(item.insertText),
    is_dos = item.insertText:find('\r\n', 1, true) ~= nil,
    entered = 0,
    -- The anchor stays before text that is typed at it, and moves with edits above it.
    anchor = api.nvim_buf_set_extmark(buf, anchors, start.line, col, { right_gravity = false }),
    replaces = replaces,
    behind = line:sub(col + 1),
    shown = false,
    choice = choice,
  }
  follow()
end

---@alias hone.Pick fun(items: lsp.InlineCompletionItem[]): lsp.InlineCompletionItem?, string?

---@param pick hone.Pick
---@param is_late boolean true if something else is drawn there by now
local function answer(client, asked_at, pick, is_late, err, result)
  if err then
    if not OUTDATED[err.code] then
      notify.once(err.message, vim.log.levels.WARN)
    end
    return
  end
  -- `null` arrives as vim.NIL or nil.
  local items = type(result) == 'table' and (result.items or result) or {}
  if is_late or not inserting() or not vim.deep_equal(asked_at, here()) then
    -- If the user typed on, the offer may still hold, and the next request decides.
    local id = vim.tbl_get(items, 1, 'command', 'arguments', 1)
    if type(id) == 'string' and api.nvim_buf_is_valid(asked_at[1])
      and api.nvim_buf_get_changedtick(asked_at[1]) == asked_at[2]
    then
      report.hidden(client, id)
    end
    return
  end
  local picked, choice = pick(items)
  if picked then
    offer(client, picked, choice)
  else
    drop()
    painter.clear(api.nvim_get_current_buf(), client.id)
  end
end

local function first(items)
  return items[1]
end

---@param kind integer
---@param pick hone.Pick
local function ask(kind, pick)
  local buf = api.nvim_get_current_buf()
  local client = client_of(buf)
  if not client or not inserting() then
    return
  end
  local asked_at = here()
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = kind }
  local request = { client = client }
  pending = request
  local on_answer = notify.guard(function(err, result)
    if pending == request then
      pending = nil
      answer(client, asked_at, pick, kind == AUTOMATIC and is_taken(), err, result)
    end
  end)
  local _, id = painter.request(client, METHOD, params, on_answer, buf)
  request.id = id
end

--- Is called when text or cursor changed in insert mode.
function M.moved()
  local now = here()
  if not client_of(now[1]) or vim.deep_equal(now, place) then
    return
  end
  place = now
  cancel()
  if live and follow() and not is_doubtful() then
    return
  end
  if is_wanted_here(now[1]) and vim.bo[now[1]].modifiable then
    local callback = notify.guard(function()
      if is_wanted_here(now[1]) then
        ask(AUTOMATIC, first)
      end
    end)
    debounce:start(options.current.debounce_ms, callback)
  end
end

--- Asks once more where the user still waits. Is called when the model has been loaded, because a
--- request that came before it may have ended without an offer, and when a line is free again.
function M.ask_again()
  local buf = api.nvim_get_current_buf()
  if not live and not M.is_waiting() and is_wanted_here(buf) then
    ask(AUTOMATIC, first)
  end
end

--- Shows another offer instead of the visible one.
---@param by integer 1 for the next, -1 for the previous
---@return boolean whether there was a visible one
function M.turn(by)
  if not M.is_visible() or not inserting() or not entered() then
    return false
  end
  cancel()
  macro.shown()
  ask(INVOKED, function(items)
    local to = 1
    for at, item in ipairs(items) do
      if vim.tbl_get(item, 'command', 'arguments', 1) == live.id then
        to = (at - 1 + by) % #items + 1
      end
    end
    return items[to], ('%d/%d'):format(to, #items)
  end)
  return true
end

--- Asks for an offer now, also where suggestions are switched off. Whoever asks behind a part of
--- the visible offer that was typed has seen the rest of it, and gets the next one.
---@return boolean whether a server was asked
function M.trigger()
  if not inserting() or not client_of(api.nvim_get_current_buf()) then
    return false
  end
  if M.is_visible() and (entered() or 0) > 0 then
    return M.turn(1)
  end
  cancel()
  macro.shown()
  ask(INVOKED, first)
  return true
end

---@return boolean whether there was a visible offer
local function reject()
  cancel()
  local offered = live ~= nil and live.shown
  if offered then
    report.rejected(live)
  end
  drop()
  return offered
end

--- Is called when the user left insert mode, which rejects a visible offer.
function M.left()
  if snippet.is_in() then
    M.abandon()
    return
  end
  place = nil
  reject()
end

--- Rejects the visible offer.
---@return boolean whether there was one
function M.dismiss()
  local offered = reject()
  if offered then
    macro.shown()
  end
  return offered
end

--- Is called when the window or buffer was left, which is no verdict.
function M.abandon()
  place = nil
  cancel()
  if live then
    report.hidden(live.client, live.id)
  end
  drop()
end

function M.is_visible()
  return live ~= nil and live.shown
end

--- Notes that the last change of the text is of an offer.
local function noted()
  last_change.accepted(api.nvim_get_current_buf())
end

--- Accepts the part of the visible offer that `part` cuts off.
---@param part fun(rest: string): string
---@return boolean whether there was something to accept
function M.accept(part)
  local now = M.is_visible() and inserting() and entered()
  if not now then
    return false
  end
  cancel()
  live.entered = now
  local piece = part(offers.rest(live))
  local over = offers.brings(piece, live.replaces)
  live.entered = live.entered + #piece
  -- The report comes before the text changes. Neovim finds an insertion by comparing the old and
  -- the new line from their start, so it may place the insertion further right than it was made.
  -- Without the report, that would look like another edit.
  if live.entered == #live.text then
    report.accepted(live)
    drop()
    insertion.insert(piece, over, noted)
  else
    report.partly_accepted(live, offers.utf16_length(live))
    live.replaces = live.replaces:sub(over + 1)
    live.behind = live.behind:sub(over + 1)
    insertion.insert(piece, over, function()
      noted()
      follow()
    end)
  end
  return true
end

function M.is_enabled()
  return enabled
end

--- Returns true while a request waits for its pause in typing, or for its answer.
function M.is_waiting()
  return debounce:is_waiting() or pending ~= nil
end

function M.enable(on)
  enabled = on
  if not on then
    M.abandon()
  end
end

return M
