-- clock.lua: put before a script of the store, it makes TIME an argument: the last one, in ms since the epoch.
-- Everything else is the script's own, on a real server.

local real, at = redis, tonumber(table.remove(ARGV))
local redis = setmetatable({
  call = function(command, ...)
    if command == 'TIME' then return {math.floor(at / 1000), at % 1000 * 1000} end
    return real.call(command, ...)
  end,
}, {__index = real})
