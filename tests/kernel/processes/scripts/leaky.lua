local leak = assert(package.loadlib(arg[1], "leak_for_lua"))
local function take(size)
  leak(size)
  return 1
end
local function each(size)
  for i = 1, 3 do take(size) end
end
function guarded()
  pcall(function()
    each(1009)
    error("no")
  end)
  leak(2003)
end
guarded()
local co = coroutine.create(function(size)
  each(size)
  coroutine.yield(1)
  leak(4001)
end)
coroutine.resume(co, 3001)
leak(5003)
coroutine.resume(co)
local indexed = setmetatable({}, { __index = function(_, size) leak(size) return 1 end })
local _ = indexed[6007]
string.gsub("a", "a", function() leak(7001) end)
local text = "\n\nlocal leak = ... leak(8009)"
assert((loadstring or load)(text, "=made"))(leak)
local function nested(level)
  if level == 0 then leak(9001) else pcall(nested, level - 1) end
end
nested(5)
