--- Hone in Neovim: code completion that learns from what you accept.

local focus = require('hone.focus')
local keys = require('hone.keys')
local last_change = require('hone.last_change')
local macro = require('hone.macro')
local next_edit = require('hone.next_edit')
local notify = require('hone.notify')
local offers = require('hone.offer')
local options = require('hone.options')
local painter = require('hone.painter')
local server = require('hone.server')
local session = require('hone.session')
local status = require('hone.status')
local api = vim.api

local M = {}

local started = false

local function attached(event)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  if client and client.name == 'hone' then
    painter.attach(client, event.buf)
    keys.attach(event.buf)
    last_change.watch(event.buf)
    focus.moved()
    if api.nvim_get_mode().mode == 'i' and event.buf == api.nvim_get_current_buf() then
      session.moved()
    end
  end
end

local function detached(event)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  if client and client.name == 'hone' then
    session.abandon()
    next_edit.abandon()
    painter.detach(event.buf)
    keys.detach(event.buf)
  end
end

local function watch()
  local group = api.nvim_create_augroup('hone', { clear = true })
  local function on(events, callback, pattern)
    local guarded = notify.guard(callback)
    api.nvim_create_autocmd(events, { group = group, callback = guarded, pattern = pattern })
  end
  on('LspAttach', attached)
  on('LspDetach', detached)
  on('InsertEnter', server.look_again)
  on({ 'InsertEnter', 'TextChangedI', 'TextChangedP', 'CursorMovedI' }, session.moved)
  on({ 'BufEnter', 'FocusGained', 'CursorMoved' }, focus.moved)
  -- InsertLeave would also come at CTRL-O, and would not come at CTRL-C.
  on('ModeChanged', session.left, 'i*:n')
  on({ 'BufLeave', 'WinLeave' }, session.abandon)
  on('RecordingEnter', macro.began)
  on('RecordingLeave', function()
    macro.ended(vim.v.event)
  end)
  on({ 'TextChanged', 'TextChangedI' }, next_edit.changed)
  on({ 'BufEnter', 'CursorMoved', 'CursorMovedI', 'WinScrolled' }, next_edit.moved)
end

local function start()
  if vim.fn.has('nvim-0.11') == 0 then
    notify.once('Neovim 0.11 or newer is needed')
    return
  end
  session.enable(options.current.enabled)
  require('hone.painter.virtual').setup()
  require('hone.painter.next_edit').setup()
  require('hone.commands').create()
  watch()
  server.start()
end

--- Starts Hone with the options given so far. Later calls do nothing.
function M.start()
  if not started then
    started = true
    notify.guard(start)()
  end
end

--- Takes the user's options. All of them are optional; see |hone-options|.
---@param given? table
function M.setup(given)
  local wrong = options.set(given or {})
  if wrong then
    notify.say(wrong, vim.log.levels.ERROR)
  end
  if vim.v.vim_did_enter == 1 then
    M.start()
  end
end

--- A short text for a status line.
---@return string
function M.statusline()
  return status.text(session.is_enabled())
end

---@return boolean whether a suggestion is on screen
function M.is_visible()
  return session.is_visible()
end

--- Each of these accepts what it names of the visible suggestion. Returns false if there is none.
function M.accept()
  return session.accept(offers.whole)
end

function M.accept_word()
  return session.accept(offers.word)
end

function M.accept_line()
  return session.accept(offers.line)
end

--- Rejects the visible suggestion. Returns false if there is none.
function M.dismiss()
  return session.dismiss()
end

--- Each of these shows another suggestion instead of the visible one. Returns false if there is
--- none.
function M.next()
  return session.turn(1)
end

function M.previous()
  return session.turn(-1)
end

--- Asks for a suggestion now, also where suggestions are switched off.
---@return boolean whether a server was asked
function M.trigger()
  return session.trigger()
end

--- Goes to the next edit, or makes it if the cursor is there. Returns false if there is no server.
function M.next_edit()
  return next_edit.next()
end

--- Rejects the next edit. Returns false if there is none.
function M.dismiss_edit()
  return next_edit.dismiss()
end

function M.is_enabled()
  return session.is_enabled()
end

---@param on? boolean true by default
function M.enable(on)
  on = on ~= false
  session.enable(on)
  if not on then
    next_edit.abandon()
  end
  if on and not server.client() then
    server.start()
  end
  vim.cmd.redrawstatus({ bang = true })
end

return M
