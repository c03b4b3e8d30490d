-- neurarch-gate for Slurm: judges the GPU request of a training job when it is submitted.
--
-- Install it as cli_filter.lua beside slurm.conf, mode 0644, and set CliFilterPlugins=cli_filter/lua.
-- Beside a filter of your own: dofile this file at the top of yours, define your three functions after it and
-- call neurarch.pre_submit(options, offset) from your slurm_cli_pre_submit. docs/slurm.md has the details.
--
-- Runs under Lua 5.1 to 5.4. Nothing at the top level may fail: Slurm would then refuse every submit on the host.

neurarch = {
  -- settings: begin. A nil leaves the choice to the site file (/etc/neurarch/gate.toml) or its default.
  binary = "/usr/local/bin/neurarch-gate", -- the executable, named from /: a submit runs with the user's PATH
  mode = nil, -- "warn" tells people and submits (the default); "reject" also refuses
  config = nil, -- site file to use instead of /etc/neurarch/gate.toml
  gpu_map = nil, -- JSON file: the site's GPU types -> cards
  default_gpu_type = nil, -- what an untyped gpu:N means here
  partition_map = nil, -- JSON file: partition -> GPU type, for untyped requests
  cards = nil, -- JSON file: cards beyond the built-in table
  prices = nil, -- JSON file: card -> USD per GPU-hour
  max_cost_usd = nil, -- runs above it are refused (in reject mode)
  hours_from_time = nil, -- true: --time stands in for hours= in the cost
  headroom = nil, -- need = peak x headroom (1.15)
  sizing = nil, -- "auto", "builtin", "cli" or "hosted"
  cli = nil, -- command of an external sizing CLI
  plan_url = nil, -- address of a hosted plan that graphs are sent to
  annotate = nil, -- true: a short verdict is appended to the job's comment; false: never
  cluster = nil, -- the cluster's name in policies; without it Slurm's own
  policy_file = nil, -- the site's policy file
  repo_policy = nil, -- what a repository's .neurarch.yml may do: "honour", "tighten-only" or "ignore"
  ledger = nil, -- folder that verdicts are recorded in
  fail_closed = nil, -- true: a job that should be judged and could not be is refused
  notice = "unread", -- one line for a GPU job not looked at: "unread", its script came by a pipe; "always", also when no model is named; "never"
  timeout_s = 5, -- seconds a verdict may take before the submit goes on without it
  debug = false, -- true: say why a job was not judged, and show the binary's stderr
  -- settings: end.
}

-- Settings that travel to the binary as flags of the same name; switches are flags without a value.
local VALUE_SETTINGS = {
  "config", "mode", "gpu_map", "default_gpu_type", "partition_map", "cards", "prices", "max_cost_usd",
  "headroom", "sizing", "cli", "plan_url", "policy_file", "repo_policy", "ledger",
}
local SWITCH_SETTINGS = { "hours_from_time", "annotate", "fail_closed" }

-- Options that ask for GPUs: as lists of resources, or as a number with or without a type.
local GPU_LISTS = { "gres", "tres-per-task" }
local GPU_COUNTS = { "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "ntasks-per-gpu", "ntasks-per-tres" }

-- Options the verdict depends on, under the names sbatch gives them.
local REQUEST_OPTIONS = {
  "gres", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "tres-per-task", "ntasks",
  "ntasks-per-node", "ntasks-per-gpu", "ntasks-per-socket", "ntasks-per-tres", "cpus-per-task", "sockets-per-node",
  "cores-per-socket", "threads-per-core", "extra-node-info", "nodes", "nodelist", "time", "partition", "array",
  "exclusive",
}

local CONTRACT = 1
local MAX_COMMENT_BYTES = 1024 -- one more and slurmctld refuses the job
local MAX_OUTPUT_BYTES = 65536
local MAX_LINE_BYTES = 262144
local MAX_MESSAGES = 20
local MAX_MESSAGE_BYTES = 4000

-- Talking to the user --------------------------------------------------------------------------------------------

-- slurm.log_* go to stderr with the command's name before them; log_info is silent under --quiet. Their first
-- argument is a format.
local function tell(level, text)
  text = tostring(text):gsub("%c", " ")
  local log = type(slurm) == "table" and slurm[level]
  if not (log and pcall(log, (text:gsub("%%", "%%%%")))) then
    io.stderr:write(text, "\n")
  end
end

local function debug_note(text)
  if neurarch.debug then
    tell("log_info", "Neurarch: not judged: " .. text)
  end
end

local function success()
  return type(slurm) == "table" and slurm.SUCCESS or 0
end

local function refusal()
  return type(slurm) == "table" and slurm.ERROR or -1
end

-- A job that names a model and could not be judged: submitted with one line, unless the site wants otherwise.
local function unchecked(why)
  if neurarch.fail_closed == true then
    tell("log_error", "Neurarch: this job could not be judged: " .. why .. ". Refused, as this site asks (fail_closed).")
    return refusal()
  end
  tell("log_info", "Neurarch: this job was not judged: " .. why .. ". Submitted unchecked.")
  return success()
end

-- Reading the options --------------------------------------------------------------------------------------------

-- An option that was not given reads as nil or, by Slurm version and option, as one of these.
local function given(value)
  if type(value) ~= "string" or value == "" or value == "unset" or value == "invalid-context" then
    return false
  end
  return value ~= "-2" and value ~= "4294967294" and value ~= "(null)"
end

local function lists_gpu(value)
  for item in value:gmatch("[^,]+") do
    local name = item:gsub("^%s*gres[:/]", ""):match("^%s*([%w_]+)")
    if name == "gpu" or name == "shard" or name == "mps" then
      return true
    end
  end
  return false
end

local function asks_gpu(options)
  for _, key in ipairs(GPU_LISTS) do
    local value = options[key]
    if given(value) and lists_gpu(value) then
      return true
    end
  end
  for _, key in ipairs(GPU_COUNTS) do
    local value = options[key]
    if given(value) and value ~= "0" then
      return true
    end
  end
  return false
end

local JSON_ESCAPES = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function json_text(text)
  if not text:find("\\", 1, true) then
    return text
  end
  text = text:gsub("\\u00([0-7]%x)", function(hex)
    local char = string.char(tonumber(hex, 16))
    return char == "\\" and "\\\\" or char
  end)
  return (text:gsub("\\(.)", function(char)
    return JSON_ESCAPES[char] or char
  end))
end

-- The string values of a JSON object, not those of objects and lists inside it; nil when it is not one.
local function json_strings(text)
  local found, key, depth, at = {}, nil, 0, 1
  while at <= #text do
    local char = text:sub(at, at)
    if char == '"' then
      local stop = at + 1
      while true do
        stop = text:find('["\\]', stop)
        if not stop then
          return nil
        end
        if text:sub(stop, stop) == '"' then
          break
        end
        stop = stop + 2
      end
      if depth == 1 then
        local value = json_text(text:sub(at + 1, stop - 1))
        if key == nil then
          key = value
        else
          found[key] = value
        end
      end
      at = stop
    elseif char == "{" or char == "[" then
      depth = depth + 1
    elseif char == "}" or char == "]" then
      depth = depth - 1
    elseif char == "," and depth == 1 then
      key = nil
    end
    at = at + 1
  end
  return depth == 0 and next(found) and found or nil
end

-- Slurm's JSON call takes its own options table only: on a table that a site's filter put around it, it crashes.
local function takes_json(options)
  if type(slurm) ~= "table" or not slurm.json_cli_options then
    return false
  end
  local meta = getmetatable(options)
  if type(meta) == "table" and rawget(meta, "_opt") ~= nil then
    return true
  end
  local ok, call = pcall(debug.getinfo, slurm.json_cli_options, "S")
  return ok and call ~= nil and call.what ~= "C"
end

-- The request as the user made it: option -> value, without what Slurm fills in. Slurm's JSON has just that;
-- where it cannot be had, the values that mean "not given" are left out by hand.
local function request_of(options)
  if takes_json(options) then
    local ok, text = pcall(slurm.json_cli_options, options)
    local set = ok and type(text) == "string" and json_strings(text)
    if set then
      return set
    end
  end
  local set = {}
  for _, key in ipairs(REQUEST_OPTIONS) do
    local value = options[key]
    if given(value) then
      set[key] = value
    end
  end
  -- These read like a value when nobody gave them.
  if set.nodes == "1-0" then
    set.nodes = nil
  end
  if set.ntasks == "1" or set.ntasks == "0" then
    set.ntasks = nil
  end
  if set.time and set.time:find("^%d%d%d%d%d%d%d%-") then
    set.time = nil
  end
  return set
end

-- The batch script -----------------------------------------------------------------------------------------------

local function quote(value)
  return "'" .. value:gsub("'", "'\\''") .. "'"
end

-- A bash in the place of sh takes over the functions that users export, and one may be called `timeout` or `[`:
-- `command` passes all but its own namesake by, and `unset` is found before any.
local OWN_COMMANDS = "unset -f command; "

-- Asks a shell, because opening a FIFO to find out would block for ever, and Lua cannot look without opening.
local function is_regular(path)
  local look = "{ " .. OWN_COMMANDS .. "command [ -f " .. quote(path) .. " ] && command echo yes; } 2>/dev/null"
  local pipe = io.popen(look, "r")
  local answer = pipe and pipe:read(3)
  if pipe then
    pipe:close()
  end
  return answer == "yes"
end

-- Whether the script's header, which ends at the first line that is neither blank nor a comment, has a directive.
local function has_directive(file)
  local rest = ""
  for _ = 1, 64 do
    local block = file:read(65536)
    rest = rest .. (block or "\n")
    local from = 1
    while true do
      local stop = rest:find("\n", from, true)
      if not stop then
        break
      end
      local line = rest:sub(from, stop - 1)
      if line:find("^#NEURARCH") then
        return true
      end
      if not line:find("^%s*#") and line:find("%S") then
        return false
      end
      from = stop + 1
    end
    rest = rest:sub(from)
    -- A line that long is no directive, and gathering more of it costs more each time.
    if not block or #rest > MAX_LINE_BYTES or rest:find("^%s*[^#%s]") then
      return false
    end
  end
  return false
end

-- Where the batch script can be read again: a path and whether that path is this process's stdin; nil without one,
-- and then whether there was a script, whose text is gone. The words after the command of srun and salloc are programs and their data, never a script.
local function script_of(options)
  if options.type ~= nil and options.type ~= "sbatch" then
    return nil
  end
  local argv = options.argv
  local path = type(argv) == "table" and argv[1] or nil
  if path == nil or path == "/dev/stdin" or path == "/dev/fd/0" or path == "/proc/self/fd/0" then
    if path == nil and given(options.wrap) then
      return nil
    end
    -- Only what can seek can be read a second time: not a pipe, a FIFO or a terminal.
    local ok, offset = pcall(function()
      return io.stdin:seek("cur")
    end)
    if ok and offset then
      return "/proc/self/fd/0", true
    end
    return nil, true
  end
  return path, false
end

-- Whether the script names a model; nil where its text cannot be had a second time.
local function script_names_model(path, on_stdin)
  if path:find("%c") or not (on_stdin or is_regular(path)) then
    return nil
  end
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local ok, found = pcall(has_directive, file)
  file:close()
  return ok and found
end

-- The binary -----------------------------------------------------------------------------------------------------

-- Beginnings of variables that change what the binary is or does: its runtime, engine and allocator, the loader.
local FOREIGN = { "BUN_", "JSC_", "LD_", "MIMALLOC_", "mimalloc_" }
local MAX_FOREIGN = 500

-- Variables that would change what the binary is or load code into it (BUN_*), or make it load other libraries.
local function unset_command()
  local names = {
    "LD_PRELOAD", "LD_LIBRARY_PATH", "NODE_OPTIONS", "BUN_OPTIONS", "BUN_BE_BUN", "BUN_INSPECT",
    "BUN_INSPECT_PRELOAD", "BUN_INSPECT_NOTIFY", "BUN_INSPECT_CONNECT_TO", "BUN_CONFIG_VERBOSE_FETCH",
  }
  local environ = io.open("/proc/self/environ", "rb")
  if environ then
    local text = environ:read("*a") or ""
    environ:close()
    local seen = {}
    for _, beginning in ipairs(FOREIGN) do
      for name in text:gmatch(beginning .. "[%w_]+") do
        if not seen[name] and #names < MAX_FOREIGN and #name <= 100 then
          seen[name] = true
          names[#names + 1] = name
        end
      end
    end
  end
  -- A submit ends before any code is hot: an engine that prepares no compiler is up a tenth sooner.
  return "unset " .. table.concat(names, " ") .. "; BUN_JSC_useJIT=0; export BUN_JSC_useJIT"
end

local function timeout_s()
  local seconds = tonumber(neurarch.timeout_s)
  return seconds and seconds > 0 and seconds <= 600 and seconds or 5
end

-- The words after the binary's name, quoted for the shell; nil and the reason when one cannot be passed on.
local function words_of(options, request)
  local words, refused = {}, nil
  local function add(name, value)
    if type(value) == "number" then
      value = string.format("%.14g", value)
    end
    if type(value) ~= "string" or value == "" or value:find("%c") then
      refused = refused or (name .. " has a value that cannot be passed on")
    else
      -- With a value that looks like a flag, or to an option that may stand alone, only "=" is plain.
      local joint = (name == "exclusive" or value:find("^%-")) and "=" or " "
      words[#words + 1] = "--" .. name .. joint .. quote(value)
    end
  end
  add("lua-contract", CONTRACT)
  for _, key in ipairs(VALUE_SETTINGS) do
    if neurarch[key] ~= nil then
      add((key:gsub("_", "-")), neurarch[key])
    end
  end
  for _, key in ipairs(SWITCH_SETTINGS) do
    if neurarch[key] == true then
      words[#words + 1] = "--" .. (key:gsub("_", "-"))
    end
  end
  -- Its own limit comes first, so that it can still say which source was slow.
  add("timeout", timeout_s() > 1 and timeout_s() - 1 or timeout_s())
  local cluster = neurarch.cluster
  if cluster == nil then
    cluster = options.clusters
    if not given(cluster) or cluster:find(",", 1, true) or cluster == "all" then
      cluster = type(slurm) == "table" and slurm.CLUSTER_NAME
    end
  end
  if given(cluster) then
    add("cluster", cluster)
  end
  for _, key in ipairs(REQUEST_OPTIONS) do
    if given(request[key]) then
      add(key, request[key])
    end
  end
  if refused then
    return nil, refused
  end
  return table.concat(words, " ")
end

-- A shell command that prints the binary's answer and then, whatever became of the binary, a line "exit=N".
-- That line is the shell's own: a process which the binary leaves behind and which keeps the pipe open cannot
-- hold it back. `timeout` runs the binary in a process group of its own and ends all of it.
local function command_of(words, path, on_stdin)
  local script = ""
  if path then
    local joint = path:find("^%-") and "=" or " "
    script = "command [ -f " .. quote(path) .. " ] && set -- --script" .. joint .. quote(path) .. "; "
  end
  return table.concat({
    "{ ", OWN_COMMANDS, unset_command(), "; command ulimit -c 0; ",
    "PATH=/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin; export PATH; set --; ", script,
    "command timeout -k 1 ", string.format("%.14g", timeout_s()), " ", quote(neurarch.binary), " slurm ", words, ' "$@"',
    on_stdin and "" or " </dev/null", "; command printf '\\nexit=%s\\n' \"$?\"; }",
    neurarch.debug and "" or " 2>/dev/null",
  })
end

-- One line, or nil at the end and once too much was read. Byte by byte, as a longer read would wait for more than
-- there is.
local function read_line(pipe, budget)
  local bytes = {}
  while budget.left > 0 do
    local byte = pipe:read(1)
    if not byte then
      return nil
    end
    budget.left = budget.left - 1
    if byte == "\n" then
      return table.concat(bytes)
    end
    bytes[#bytes + 1] = byte
  end
  return nil
end

-- Runs the binary: its answer, or nil and why there is none.
local function ask(command)
  local started = os.time()
  local pipe = io.popen(command, "r")
  if not pipe then
    return nil, "no shell could be started"
  end
  local answer, budget, complete, code = { messages = {} }, { left = MAX_OUTPUT_BYTES }, false, nil
  while true do
    local line = read_line(pipe, budget)
    if not line then
      break
    end
    local key, value = line:match("^(%w+)=(.*)$")
    if key == "exit" and (value:find("^%d+$")) then
      code = tonumber(value)
      break
    elseif complete then
      -- nothing after the end counts
    elseif line == "end" then
      complete = true
    elseif key == "decision" then
      answer.decision = value
    elseif key == "message" and value ~= "" and #answer.messages < MAX_MESSAGES then
      answer.messages[#answer.messages + 1] = value:sub(1, MAX_MESSAGE_BYTES)
    elseif key == "comment" then
      answer.comment = value
    end
  end
  pipe:close()
  local known = answer.decision == "allow" or answer.decision == "warn" or answer.decision == "reject"
  if complete and known then
    return answer
  end
  if code == 124 or (code == 137 and os.time() - started >= timeout_s()) then
    return nil, string.format("%s gave no verdict within %.14g s", neurarch.binary, timeout_s())
  end
  if code == 126 or code == 127 then
    return nil, neurarch.binary .. " cannot be run on this host"
  end
  return nil, neurarch.binary .. " gave no verdict" .. (code and " (exit " .. code .. ")" or "")
end

-- The job's comment ----------------------------------------------------------------------------------------------

-- A component of a heterogeneous job inherits the comment of the one before it, our addition included.
local annotated = nil

-- The comment the user gave this component; puts it back in place where the inherited one has our addition.
local function own_comment(options, offset)
  if (tonumber(offset) or 0) == 0 then
    annotated = nil
  end
  local comment = options.comment
  if annotated and comment == annotated.whole then
    comment = annotated.own
    options.comment = comment or ""
  end
  annotated = nil
  return given(comment) and comment or nil
end

local function annotate(options, own, addition)
  addition = addition:gsub("%c", " ")
  local whole = own and (own .. " " .. addition) or addition
  if #whole > MAX_COMMENT_BYTES then
    -- Not within a character of several bytes.
    whole = whole:sub(1, MAX_COMMENT_BYTES):gsub("[\192-\255][\128-\191]*$", "")
  end
  if own and #whole <= #own then
    return
  end
  options.comment = whole
  annotated = { own = own, whole = whole }
end

-- Told once a submit, however many components it has.
local noticed = false

local function notice(gone, path)
  local wanted = neurarch.notice
  if noticed or wanted == "never" or (wanted ~= "always" and not gone) then
    return
  end
  noticed = true
  local why = gone and path and path:find("%c")
      and "its script's path holds a control character, and NEURARCH_MODEL is not set"
    or gone and "its script can be read only once (it came by a pipe), and NEURARCH_MODEL is not set"
    or "it names no model (#NEURARCH model=ID in the script, or NEURARCH_MODEL)"
  tell("log_info", "Neurarch: this GPU job was not checked: " .. why .. ".")
end

-- The hook -------------------------------------------------------------------------------------------------------

local function judge(options, offset)
  -- A step runs inside an allocation that was judged when it was asked for. SLURM_JOB_ID would not tell: a batch
  -- script that submits has it too.
  if options.type == "srun" and tostring(options.jobid):find("^%d") then
    return success()
  end
  local own = own_comment(options, offset)
  if options.type == "scrontab" then
    return success()
  end
  if not asks_gpu(options) then
    debug_note("no GPU is asked for with --gres, --gpus* or a TRES option")
    return success()
  end
  local path, on_stdin = script_of(options)
  local in_environment = (os.getenv("NEURARCH_MODEL") or "") ~= ""
  if not in_environment then
    local gone, named = path == nil and on_stdin == true, false
    if path then
      named = script_names_model(path, on_stdin)
      gone = named == nil
    end
    if not named then
      notice(gone, path)
      debug_note("no model is named, neither by #NEURARCH in the script nor by NEURARCH_MODEL")
      return success()
    end
  end
  local words, refused = words_of(options, request_of(options))
  if not words then
    return unchecked(refused)
  end
  if type(neurarch.binary) ~= "string" or neurarch.binary:find("%c") then
    return unchecked("the setting binary is not a path")
  end
  if path and path:find("%c") then
    return unchecked("the script's path holds a control character")
  end
  local answer, why = ask(command_of(words, path, on_stdin))
  if not answer then
    return unchecked(why)
  end
  local refuse = answer.decision == "reject" and (neurarch.mode ~= "warn" or neurarch.fail_closed == true)
  for _, message in ipairs(answer.messages) do
    tell(refuse and "log_error" or "log_info", message)
  end
  if refuse then
    return refusal()
  end
  if answer.comment and answer.comment ~= "" and neurarch.annotate ~= false then
    pcall(annotate, options, own, answer.comment)
  end
  return success()
end

-- Judges one submit, or one component of a heterogeneous one: slurm.SUCCESS or slurm.ERROR. Raises nothing.
function neurarch.pre_submit(options, offset)
  local ok, result = pcall(judge, options, offset)
  if ok then
    return result
  end
  local told, code = pcall(unchecked, "the filter failed (" .. tostring(result) .. ")")
  return told and code or 0
end

-- Slurm wants all three, and refuses every submit where one is missing.

function slurm_cli_setup_defaults(options, early_pass)
  return success()
end

function slurm_cli_pre_submit(options, offset)
  return neurarch.pre_submit(options, offset)
end

function slurm_cli_post_submit(offset, job_id, step_id)
  return success()
end
