-- Loads a filter the way Slurm does, with a stand-in for the global `slurm`, and runs what the test wants.
-- Prints one line per thing that happened: "log LEVEL TEXT", "comment TEXT", "return VALUE".
local filter, scenario, shell = arg[1], arg[2], arg[3]

-- Other distributions have another /bin/sh than this machine.
if shell then
  local popen = io.popen
  io.popen = function(command, mode)
    return popen("exec " .. shell .. " '" .. command:gsub("'", "'\\''") .. "'", mode)
  end
end

function show(kind, text)
  print(kind .. " " .. (tostring(text):gsub("\\", "\\\\"):gsub("\n", "\\n")))
end

local function logger(level)
  return function(...)
    show("log " .. level, string.format(...))
  end
end

function stub()
  return {
    SUCCESS = 0,
    ERROR = -1,
    CLUSTER_NAME = "stubland",
    log_info = logger("info"),
    log_error = logger("error"),
  }
end

-- Like Slurm's: a proxy without keys of its own, whose values are strings and whose assignments are checked.
function proxy(values)
  return setmetatable({}, {
    __index = function(_, key)
      return values[key]
    end,
    __newindex = function(_, key, value)
      if value == nil then
        error("string expected, got nil")
      end
      values[key] = value
      show(key, value)
    end,
  })
end

-- Slurm's own JSON of the options that were given: `set` in the order of the names, then argv.
function json_of(set, argv)
  local function text(value)
    return '"' .. value:gsub('[\\"/]', "\\%0"):gsub("\n", "\\n"):gsub("\t", "\\t"):gsub("\1", "\\u0001") .. '"'
  end
  local names, parts, words = {}, {}, {}
  for name in pairs(set) do
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    parts[#parts + 1] = text(name) .. ":" .. text(set[name])
  end
  for _, word in ipairs(argv) do
    words[#words + 1] = text(word)
  end
  parts[#parts + 1] = '"argv":[' .. table.concat(words, ",") .. "]"
  return "{" .. table.concat(parts, ",") .. "}"
end

function submit(options, offset)
  show("return", slurm_cli_pre_submit(options, offset or 0))
end

dofile(filter)
slurm = stub()
dofile(scenario)
