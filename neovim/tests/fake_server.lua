--- A language server inside the Neovim under test. It does what the real server cannot be made to
--- do: it sends many lines, answers slowly or not at all, or sends errors.
---
--- The init file of that Neovim loads it. It writes every message to `log` as a line of JSON. After
--- `delay_ms` it answers a completion with the text `answer`, which replaces `replaces` characters.
--- The answer `null` means no result, and `error` means an error. With `first_is_late` the first
--- completion waits until it is cancelled before it is answered, and `log` reports that answer. A
--- completion that is invoked is answered with `choices`, if there are any. With `loads` the model
--- is being loaded until the first completion was answered, which brings no offer. A request for a
--- next edit is answered with `new` in the place of the first `old` behind the cursor's line, or
--- before it. As long as `holds` is true, that answer waits for `hold(false)`.

local M = {}

local OFFER_ID = 'offer-%d'

--- LSP's `InlineCompletionTriggerKind`.
local INVOKED = 1

local function item(params, text, number, replaces)
  local at = params.position
  local stop = { line = at.line, character = at.character + (replaces or 0) }
  local id = OFFER_ID:format(number)
  return {
    insertText = text,
    range = { start = at, ['end'] = stop },
    command = { title = 'Accepted', command = 'hone.accept', arguments = { id } },
  }
end

local CAPABILITIES = {
  positionEncoding = 'utf-16',
  textDocumentSync = 2,
  inlineCompletionProvider = true,
  executeCommandProvider = { commands = { 'hone.accept' } },
}

--- Returns a function that appends messages to a file as lines of JSON.
local function writer(path)
  local log = assert(io.open(path, 'a'))
  return function(message)
    log:write(vim.json.encode(message) .. '\n')
    log:flush()
  end
end

--- Returns a function that answers completions as the options say.
local function completer(options)
  local offered = 0
  return function(params, answer)
    if options.answer == 'null' then
      answer(nil, vim.NIL)
    elseif options.answer == 'error' then
      answer({ code = -32603, message = 'the engine is on fire' })
    elseif options.choices and params.context.triggerKind == INVOKED then
      local items = {}
      for number, text in ipairs(options.choices) do
        table.insert(items, item(params, text, number, options.replaces))
      end
      answer(nil, { items = items })
    else
      offered = offered + 1
      answer(nil, { items = { item(params, options.answer, offered, options.replaces) } })
    end
  end
end

--- Answers a request for a next edit.
local function next_edit(options, params)
  local buf = vim.uri_to_bufnr(params.textDocument.uri)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, true)
  for step = 1, options.old and #lines or 0 do
    local row = (params.position.line + step) % #lines
    local column = lines[row + 1]:find(options.old, 1, true)
    if column then
      local start = { line = row, character = column - 1 }
      local stop = { line = row, character = column - 1 + #options.old }
      local command = { title = 'Accepted', command = 'hone.accept', arguments = { 'edit-1' } }
      return {
        text = options.new,
        textDocument = {
          uri = params.textDocument.uri,
          version = params.textDocument.version - (options.late or 0),
        },
        range = { start = start, ['end'] = stop },
        command = command,
        _hone = { old = options.old },
      }
    end
  end
end

--- Answers to requests for a next edit that are due.
---@type fun()[]
local held = {}

--- The `request` function of the client that Neovim makes for this server. `late` gets a function
--- that answers the completion that waits until it is cancelled, by the request's id.
local function requester(options, write, late, report)
  local next_id, complete = 0, completer(options)
  local is_late, is_loading = options.first_is_late, options.loads
  return function(method, params, callback, replied)
    next_id = next_id + 1
    local id = next_id
    write({ method = method, params = params, id = id })
    local function answer(err, result)
      callback(err, result)
      if replied then
        replied(id)
      end
    end
    if method == 'initialize' then
      answer(nil, { capabilities = CAPABILITIES })
    elseif method == 'textDocument/inlineCompletion' and is_loading then
      is_loading = false
      answer(nil, vim.NIL)
      report({ busy = false, kind = 'Normal', message = 'scripted' })
    elseif method == 'textDocument/inlineCompletion' then
      -- It answers even if it was cancelled, because a late answer must not be shown.
      local function complete_later()
        vim.defer_fn(function()
          complete(params, answer)
          if late[id] then
            write({ method = 'late answer', id = id })
          end
        end, options.delay_ms)
      end
      if is_late then
        is_late = false
        late[id] = complete_later
      else
        complete_later()
      end
    elseif method == 'textDocument/copilotInlineEdit' then
      local result = { edits = { next_edit(options, params) } }
      table.insert(held, function()
        answer(nil, result)
      end)
      M.hold(options.holds)
    else
      answer(nil, vim.NIL)
    end
    return true, id
  end
end

--- The options of the server that runs.
---@type test.Script
local current

--- Holds the answers to requests for a next edit back, or sends those that are due.
function M.hold(on)
  current.holds = on
  while not on and held[1] do
    table.remove(held, 1)()
  end
  return ''
end

--- Answers completions with another text from now on.
function M.answer(text)
  current.answer = text
  return ''
end

---@class test.Script
---@field log string
---@field answer string
---@field choices? string[] the first one is `answer`
---@field delay_ms integer
---@field first_is_late? boolean
---@field loads? boolean
---@field replaces? integer
---@field old? string
---@field new? string
---@field holds? boolean
---@field late? integer versions that the answer to a request for a next edit is behind

---@param options test.Script
function M.configure(options)
  current = options
  local write = writer(options.log)
  local closing, late = false, {}
  vim.lsp.config('hone', {
    cmd = function(dispatchers)
      local function report(line)
        vim.schedule(function()
          dispatchers.notification('didChangeStatus', line)
        end)
      end
      return {
        request = requester(options, write, late, report),
        notify = function(method, params)
          write({ method = method, params = params })
          local answer = method == '$/cancelRequest' and late[params.id]
          if answer then
            answer()
          end
          if method == 'initialized' then
            local message = options.loads and 'loading the model' or 'scripted'
            report({ busy = options.loads == true, kind = 'Normal', message = message })
          end
          return true
        end,
        is_closing = function()
          return closing
        end,
        terminate = function()
          closing = true
          dispatchers.on_exit(0, 0)
        end,
      }
    end,
  })
end

return M
