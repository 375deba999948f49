--- Assertions that show what was expected and what was found.

local M = {}

function M.equal(expected, actual, what)
  if not vim.deep_equal(expected, actual) then
    local message = '%s\nexpected %s\nfound    %s'
    error(message:format(what or 'differs', vim.inspect(expected), vim.inspect(actual)), 2)
  end
end

function M.contains(text, part)
  if not text:find(part, 1, true) then
    error(('%q is missing in\n%s'):format(part, text), 2)
  end
end

function M.lacks(text, part)
  if text:find(part, 1, true) then
    error(('%q should not be in\n%s'):format(part, text), 2)
  end
end

return M
