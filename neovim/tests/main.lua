--- Runs the tests and prints how each went. It exits with an error if one failed.

local here = vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2)))
vim.opt.rtp:prepend(vim.fs.dirname(here))
package.path = here .. '/?.lua;' .. package.path

local Home = require('home')

local pattern = arg[1] or ''
local suites = {
  'unit',
  'program',
  'edit_place',
  'edit_rest',
  'fake',
  'repeats',
  'snippets',
  'next_edit',
  'offers',
  'commands',
  'walks',
  'neighbours',
}

local function say(text)
  io.stdout:write(text .. '\n')
  io.stdout:flush()
end

local home = Home.create()
local failed, passed = 0, 0
for _, suite in ipairs(suites) do
  for _, test in ipairs(require(suite)) do
    local name, run = unpack(test)
    if (suite .. ': ' .. name):find(pattern) then
      local started = vim.uv.hrtime()
      local ok, trouble = xpcall(run, debug.traceback, home)
      home:close_editors()
      local ms = (vim.uv.hrtime() - started) / 1e6
      say(('%s  %-60s %5d ms'):format(ok and 'ok  ' or 'FAIL', name, ms))
      if ok then
        passed = passed + 1
      else
        failed = failed + 1
        say((tostring(trouble):gsub('\n', '\n      ')))
      end
    end
  end
end
home:remove()

say(('%d passed, %d failed, Neovim %s'):format(passed, failed, tostring(vim.version())))
os.exit(failed == 0 and passed > 0 and 0 or 1)
