--- Finds programs. Neovim's own search and that of Windows begin in the current folder, where a
--- stranger's repository may have a program of the same name. So a name is searched in the absolute
--- entries of PATH alone.

local M = {}

---@class hone.Search
---@field path string the environment variable PATH
---@field is_windows boolean
---@field is_executable fun(file: string): boolean

--- Returns how programs are searched on this machine.
---@return hone.Search
function M.here()
  return {
    path = vim.env.PATH or '',
    is_windows = vim.fn.has('win32') == 1,
    is_executable = function(file)
      return vim.fn.executable(file) == 1
    end,
  }
end

--- Returns true if a path means the same file in every folder. On Windows `\file` means another one
--- on another drive, and `C:file` in another folder.
local function is_absolute(path, is_windows)
  if is_windows then
    return path:find('^%a:[\\/]') ~= nil or path:find('^[\\/][\\/][^\\/]') ~= nil
  end
  return vim.startswith(path, '/')
end

--- Returns true if a program is named by its path instead of a name that is to be searched.
local function is_path(program, is_windows)
  return program:find(is_windows and '[\\/:]' or '/') ~= nil
end

--- Windows runs files with other endings through a shell.
local function with_ending(file, is_windows)
  return is_windows and not file:lower():find('%.exe$') and file .. '.exe' or file
end

--- Returns the full path of a program, or nil and the reason: `relative` or `missing`.
---@param program string its name, or its full path
---@param search? hone.Search this machine's by default
---@return string? file, 'relative'|'missing'|nil reason
function M.find(program, search)
  search = search or M.here()
  local is_windows = search.is_windows
  if is_path(program, is_windows) then
    if not is_absolute(program, is_windows) then
      return nil, 'relative'
    end
    local file = with_ending(program, is_windows)
    if search.is_executable(file) then
      return file
    end
    return nil, 'missing'
  end
  for folder in vim.gsplit(search.path, is_windows and ';' or ':', { plain = true }) do
    if is_windows then
      folder = folder:gsub('"', '')
    end
    local file = folder .. '/' .. with_ending(program, is_windows)
    if is_absolute(folder, is_windows) and search.is_executable(file) then
      return file
    end
  end
  return nil, 'missing'
end

return M
