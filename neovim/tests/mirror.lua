--- A server on this machine that sends the files of a folder, as a mirror of the hub does.

local M = {}

--- The first line of a request, such as `GET /org/repo/resolve/main/file.gguf HTTP/1.1`.
local REQUEST = '^GET (%S+) HTTP'

local HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n'

---@param folder string
---@return { url: string, close: fun() }
function M.of(folder)
  local server = assert(vim.uv.new_tcp())
  assert(server:bind('127.0.0.1', 0))
  server:listen(8, function()
    local client = assert(vim.uv.new_tcp())
    server:accept(client)
    client:read_start(function(_, request)
      local path = request and request:match(REQUEST)
      if not path then
        return
      end
      client:read_stop()
      local file = assert(io.open(vim.fs.joinpath(folder, vim.fs.basename(path)), 'rb'))
      local body = file:read('*a')
      file:close()
      client:write({ HEAD:format(#body), body }, function()
        client:close()
      end)
    end)
  end)
  return {
    url = ('http://127.0.0.1:%d'):format(server:getsockname().port),
    close = function()
      server:close()
    end,
  }
end

return M
