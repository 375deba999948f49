--- Hone's keys in a snippet: a key that goes to the next placeholder does that, also while an offer
--- is on screen. Real Neovims play it against a scripted server.

local check = require('check')
local open = require('scripted').open
local wait = require('wait')

local SHOWN = 'textDocument/didShowCompletion'

--- A snippet on `<F2>`.
local SNIPPET = [[
vim.keymap.set('i', '<F2>', function()
  vim.snippet.expand('def ${1:name}(${2:args}):\n  return ${0}')
end)
]]

--- A plugin with placeholders, of which one is ahead while `vim.g.ahead` is set. `jumped` counts
--- the ways to the next one, which its own mapping of a key goes.
local PLUGIN = [[
vim.g.jumped, vim.g.ahead = 0, 1
local function is_ahead() return vim.g.ahead == 1 end
package.loaded['%s'] = %s
vim.keymap.set('i', '%s', function() vim.g.jumped = vim.g.jumped + 1 end)
]]

local PLUGINS = {
  luasnip = '{ locally_jumpable = is_ahead, jumpable = function() return true end }',
  ['mini.snippets'] = '{ session = { get = function() return is_ahead() and {} or nil end } }',
  snippy = '{ can_jump = is_ahead }',
}

--- Opens a file with an offer behind the cursor.
local function with_offer(home, name, init)
  local editor, server = open(home, name, 'x\n', { answer = 'offer' }, init)
  editor:press('A')
  server:wait_for(SHOWN, 1)
  return editor, server
end

--- Waits until the offer behind this place is on screen. The report of an earlier one may be late.
local function wait_for_offer_at(server, line, character)
  wait.until_('the offer behind what was typed', function()
    local sent = server:sent(SHOWN)
    local at = #sent > 0 and sent[#sent].params.item.range.start
    return at and at.line == line and at.character == character
  end)
end

local function number(editor, expression)
  return tonumber(editor:eval(expression))
end

return {
  {
    'in a snippet Tab goes to the next placeholder, and behind the last one it accepts',
    function(home)
      local editor, server = open(home, 'snippet.txt', '\n', { answer = 'offer' }, SNIPPET)
      editor:press('i')
      editor:press('F2')
      wait.until_('the first placeholder', function()
        return editor:mode() == 's'
      end)
      editor:type('area')
      wait.until_('an offer for the first placeholder', function()
        return editor:eval('luaeval("require(\'hone\').is_visible()")'):find('true')
      end)
      editor:press('Tab')
      wait.until_('the second placeholder', function()
        return editor:mode() == 's'
      end)
      check.equal({ 'def area(args):', '  return ' }, editor:lines())
      check.equal({}, server:sent('workspace/executeCommand'), 'nothing is accepted')
      for _, message in ipairs(server:sent('hone/didReject')) do
        check.equal('hidden', message.params.reason, 'nobody rejected it')
      end
      editor:type('r')
      editor:press('Tab')
      wait.until_('the end of the snippet', function()
        return number(editor, 'line(".")') == 2
      end)
      editor:type('x')
      wait_for_offer_at(server, 1, 10)
      editor:press('Tab')
      server:wait_for('workspace/executeCommand', 1)
      wait.until_('the offer in the buffer', function()
        return vim.deep_equal({ 'def area(r):', '  return xoffer' }, editor:lines())
      end)
    end,
  },
  {
    'the placeholders of a plugin have the key that the plugin has',
    function(home)
      for plugin, module in pairs(PLUGINS) do
        local init = PLUGIN:format(plugin, module, '<Tab>')
        local editor, server = with_offer(home, plugin .. '.txt', init)
        editor:press('Tab')
        wait.until_('a way to the next placeholder', function()
          return number(editor, 'g:jumped') == 1
        end)
        check.equal({ 'x' }, editor:lines())
        check.equal({}, server:sent('workspace/executeCommand'), 'nothing is accepted')
        editor:rest()
        editor:eval('execute("let g:ahead = 0")')
        editor:type('y')
        wait_for_offer_at(server, 0, 2)
        editor:press('Tab')
        server:wait_for('workspace/executeCommand', 1)
        check.equal(1, number(editor, 'g:jumped'), plugin)
      end
    end,
  },
  {
    'where a plugin has another key for its placeholders, Tab accepts',
    function(home)
      local init = PLUGIN:format('luasnip', PLUGINS.luasnip, '<F4>')
      local editor, server = with_offer(home, 'otherkey.txt', init)
      editor:press('Tab')
      server:wait_for('workspace/executeCommand', 1)
      check.equal(0, number(editor, 'g:jumped'))
      wait.until_('the offer in the buffer', function()
        return editor:lines()[1] == 'xoffer'
      end)
    end,
  },
}
