--- Walks from next edit to next edit in a real Neovim with the real server: what is drawn, what is
--- in the buffer, and the outcome that the daemon logged.

local check = require('check')
local wait = require('wait')

--- What the key says where there is no next edit.
local NOT_TWICE = 'hone: You have not just made the same edit twice.'
local NO_OTHER_PLACE = 'hone: What you changed twice fits no other place of the open files.'

local LOADS = 'file.load(1);\nfile.load(2);\nfile.load(3);\nfile.load(4);\nfile.load(5);\n'

--- Changes the word behind the dot in the first line, and repeats that in the second one. Each
--- change is reported by itself, as it is where a person takes a moment from one to the other.
local function change_twice(editor, word)
  editor:type('ggwwcw' .. word)
  editor:press('Escape')
  wait.until_('the first change', function()
    return editor:lines()[1]:find(word, 1, true) and editor:mode() == 'n'
  end)
  editor:flush()
  editor:type('j0ww.')
  wait.until_('the second change', function()
    return editor:lines()[2]:find(word, 1, true) and editor:mode() == 'n'
  end)
end

local function wait_for_lines(editor, expected)
  local found
  wait.until_('the text', function()
    found = editor:lines()
    return vim.deep_equal(found, expected)
  end, function()
    return vim.inspect(found)
  end)
end

local function wait_for_cursor(editor, row)
  wait.until_(('the cursor in line %d'):format(row), function()
    return tonumber(editor:eval('line(".")')) == row
  end)
end

local function wait_for_line_count(editor, expected)
  wait.until_(('a text of %d lines'):format(expected), function()
    return #editor:lines() == expected
  end, function()
    return editor:screen()
  end)
end

--- Waits until an edit is drawn whose old text begins in this line.
local function wait_for_edit(editor, row)
  local expression = 'nvim_buf_get_extmarks(0, nvim_create_namespace("hone.next_edit"), 0, -1, {})'
  local found
  wait.until_(('an edit in line %d'):format(row), function()
    found = vim.json.decode(editor:eval(('json_encode(%s)'):format(expression)))
    return found[1] and found[1][2] == row - 1
  end, function()
    return vim.inspect(found)
  end)
end

--- Presses the key until it finds a place in a file that is not open, as a person would. On a busy
--- machine the time of one search may not be enough. With a hint on the screen the key would open
--- that file, so each answer is waited for.
local function press_until_hint(editor, hint)
  local said
  wait.until_(hint, function()
    editor:eval('execute("messages clear")')
    editor:press('M-n')
    local answer = wait.until_('an answer to the key', function()
      local is_there = editor:screen():find(hint, 1, true)
      said = editor:messages()
      return is_there and 'hint' or said:find('hone: ', 1, true) and 'nowhere'
    end, function()
      return editor:screen()
    end)
    if answer == 'hint' then
      return true
    end
    check.contains(said, NO_OTHER_PLACE)
  end)
end

local function outcomes_are(home, name, expected)
  local found
  wait.until_('the outcomes', function()
    found = home:next_edit_outcomes(name)
    return #found >= #expected
  end, function()
    return vim.inspect(found)
  end)
  check.equal(expected, found)
end

local function setting(home, value)
  home:hone('config', 'set', 'completion.next_edit', value)
end

return {
  {
    'a walk: the key goes to the next edit and again makes it, and Escape rejects one',
    function(home)
      local editor = home:edit('walk.rs', LOADS)
      change_twice(editor, 'fetch')
      editor:flush()
      editor:rest()
      check.lacks(editor:screen(), 'loadfetch')
      editor:press('M-n')
      for row = 3, 4 do
        editor:wait_for(('loadfetch(%d);'):format(row))
        if row > 3 then
          editor:press('M-n')
        end
        wait_for_cursor(editor, row)
        editor:press('M-n')
      end
      editor:wait_for('loadfetch(5);')
      editor:press('Escape')
      editor:wait_until_gone('loadfetch')
      local last = { 'file.load(5);' }
      local left = { 'file.fetch(1);', 'file.fetch(2);', 'file.fetch(3);', 'file.fetch(4);' }
      wait_for_lines(editor, vim.list_extend(vim.list_slice(left), last))
      outcomes_are(home, 'walk.rs', { 'accepted', 'accepted', 'rejected' })
      editor:type('u')
      left[4] = 'file.load(4);'
      wait_for_lines(editor, vim.list_extend(left, last))
    end,
  },
  {
    'a walk that cannot begin: the key says why',
    function(home)
      local editor = home:edit('walknot.rs', LOADS)
      editor:type('ggwwcwfetch')
      editor:press('Escape')
      editor:wait_for_mode('n')
      editor:flush()
      editor:press('M-n')
      editor:wait_for(NOT_TWICE)
    end,
  },
  {
    'a walk as you edit: a hint says how far away the next edit is',
    function(home)
      setting(home, 'on')
      local text = 'frame.parse(1);\nframe.parse(2);\n' .. ('\n'):rep(40) .. 'frame.parse(3);\n'
      local editor = home:edit('walkfar.rs', text)
      change_twice(editor, 'decode')
      editor:wait_for('→ 41 lines below (<M-n>)')
      editor:press('M-n')
      editor:wait_for('parsedecode(3);')
      editor:press('M-n')
      wait.until_('the edit', function()
        return editor:lines()[43] == 'frame.decode(3);'
      end)
      outcomes_are(home, 'walkfar.rs', { 'accepted' })
      setting(home, 'subtle')
    end,
  },
  {
    'a walk through lines that are deleted',
    function(home)
      local text = {}
      for _, name in ipairs({ 'one', 'two', 'three', 'four' }) do
        local body = ('fn %s() {\n    trace();\n    %s_of_many();\n}\n'):format(name, name)
        table.insert(text, body)
      end
      local editor = home:edit('walklines.rs', table.concat(text))
      editor:type('2Gdd')
      wait_for_line_count(editor, 15)
      -- Changes that follow each other at once are sent as one. The key sends the first one.
      editor:press('M-n')
      editor:wait_for(NOT_TWICE)
      editor:type('5Gdd')
      wait_for_line_count(editor, 14)
      editor:press('M-n')
      for _, place in ipairs({ { 8, 13 }, { 11, 12 } }) do
        local row, left = unpack(place)
        wait_for_edit(editor, row)
        if row > 8 then
          editor:press('M-n')
        end
        wait_for_cursor(editor, row)
        wait_for_line_count(editor, left + 1)
        editor:press('M-n')
        wait_for_line_count(editor, left)
      end
      check.lacks(table.concat(editor:lines()), 'trace')
      outcomes_are(home, 'walklines.rs', { 'accepted', 'accepted' })
    end,
  },
  {
    'a walk into another file that is open',
    function(home)
      local editor = home:edit('walkother.rs', 'queue.push(1);\n')
      local first = ('%s/project/%s'):format(home.path, 'walkhere.rs')
      vim.fn.writefile({ 'queue.push(2);', 'queue.push(3);' }, first)
      editor:type((':set hidden | edit %s'):format(first))
      editor:press('Enter')
      wait.until_('the other file', function()
        return editor:lines()[1] == 'queue.push(2);'
      end)
      change_twice(editor, 'append')
      editor:press('M-n')
      editor:wait_for('pushappend(1);')
      check.contains(editor:eval('expand("%:t")'), 'walkother.rs')
      editor:press('M-n')
      wait_for_lines(editor, { 'queue.append(1);' })
      outcomes_are(home, 'walkother.rs', { 'accepted' })
      editor:type('u')
      wait_for_lines(editor, { 'queue.push(1);' })
      editor:press('C-o')
      wait.until_('the way back', function()
        return editor:eval('expand("%:t")'):find('walkhere.rs', 1, true)
      end)
      check.equal({ 'queue.append(2);', 'queue.append(3);' }, editor:lines())
    end,
  },
  {
    'a walk into a file that is not open',
    function(home)
      local shut = ('%s/project/%s'):format(home.path, 'walkshut.rs')
      vim.fn.writefile({ 'end();', 'stack.pop_one(1);' }, shut)
      vim.fn.mkdir(home.path .. '/project/.git', 'p')
      local editor = home:edit('walkshutters.rs', 'stack.pop_one(2);\nstack.pop_one(3);\n')
      change_twice(editor, 'take_one')
      press_until_hint(editor, '→ walkshut.rs:2 (<M-n>)')
      local why = home:hone('why', home.path .. '/project/walkshutters.rs'):gsub('%s+', ' ')
      check.contains(why, 'walkshut.rs:2, which is not open')
      editor:type(':set hidden')
      editor:press('Enter')
      editor:press('M-n')
      editor:wait_for('pop_onetake_one(1);')
      check.contains(editor:eval('expand("%:t")'), 'walkshut.rs')
      wait_for_cursor(editor, 2)
      editor:press('M-n')
      wait_for_lines(editor, { 'end();', 'stack.take_one(1);' })
      outcomes_are(home, 'walkshut.rs', { 'accepted' })
    end,
  },
}
