--- A first file to press Tab in. The function before the cursor says so clearly what comes behind
--- it that the smallest model knows it too.

local M = {}

local ADVICE = 'Grey text is an offer: Tab accepts it, CTRL-] rejects it, typing continues.'

---@class hone.Scratch
---@field name string the language for people
---@field filetype string
---@field ending string of the file's name
---@field before string[] the lines up to the cursor, which is behind the last one
---@field after string[]

local function scratch(name, filetype, ending, comment, before, after)
  return {
    name = name,
    filetype = filetype,
    ending = ending,
    before = vim.list_extend({ comment .. ' ' .. ADVICE, '' }, before),
    after = after,
  }
end

---@type hone.Scratch[]
M.all = {
  scratch('Python', 'python', 'py', '#', {
    'def add(a, b):',
    '    return a + b',
    '',
    '',
    'def subtract(a, b):',
    '    return',
  }, {}),
  scratch('Rust', 'rust', 'rs', '//', {
    'fn add(a: i32, b: i32) -> i32 {',
    '    return a + b;',
    '}',
    '',
    'fn subtract(a: i32, b: i32) -> i32 {',
    '    return',
  }, { '}' }),
  scratch('Go', 'go', 'go', '//', {
    'package main',
    '',
    'func add(a, b int) int {',
    '\treturn a + b',
    '}',
    '',
    'func subtract(a, b int) int {',
    '\treturn',
  }, { '}' }),
  scratch('TypeScript', 'typescript', 'ts', '//', {
    'function add(a: number, b: number): number {',
    '    return a + b;',
    '}',
    '',
    'function subtract(a: number, b: number): number {',
    '    return',
  }, { '}' }),
  scratch('Lua', 'lua', 'lua', '--', {
    'local function add(a, b)',
    '  return a + b',
    'end',
    '',
    'local function subtract(a, b)',
    '  return',
  }, { 'end' }),
  scratch('C', 'c', 'c', '//', {
    'int add(int a, int b) {',
    '    return a + b;',
    '}',
    '',
    'int subtract(int a, int b) {',
    '    return',
  }, { '}' }),
}

--- The scratch files, the one for this file type first.
---@param filetype string
---@return hone.Scratch[]
function M.for_filetype(filetype)
  local sorted = {}
  for _, one in ipairs(M.all) do
    table.insert(sorted, one.filetype == filetype and 1 or #sorted + 1, one)
  end
  return sorted
end

--- Opens the file and goes into insert mode where an offer comes. It does not count as changed, so
--- that nothing asks whether to save it.
---@param one hone.Scratch
function M.open(one)
  -- It has a name, because the server completes files, and lies where nobody looks for it later.
  vim.cmd.split(vim.fn.fnameescape(vim.fn.tempname() .. '.' .. one.ending))
  local lines = vim.list_extend(vim.list_slice(one.before), one.after)
  vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  vim.bo.modified = false
  vim.api.nvim_create_autocmd('BufModifiedSet', {
    buffer = 0,
    callback = function(event)
      vim.bo[event.buf].modified = false
    end,
  })
  vim.api.nvim_win_set_cursor(0, { #one.before, 0 })
  vim.cmd.startinsert({ bang = true })
end

return M
