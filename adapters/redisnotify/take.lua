-- Takes ARGV[2+3i] permits from bucket KEYS[i+1], from every bucket or from none.
-- ARGV[1]: now in microseconds, or "" for the clock of Redis.
-- ARGV per bucket: permits, rate per second, burst.
-- Returns the microseconds to wait, 0 when the permits are taken.
local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local left, wait = {}, 0
for i, key in ipairs(KEYS) do
  local want = tonumber(ARGV[3 * i - 1])
  local rate = tonumber(ARGV[3 * i])
  local burst = tonumber(ARGV[3 * i + 1])
  local tokens, at = burst, now
  local have = redis.call('HMGET', key, 't', 'a')
  if have[1] then
    at = math.max(now, tonumber(have[2]))
    tokens = math.min(burst, tonumber(have[1]) + (at - tonumber(have[2])) / 1000000 * rate)
  end
  local missing = want - tokens
  if missing > 0.000000001 then
    wait = math.max(wait, math.ceil(missing / rate * 1000000))
  end
  left[i] = {tokens - want, at, math.ceil((burst - tokens + want) / rate * 1000) + 1000}
end
if wait > 0 then
  return wait
end
for i, key in ipairs(KEYS) do
  redis.call('HSET', key, 't', string.format('%.9f', left[i][1]), 'a', string.format('%.0f', left[i][2]))
  redis.call('PEXPIRE', key, left[i][3]) -- then it is full, which is the same as unknown
end
return 0
