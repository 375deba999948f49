--- The line breaks of texts. The lines of a buffer have none, and the server's text of a buffer
--- with `fileformat=dos` has CRLF.

local M = {}

--- A text with the line breaks that buffers have.
function M.unix(text)
  return (text:gsub('\r\n', '\n'))
end

return M
