local ffi = require("ffi")
ffi.cdef("void *leak_block(long size); void call_back(void (*function)(long), long size);")
local library = ffi.load(arg[1])
local leak = assert(package.loadlib(arg[1], "leak_for_lua"))
local function by_ffi(size, count)
  for _ = 1, count do library.leak_block(size) end
end
by_ffi(1013, 300)
local function by_module(count)
  for _ = 1, count do leak(2011) end
end
by_module(300)
local function called(size)
  library.leak_block(size)
end
library.call_back(called, 3011)
for _, lines in ipairs({ 254, 300, 70000 }) do
  local text = "local leak = ..." .. ("\n"):rep(lines) .. "leak(4001)"
  assert(loadstring(text, "=long" .. lines))(leak)
end
xpcall(function() error("no") end, function() leak(5009) end)
getmetatable(newproxy(true)).__gc = function() leak(6011) end
collectgarbage()
local function deep(levels)
  if levels == 0 then leak(7001) return end
  deep(levels - 1)
  return 1
end
deep(300)
