--- The next edit: what the user changed twice is offered where it comes next. One key goes there,
--- and again makes the edit.

local Pause = require('hone.pause')
local last_change = require('hone.last_change')
local line_breaks = require('hone.line_breaks')
local notify = require('hone.notify')
local options = require('hone.options')
local painter = require('hone.painter.next_edit')
local places = require('hone.edit_place')
local rest = require('hone.edit_rest')
local session = require('hone.session')
local snippet = require('hone.snippet')
local undo = require('hone.undo')
local api = vim.api

local M = {}

local METHOD = 'textDocument/copilotInlineEdit'

--- LSP's `InlineCompletionTriggerKind`. The server answers an invoked request in the setting
--- `subtle` too.
local INVOKED, AUTOMATIC = 1, 2

--- A pause after the last change. A completion of the line comes first.
local RESTS_MS = 250

--- A model that writes an edit takes longer than this. The user who has pressed the key is told.
local COMPUTES_AFTER_MS = 300

local marks = api.nvim_create_namespace('hone.next_edit.place')

---@class hone.NextEdit
---@field id string
---@field client vim.lsp.Client
---@field command lsp.Command
---@field buf integer
---@field mark integer extmark of the place
---@field is_below boolean whether the mark begins at the end of the line above
---@field is_over_end boolean whether the place reaches over the last line break
---@field around { [1]: string, [2]: string } the text of the line before the place and behind it
---@field is_begun? boolean whether the user has begun to make it by hand
---@field agreed_at? integer the buffer's changedtick when a text was typed that agrees with it
---@field old string what stands there
---@field new string
---@field kind integer how it was asked for
---@field makes_room boolean whether no suggestion comes by itself on its line

---@type hone.NextEdit?
local live

--- Without a live edit: where the next one is, in a file that is not open. The line counts from 1.
---@type { buf: integer, path: string, line: integer, hint: string }?
local elsewhere

local pause = Pause.new()

--- Requests so far. Only the newest one is shown.
local asked = 0

--- Where a key has asked for an edit, as long as there is no answer.
---@type table?
local awaited

--- The time until it is said that the edit is being computed, and whether it is said.
local computes = Pause.new()
local is_said = false

--- The buffer that an edit was made in last, and its changedtick after it.
---@type { buf: integer, tick: integer }?
local made

--- The number of requests without an answer.
local unanswered = 0

local function client_of(buf)
  return vim.lsp.get_clients({ bufnr = buf, name = 'hone' })[1]
end

local function drop()
  painter.clear()
  if live and api.nvim_buf_is_valid(live.buf) then
    api.nvim_buf_del_extmark(live.buf, marks, live.mark)
  end
  live = nil
  elsewhere = nil
end

--- The text and the cursor as they are now.
local function moment()
  local buf = api.nvim_get_current_buf()
  return { buf, api.nvim_buf_get_changedtick(buf), api.nvim_win_get_cursor(0) }
end

--- Notes where a key has asked for an edit, or with nil that none is awaited any more.
---@param asked_at? table
local function await(asked_at)
  awaited = asked_at
  computes:stop()
  if is_said then
    is_said = false
    painter.clear()
  end
  if asked_at then
    computes:start(COMPUTES_AFTER_MS, function()
      -- In insert mode Neovim covers a message with the mode's name.
      is_said = vim.deep_equal(asked_at, moment())
      if is_said then
        painter.hint('computing a next edit…')
      end
    end)
  end
end

--- Marks a place. A text that is inserted at its start or at its end comes into it, because it may
--- be the edit that is typed by hand.
local function mark(buf, here, options)
  local last = api.nvim_buf_line_count(buf) - 1
  local start, stop = here.start, here.stop
  if options.is_below then
    start = { start[1] - 1, #api.nvim_buf_get_lines(buf, start[1] - 1, start[1], true)[1] }
  end
  return api.nvim_buf_set_extmark(buf, marks, math.min(start[1], last), start[2], {
    id = options.mark,
    end_row = math.min(stop[1], last),
    end_col = stop[2],
    right_gravity = options.is_over_end,
    end_right_gravity = not options.is_over_end,
    strict = false,
  })
end

--- Follows an edit whose place has another text by now.
---@param here hone.Place
---@param now string
---@return hone.Place? nil if nothing is left of the edit
local function follow(here, now)
  local left = rest.left(live, now)
  if not left then
    return
  end
  if left == live.old then
    -- What came behind the place does not belong to it.
    here.stop = places.at(here, now, #left)
    mark(live.buf, here, live)
    return here
  end
  -- A change that reaches over the place is none of the edit.
  if not vim.deep_equal(live.around, { places.around(live.buf, here) }) then
    return
  end
  live.old, live.is_begun = left, true
  live.agreed_at = api.nvim_buf_get_changedtick(live.buf)
  return here
end

--- Where the edit is by now. nil if something else stands there, or if the buffer has gone.
---@return hone.Place?
local function place()
  if not live or not api.nvim_buf_is_loaded(live.buf) then
    return
  end
  local found = api.nvim_buf_get_extmark_by_id(live.buf, marks, live.mark, { details = true })
  local start, details = { found[1], found[2] }, found[3]
  if not details then
    return
  end
  local stop = { details.end_row or start[1], details.end_col or start[2] }
  local count = api.nvim_buf_line_count(live.buf)
  if live.is_over_end then
    stop = { count, 0 }
    start = live.old == '' and { count, 0 } or start
  end
  local here = { start = start, stop = stop }
  local now = places.text(live.buf, here)
  if live.is_over_end then
    return now == live.old and here or nil
  end
  if live.is_below then
    local line_break = now and now:find('\n', 1, true)
    now = line_break and now:sub(line_break + 1)
    here.start = { start[1] + 1, 0 }
  end
  local is_there = now == live.old and here or now and follow(here, now)
  if is_there then
    live.around = { places.around(live.buf, here) }
  end
  return is_there or nil
end

local function is_on_screen(here)
  if live.buf ~= api.nvim_get_current_buf() then
    return false
  end
  local row = here.start[1] + 1
  return row >= vim.fn.line('w0') and row <= vim.fn.line('w$') + 1
end

--- The key of the next edit behind a hint, such as ` (<M-n>)`.
local function by_key()
  local key = options.current.keymaps.next_edit
  return key and (' (%s)'):format(key) or ''
end

--- The text of the hint, such as `→ 12 lines below (<M-n>)`.
local function direction(here)
  local by = by_key()
  if live.buf ~= api.nvim_get_current_buf() then
    local name = vim.fn.fnamemodify(api.nvim_buf_get_name(live.buf), ':t')
    return ('→ %s:%d%s'):format(name, here.start[1] + 1, by)
  end
  local lines = here.start[1] + 1 - api.nvim_win_get_cursor(0)[1]
  local side = lines > 0 and 'below' or 'above'
  return ('→ %d lines %s%s'):format(math.abs(lines), side, by)
end

local function draw()
  painter.clear()
  local here = place()
  if not here then
    drop()
    return
  end
  painter.draw(live.buf, here, live.old, live.new)
  if not is_on_screen(here) and not session.is_visible() then
    painter.hint(direction(here))
  end
end

--- A buffer of this address that can be changed.
---@return integer?
local function writable(uri)
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) and vim.uri_from_bufnr(buf) == uri then
      local can = vim.bo[buf].modifiable and not vim.bo[buf].readonly
      return can and buf or nil
    end
  end
end

local function show(client, edit, kind)
  local id = vim.tbl_get(edit, 'command', 'arguments', 1)
  local uri, version = edit.textDocument.uri, edit.textDocument.version
  local buf = writable(uri)
  if not buf or type(id) ~= 'string' or vim.lsp.util.buf_versions[buf] ~= version then
    return
  end
  local is_same = live and live.id == id
  drop()
  local here = places.of(buf, edit.range, client.offset_encoding)
  local old = places.text(buf, here)
  local expected = vim.tbl_get(edit, '_hone', 'old')
  if not old or (expected and line_breaks.unix(expected) ~= old) then
    return
  end
  local new = line_breaks.unix(edit.text)
  local is_over_end = here.stop[1] >= api.nvim_buf_line_count(buf)
  -- Who begins a line at the end of the line above begins the lines that are inserted.
  local inserts_lines = old == '' and here.start[2] == 0 and vim.endswith(new, '\n')
  local is_below = inserts_lines and here.start[1] > 0 and not is_over_end
  live = {
    id = id,
    client = client,
    command = edit.command,
    buf = buf,
    mark = mark(buf, here, { is_below = is_below, is_over_end = is_over_end }),
    is_below = is_below,
    is_over_end = is_over_end,
    around = { places.around(buf, here) },
    old = old,
    new = new,
    kind = kind,
    makes_room = true,
  }
  draw()
  if live and not is_same then
    client:notify('textDocument/didShowInlineEdit', { item = { command = edit.command } })
  end
end

--- Shows where the next edit is, if an answer without an edit names a file that is not open.
---@return boolean whether it does
local function point(buf, note)
  if type(note) ~= 'table' or note.reason ~= 'in_another_file' then
    return false
  end
  local name = vim.fn.fnamemodify(note.path, ':t')
  local hint = ('→ %s:%d%s'):format(name, note.line, by_key())
  elsewhere = { buf = buf, path = note.path, line = note.line, hint = hint }
  painter.hint(hint)
  return true
end

--- Returns true if the cursor is where the edit would be made.
---@param here hone.Place
local function is_there(here)
  if live.buf ~= api.nvim_get_current_buf() then
    return false
  end
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local last = math.max(here.start[1], here.stop[1] - (here.stop[2] == 0 and 1 or 0))
  if row >= math.min(here.start[1], last) and row <= last then
    return true
  end
  -- Lines behind the last one have no line of their own yet.
  return live.is_over_end and row == api.nvim_buf_line_count(live.buf) - 1
end

session.make_room_for(function()
  local here = live and live.makes_room and place()
  return here and is_there(here) or false
end)

local function go(here)
  live.makes_room = true
  vim.cmd("normal! m'")
  if live.buf ~= api.nvim_get_current_buf() then
    vim.cmd.buffer(live.buf)
  end
  local row = math.min(here.start[1] + 1, api.nvim_buf_line_count(0))
  api.nvim_win_set_cursor(0, { row, here.start[2] })
  draw()
end

--- Goes to the edit that a key has asked for.
local function go_there()
  local here = place()
  if here and not is_there(here) then
    go(here)
  end
end

--- Returns true if the user is in the middle of something else: has selected a text, or goes
--- through the places of a snippet.
local function is_busy()
  return api.nvim_get_mode().mode:find('^[vVsS\22\19]') ~= nil or snippet.is_in()
end

---@param kind integer
---@param by_key? boolean true if a key asks, which goes to the edit or says why there is none
local function ask(kind, by_key)
  local buf = api.nvim_get_current_buf()
  local client = client_of(buf)
  if not client or not vim.bo[buf].modifiable or (kind == AUTOMATIC and is_busy()) then
    return
  end
  -- A request that waits for its pause must not overtake this one.
  pause:stop()
  asked, unanswered = asked + 1, unanswered + 1
  local number, asked_at = asked, moment()
  await(by_key and asked_at or nil)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = vim.lsp.util.buf_versions[buf]
  params.context = { triggerKind = kind, after = last_change.kind(buf) }
  local function answered(err, result)
    unanswered = unanswered - 1
    if awaited == asked_at then
      await(nil)
    end
    local is_late = not api.nvim_buf_is_valid(buf)
      or api.nvim_buf_get_changedtick(buf) ~= asked_at[2]
    if number ~= asked or is_late then
      return
    end
    local waits = by_key and vim.deep_equal(asked_at, moment())
    local edit = not err and type(result) == 'table' and vim.tbl_get(result, 'edits', 1)
    if edit then
      show(client, edit, kind)
      if waits then
        go_there()
      end
    elseif not (live and live.kind == INVOKED and kind == AUTOMATIC) then
      -- What came with a key stays as long as it fits.
      local was_drawn = live ~= nil
      drop()
      if was_drawn then
        session.ask_again()
      end
      local note = type(result) == 'table' and result._hone or nil
      if not point(buf, note) and waits then
        notify.say(type(note) == 'table' and note.sentence or 'There is no next edit.')
      end
    end
  end
  client:request(METHOD, params, notify.guard(answered), buf)
end

--- Is called when a text has changed.
function M.changed()
  local buf = api.nvim_get_current_buf()
  if not client_of(buf) then
    return
  end
  local tick = api.nvim_buf_get_changedtick(buf)
  if made and made.buf == buf and made.tick == tick then
    -- The next one has been asked for.
    return
  end
  pause:stop()
  if live then
    local edit = live
    draw()
    if live and live.buf == buf and live.agreed_at == tick then
      -- What is left of the edit is known, and an older answer says nothing of it.
      asked = asked + 1
      return
    end
    if edit.kind == INVOKED and edit.makes_room then
      -- Who types next to an edit that came with a key has passed it over.
      edit.makes_room = false
      session.ask_again()
    end
  elseif elsewhere then
    drop()
  end
  local later = notify.guard(function()
    if buf == api.nvim_get_current_buf() and session.wanted(buf) then
      ask(AUTOMATIC)
    end
  end)
  -- After an offer was accepted, the server decides how long the text must rest.
  local is_accepted = last_change.is_accepted(buf) and not session.is_visible()
  pause:start(is_accepted and 0 or RESTS_MS, later)
end

--- Is called when the cursor moved or another buffer came into the window.
function M.moved()
  if live then
    draw()
  elseif elsewhere and elsewhere.buf == api.nvim_get_current_buf() then
    painter.clear()
    painter.hint(elsewhere.hint)
  elseif elsewhere then
    drop()
  end
end

local function make(here)
  local edit = live
  drop()
  asked = asked + 1
  undo.start_step()
  places.replace(edit.buf, here, edit.new)
  last_change.accepted(edit.buf)
  made = { buf = edit.buf, tick = api.nvim_buf_get_changedtick(edit.buf) }
  edit.client:exec_cmd(edit.command, { bufnr = edit.buf })
  ask(edit.kind)
end

--- Opens the file in which the next edit is, goes there, and asks again once the server knows it.
local function open()
  local there = assert(elsewhere)
  drop()
  vim.cmd("normal! m'")
  vim.cmd.edit(vim.fn.fnameescape(there.path))
  local buf = api.nvim_get_current_buf()
  api.nvim_win_set_cursor(0, { math.min(there.line, api.nvim_buf_line_count(buf)), 0 })
  vim.schedule(function()
    if buf == api.nvim_get_current_buf() then
      ask(INVOKED, true)
    end
  end)
end

--- Goes to the next edit, which it asks for if none is on screen, or makes it if the cursor is
--- there.
---@return boolean whether there is a server to ask
function M.next()
  local buf = api.nvim_get_current_buf()
  if not client_of(buf) then
    return false
  end
  local here = place()
  if not here then
    if awaited and vim.deep_equal(awaited, moment()) then
      -- Who presses the key once more would only have the model begin anew.
      return true
    end
    if elsewhere then
      open()
    else
      drop()
      ask(INVOKED, true)
    end
    return true
  end
  if is_there(here) then
    make(here)
  else
    go(here)
  end
  return true
end

--- Rejects the next edit.
---@return boolean whether there was one
function M.dismiss()
  if elsewhere then
    drop()
    return true
  end
  if not live then
    return false
  end
  live.client:notify('hone/didReject', { id = live.id, reason = 'esc' })
  asked = asked + 1
  pause:stop()
  drop()
  return true
end

--- Takes the next edit from the screen without a verdict.
function M.abandon()
  pause:stop()
  asked = asked + 1
  await(nil)
  drop()
end

function M.is_visible()
  return live ~= nil or elsewhere ~= nil
end

--- Returns true while a request waits for its pause, or for its answer.
function M.is_waiting()
  return pause:is_waiting() or unanswered > 0
end

return M
