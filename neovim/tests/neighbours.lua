--- Hone next to what else acts on the text of an insert mode: completion menus, another
--- plugin with ghost text, and tools that change the file when it is saved. The plugins are those
--- of `install-neighbours.sh`, in the folder that $HONE_NEIGHBOURS names.

local check = require('check')
local ghost = require('ghost')
local wait = require('wait')

local WEEK, GHOST = ghost.WEEK, ghost.GHOST

--- The menu completes the beginning of this word, which stands in the file.
local WORD, BEGINNING = 'lanternfish', 'lantern'

--- An entry of a menu that begins as an offer continues.
local ENTRY = 'Thornfish'

local folder = vim.env.HONE_NEIGHBOURS

local BLINK = [[
require('blink.cmp').setup({
  keymap = { preset = 'super-tab' },
  fuzzy = { implementation = 'lua' },
  sources = { default = { 'buffer' } },
})
]]

local CMP = [[
local cmp = require('cmp')
cmp.register_source('buffer', require('cmp_buffer'))
cmp.setup({
  sources = { { name = 'buffer' } },
  mapping = {
    ['<Tab>'] = cmp.mapping(function(fallback)
      if cmp.visible() then cmp.confirm({ select = true }) else fallback() end
    end, { 'i' }),
  },
})
]]

--- The lines of an `init.lua` that load plugins.
local function init(plugins, setup)
  local lines = vim.tbl_map(function(plugin)
    return ('vim.opt.rtp:prepend(%q)'):format(folder .. '/' .. plugin)
  end, plugins)
  table.insert(lines, setup)
  return table.concat(lines, '\n')
end

local function accepted(home, name)
  return vim.tbl_filter(function(offer)
    return offer.outcomes[1] and offer.outcomes[1].kind == 'accepted'
  end, home:recorded(name))
end

--- Opens a file whose first line the model continues, and waits for the offer.
local function with_ghost(home, name, options)
  local editor = home:edit(name, WEEK .. '\n\n' .. WORD .. '\n', options)
  editor:press('A')
  editor:wait_for(GHOST)
  return editor
end

local function tab_takes_the_offer(home, name, options)
  local editor = with_ghost(home, name, options)
  editor:press('Tab')
  wait.until_('the offer in the buffer', function()
    return vim.startswith(editor:lines()[1], GHOST)
  end)
  check.equal('', editor:messages():match('Error.*') or '', 'messages')
  editor:quit()
  home:wait_for_no_session()
  check.equal(1, #accepted(home, name), 'accepted offers')
end

--- Presses Tab while the menu is open and there is an offer on screen. Whose Tab it is, the first
--- line of `expected` says.
local function tab_in_menu(home, name, options, expected)
  local editor = home:edit(name, WEEK .. '\n\n' .. ENTRY .. '\n', options)
  if options.mapped_first then
    -- The other plugin maps its keys at the first insert, and Hone maps its own again after that.
    editor:press('i')
    editor:press('Escape')
    editor:type(':Hone restart')
    editor:press('Enter')
    wait.until_('the server to be gone', function()
      return not editor:screen():find('hone smollm2', 1, true)
    end)
    editor:wait_for('hone smollm2')
  end
  editor:press('A')
  editor:type(' Th')
  editor:wait_for(GHOST)
  wait.until_('the menu', function()
    return editor:eval(options.is_open):find('true')
  end, function()
    return editor:screen()
  end)
  editor:press('Tab')
  wait.until_('the text in the buffer', function()
    return vim.startswith(editor:lines()[1], expected)
  end, function()
    return editor:screen()
  end)
  editor:rest()
  check.lacks(editor:lines()[1], '\t')
  editor:quit()
  home:wait_for_no_session()
end

--- While the menu is open, Tab takes its entry.
local function tab_takes_the_entry(home, name, options)
  tab_in_menu(home, name, options, WEEK .. ' ' .. ENTRY)
  check.equal({}, accepted(home, name), 'accepted offers')
end

local neighbours = {
  {
    'while Neovim’s own menu is open, Tab does what it did without Hone',
    function(home)
      local editor = home:edit('menu.rs', WORD .. '\n\n', {
        init = [[vim.o.completeopt = 'menuone,noinsert']],
      })
      editor:type('Go' .. BEGINNING)
      editor:press('C-n')
      wait.until_('the menu', function()
        return vim.trim(editor:eval('pumvisible()')) == '1'
      end, function()
        return editor:screen()
      end)
      editor:press('Tab')
      wait.until_('the indentation in the buffer', function()
        return editor:lines()[3] == BEGINNING .. ' '
      end, function()
        return editor:screen()
      end)
      editor:quit()
      home:wait_for_no_session()
      check.equal({}, accepted(home, 'menu.rs'), 'accepted offers')
    end,
  },
  {
    'a formatter that changes the file on save takes no verdict back',
    function(home)
      local editor = with_ghost(home, 'format.rs', {
        init = [[vim.cmd('autocmd BufWritePre * silent %s/^/  /')]],
      })
      editor:press('Tab')
      editor:press('Escape')
      editor:type(':w')
      editor:press('Enter')
      wait.until_('the formatted text', function()
        return vim.startswith(editor:lines()[1], '  ' .. GHOST)
      end)
      editor:quit()
      home:wait_for_no_session()
      local offer = home:recorded('format.rs')[1]
      check.equal(1, #offer.outcomes, 'verdicts')
      check.equal('accepted', offer.outcomes[1].kind)
    end,
  },
  {
    'saving by itself leaves the offer on screen',
    function(home)
      local editor = with_ghost(home, 'autosave.rs', {
        init = [[vim.cmd('autocmd User Save silent update')]],
      })
      editor:eval([[execute('doautocmd User Save')]])
      check.equal('0', vim.trim(editor:eval('&modified')))
      editor:rest()
      editor:wait_for(GHOST)
      editor:press('Tab')
      check.equal('accepted', home:first_outcome('autosave.rs').outcomes[1].kind)
      editor:quit()
    end,
  },
}

--- The stories of a plugin. They are played where $HONE_NEIGHBOURS names a folder, because the
--- plugins come from GitHub, which not every machine reaches.
local function with(plugins, stories)
  if not folder then
    return
  end
  for _, plugin in ipairs(plugins) do
    local found = vim.uv.fs_stat(folder .. '/' .. plugin)
    assert(found, plugin .. ' is missing; see install-neighbours.sh')
  end
  vim.list_extend(neighbours, stories)
end

with({ 'blink.cmp' }, {
  {
    'blink.cmp: without its menu Tab takes the offer',
    function(home)
      tab_takes_the_offer(home, 'blink.rs', { init = init({ 'blink.cmp' }, BLINK) })
    end,
  },
  {
    'blink.cmp: while its menu is open, Tab takes the entry, whoever mapped it first',
    function(home)
      for name, mapped_first in pairs({ ['menu-hone.rs'] = false, ['menu-blink.rs'] = true }) do
        tab_takes_the_entry(home, name, {
          init = init({ 'blink.cmp' }, BLINK),
          is_open = [[luaeval('tostring(require("blink.cmp").is_menu_visible())')]],
          mapped_first = mapped_first,
        })
      end
    end,
  },
})

with({ 'blink.cmp' }, {
  {
    'blink.cmp, whose menu does not use Tab: Tab takes the offer, whoever mapped it first',
    function(home)
      local init_lua = init({ 'blink.cmp' }, (BLINK:gsub('super%-tab', 'default')))
      for name, mapped_first in pairs({ ['free-hone.rs'] = false, ['free-blink.rs'] = true }) do
        tab_in_menu(home, name, {
          init = init_lua,
          is_open = [[luaeval('tostring(require("blink.cmp").is_menu_visible())')]],
          mapped_first = mapped_first,
        }, GHOST)
        check.equal(1, #accepted(home, name), 'accepted offers')
      end
    end,
  },
})

with({ 'nvim-cmp', 'cmp-buffer' }, {
  {
    'nvim-cmp, whose menu does not use Tab: Tab takes the offer',
    function(home)
      local setup = CMP:gsub("%['<Tab>'%]", "['<F3>']")
      tab_in_menu(home, 'free-cmp.rs', {
        init = init({ 'nvim-cmp', 'cmp-buffer' }, setup),
        is_open = [[luaeval('tostring(require("cmp").visible())')]],
      }, GHOST)
      check.equal(1, #accepted(home, 'free-cmp.rs'), 'accepted offers')
    end,
  },
  {
    'nvim-cmp: without its menu Tab takes the offer',
    function(home)
      tab_takes_the_offer(home, 'cmp.rs', { init = init({ 'nvim-cmp', 'cmp-buffer' }, CMP) })
    end,
  },
  {
    'nvim-cmp: while its menu is open, Tab takes the entry, whoever mapped it first',
    function(home)
      for name, mapped_first in pairs({ ['menu-hone.py'] = false, ['menu-cmp.py'] = true }) do
        tab_takes_the_entry(home, name, {
          init = init({ 'nvim-cmp', 'cmp-buffer' }, CMP),
          is_open = [[luaeval('tostring(require("cmp").visible())')]],
          mapped_first = mapped_first,
        })
      end
    end,
  },
})

with({ 'copilot.vim' }, {
  {
    'copilot.vim, not signed in: Tab takes the offer',
    function(home)
      tab_takes_the_offer(home, 'copilot.rs', { init = init({ 'copilot.vim' }, '') })
    end,
  },
})

return neighbours
