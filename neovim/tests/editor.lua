--- One real Neovim in tmux. Tests press its keys and read its screen.

local wait = require('wait')

local Editor = {}
Editor.__index = Editor

local COLUMNS, ROWS = 90, 14

--- The width of a terminal as most people have it.
Editor.USUAL_COLUMNS = 80

local PLUGIN = vim.fs.dirname(vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2))))

--- Each editor has a tmux server of its own, so that ending one ends nothing else.
local opened = 0

local INIT = [[
vim.opt.rtp:append(%q)
vim.o.swapfile = false
vim.o.statusline = "%%{mode()} %%{v:lua.require'hone'.statusline()}"
]]

--- A Neovim that waits for a key does not answer, so every command has a limit.
local COMMAND_TIMEOUT_MS = 10000

local function run(command, env)
  local options = { text = true, env = env, timeout = COMMAND_TIMEOUT_MS }
  local result = vim.system(command, options):wait()
  return result.code == 0, result.stdout, result.stderr
end

function Editor.open(home, file, options)
  opened = opened + 1
  local folder = ('%s/nvim%d'):format(home.path, opened)
  vim.fn.mkdir(folder, 'p')
  local init = assert(io.open(folder .. '/init.lua', 'w'))
  init:write(INIT:format(PLUGIN) .. (options.init or ''))
  init:close()
  local self = setmetatable({
    socket = folder .. '/nvim.sock',
    tmux_name = ('hone-%d-%d'):format(vim.uv.os_getpid(), opened),
    home = home,
  }, Editor)
  local env = vim.tbl_extend('force', home.env, {
    XDG_STATE_HOME = folder .. '/state',
    XDG_DATA_HOME = folder .. '/data',
    XDG_CACHE_HOME = folder .. '/cache',
    XDG_CONFIG_HOME = folder .. '/config',
    COLORTERM = 'truecolor',
    -- Neovim 0.12 asks the terminal for its colours, and complains in its messages where a busy
    -- machine answers later than after 100 ms.
    NVIM_NOTTYFAST = '1',
  }, options.env or {})
  self.log = folder .. '/state/nvim/lsp.log'
  local command = ('exec "%s" --listen "%s" -u "%s/init.lua" "%s"'):format(
    vim.env.NVIM,
    self.socket,
    folder,
    file
  )
  local assignments = { 'env', 'TERM=tmux-256color' }
  for name, value in pairs(env) do
    table.insert(assignments, name .. '=' .. value)
  end
  local size = { '-x', tostring(options.columns or COLUMNS), '-y', tostring(ROWS) }
  local start = vim.iter({ 'new-session', '-d', size, assignments, 'sh', '-c', command })
  self:tmux(unpack(start:flatten():totable()))
  self.tmux_socket = vim.trim(self:tmux('display-message', '-p', '#{socket_path}'))
  return self
end

function Editor:tmux(...)
  local ok, out, err = run({ 'tmux', '-L', self.tmux_name, '-f', '/dev/null', ... })
  assert(ok, err)
  return out
end

--- Presses keys by tmux's names: `Tab`, `Escape`, `C-Right`.
function Editor:press(...)
  self:tmux('send-keys', ...)
end

--- Types a text character by character.
function Editor:type(text)
  self:tmux('send-keys', '-l', text)
end

---@return string
function Editor:screen()
  return (self:tmux('capture-pane', '-p'):gsub(' +\n', '\n'))
end

--- Waits until the screen shows this text.
function Editor:wait_for(text)
  wait.until_(('%q on the screen'):format(text), function()
    return self:screen():find(text, 1, true)
  end, function()
    return self:screen()
  end)
end

function Editor:wait_until_gone(text)
  wait.until_(('%q to leave the screen'):format(text), function()
    return not self:screen():find(text, 1, true)
  end, function()
    return self:screen()
  end)
end

function Editor:eval(expression)
  local ok, out, err =
    run({ vim.env.NVIM, '--server', self.socket, '--remote-expr', expression }, self.home.env)
  assert(ok, ('%s: no answer; %s\n%s'):format(expression, err, self:screen()))
  return out
end

---@return string[] the buffer
function Editor:lines()
  return vim.json.decode(self:eval('json_encode(getline(1, "$"))'))
end

function Editor:mode()
  return vim.trim(self:eval('mode(1)'))
end

--- Waits for a mode by the first letter of its name.
function Editor:wait_for_mode(letter)
  wait.until_('mode ' .. letter, function()
    return self:mode():sub(1, 1) == letter
  end)
end

--- Waits until the buffer has this text in a line.
function Editor:wait_for_line(number, text)
  wait.until_(('%q in line %d'):format(text, number), function()
    return self:lines()[number] == text
  end, function()
    return self:screen()
  end)
end

local IS_WAITING = "require('hone.session').is_waiting() or require('hone.next_edit').is_waiting()"

--- Waits until Hone waits for nothing: for no pause in typing and no answer. What was typed must be
--- in the buffer by then.
function Editor:rest()
  wait.until_('nothing to be under way', function()
    return self:eval(('luaeval("%s")'):format(IS_WAITING)):find('false', 1, true)
  end)
end

local FLUSH = "vim.lsp.get_clients({ name = 'hone' })[1]:notify('$/setTrace', { value = 'off' })"

--- Has Neovim report the text now. Otherwise it reports changes within 150 ms as one.
function Editor:flush()
  self:eval(('luaeval("%s")'):format(FLUSH))
end

--- Waits until the keys pressed so far were used, in normal mode.
function Editor:wait_for_keys()
  self.marks = (self.marks or 0) + 1
  self:type(':let g:used = ' .. self.marks)
  self:press('Enter')
  wait.until_('the keys to be used', function()
    return tonumber(self:eval('get(g:, "used", 0)')) == self.marks
  end)
end

function Editor:messages()
  return self:eval('execute("messages")')
end

--- Closes Neovim as a user would, so that the server sees the session end.
function Editor:quit()
  self:press('Escape')
  self:type(':qa!')
  self:press('Enter')
  self:wait_for_end()
end

function Editor:wait_for_end()
  wait.until_('Neovim to end', function()
    return not run({ 'tmux', '-L', self.tmux_name, 'has-session' })
  end, function()
    return self:screen()
  end)
end

function Editor:kill()
  run({ 'tmux', '-L', self.tmux_name, 'kill-server' })
  -- tmux does not remove its socket.
  os.remove(self.tmux_socket)
end

return Editor
