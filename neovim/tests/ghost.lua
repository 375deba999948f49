--- An offer that a story begins with, and the check of its outcome.

local check = require('check')
local M = {}

--- The model continues this with ` Thursday, Friday, …`.
M.WEEK = '// Monday, Tuesday, Wednesday,'

M.GHOST = M.WEEK .. ' Thursday, Friday'

function M.kinds(offer)
  return vim.tbl_map(function(outcome)
    return outcome.kind
  end, offer.outcomes)
end

--- Opens a file whose first line the model continues, and waits for the offer.
---@return test.Editor
function M.with_ghost(home, name, options)
  local editor = home:edit(name, M.WEEK .. '\n\nfn main() {}\n', options)
  editor:press('A')
  editor:wait_for(M.GHOST)
  check.equal(M.WEEK, editor:lines()[1], 'a ghost is not in the buffer')
  home:first_offer(name)
  return editor
end

--- Checks that the file's first offer has this one outcome and was shown once, and that no offer of
--- the file has two outcomes.
function M.outcome_is(home, editor, name, expected)
  home:first_outcome(name)
  editor:quit()
  home:wait_for_no_session()
  local all = home:recorded(name)
  for _, any in ipairs(all) do
    assert(#any.outcomes <= 1, 'two outcomes: ' .. vim.inspect(any))
  end
  local offer = all[1]
  check.equal({ expected }, M.kinds(offer), name)
  check.equal(1, offer.shown, 'confirmed as shown')
  return offer
end

return M
