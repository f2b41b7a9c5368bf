-- SPDX-License-Identifier: BSD-3-Clause
-- Wireshark dissector of the ULC wire protocol, version 2 (docs/PROTOCOL.md; its sections are cited).
--
--   tshark -X lua_script:ulc.lua -r capture.pcapng
--
-- Wireshark loads it by itself from ~/.local/lib/wireshark/plugins. Display filters: ulc.type == 3,
-- ulc.seq, ulc.handle, ulc.malformed. A frame that is not as the protocol says gets an expert note;
-- nothing in a frame makes the dissector fail.

-- Lua 5.2 has bit32, and 5.4 has operators, which 5.2 cannot parse.
local bit32 = bit32 or load([[
  return {
    band = function(a, b) return a & b end,
    bxor = function(a, b) return a ~ b end,
    lshift = function(a, by) return (a << by) & 0xffffffff end,
    rshift = function(a, by) return a >> by end,
  }]])()

local ulc = Proto("ulc", "User-Level Communication for Ethernet clusters")

local ETHERTYPE_DEFAULT = 0x88b5
local HEADER = 14
local FORWARD, FORWARD_HEADER = 13, 16
local GROUP = 0x80000000 -- bit of a group's handle
local HEADER_FLAGS = { "F", "L", "A", "R", "S", "T", "N", "C" }

local TYPES = {
  [1] = "DATA", [2] = "MCAST", [3] = "ACK", [4] = "REQ", [5] = "PROBE", [6] = "JOB", [7] = "NODE",
  [8] = "FLOW", [9] = "COUNTED", [10] = "STATUS", [11] = "NACK",
  [12] = "LINK", [13] = "FORWARD",
}
local JOB_KINDS = {
  [1] = "JOIN", [2] = "ROSTER", [3] = "ROSTER_ACK", [4] = "REJECT", [5] = "BYE", [6] = "COMMIT",
}
local NODE_KINDS = { [1] = "PING", [2] = "PONG", [3] = "GONE", [4] = "EXPELLED", [5] = "LINKS",
    [6] = "ECHO_REQUEST", [7] = "ECHO_REPLY", [8] = "LINKS_REQUEST", [9] = "LINKS_REPLY" }
local FLOW_KINDS = { [1] = "RESERVE", [2] = "GRANT", [3] = "REFUSE" }
local LINK_KINDS = {
  [1] = "REQUEST", [2] = "ACCEPT", [3] = "CONFIRM", [4] = "REFUSE", [5] = "UNLINK", [6] = "UNLINKED",
  [7] = "WHERE", [8] = "HERE",
}
local NACK_KINDS = { [1] = "REQUEST", [2] = "PERSONAL", [3] = "GLOBAL", [4] = "NAMED" }
local REASONS = { [1] = "left", [2] = "died", [3] = "excluded" }
local ACK_STATES = { [1] = "partial", [2] = "holds all", [3] = "formed", [4] = "world handle in use" }
local SCOPES = { [1] = "claim", [2] = "job" }
local MEDIA = {
  [0] = "switch or unknown", [1] = "hub", [2] = "shallow switch", [3] = "nodes of one machine",
  [4] = "nodes of one machine, fewer cores than pollers",
}
local ERRORS = {
  [4] = "VERSION", [8] = "CLOSED", [11] = "JOB_SIZE", [12] = "RANK_TAKEN", [13] = "TWO_ROSTERS",
  [18] = "LIMIT", [22] = "PROFILE",
}

local ATTRIBUTES = { [1] = "MTU", [2] = "links", [3] = "patience" }

local f = {}
local function field(kind, name, title, ...)
  f[name] = ProtoField[kind]("ulc." .. name, title, ...)
end

-- §2: header and extensions
field("uint8", "version", "Version", base.DEC, nil, 0xf0)
field("uint8", "type", "Type", base.DEC, TYPES, 0x0f)
field("uint8", "flags", "Flags", base.HEX)
field("bool", "first", "First packet of a message (F)", 8, nil, 0x80)
field("bool", "last", "Last packet of a message (L)", 8, nil, 0x40)
field("bool", "acks", "Acknowledgement (A)", 8, nil, 0x20)
field("bool", "ordered", "Predecessors (R)", 8, nil, 0x10)
field("bool", "subset_flag", "Subset (S)", 8, nil, 0x08)
field("bool", "tagged", "Tag (T)", 8, nil, 0x04)
field("bool", "ack_now", "Acknowledge at once (N)", 8, nil, 0x02)
field("bool", "crc_flag", "CRC (C)", 8, nil, 0x01)
field("uint16", "length", "Length in bytes", base.DEC)
field("uint32", "handle", "Handle", base.HEX)
field("uint16", "rank", "Source rank", base.DEC)
field("uint32", "seq", "Sequence number", base.DEC)
field("none", "ack", "Acknowledgement")
field("uint32", "ack.stream", "Stream", base.HEX)
field("uint32", "ack.next", "Next number awaited", base.DEC)
field("uint16", "ack.credit", "Credit in packets", base.DEC)
field("uint16", "ack.delay", "Delay in microseconds", base.DEC)
field("none", "after", "Predecessor")
field("uint32", "after.stream", "Stream", base.HEX)
field("uint32", "after.seq", "Sequence number", base.DEC)
field("uint64", "subset", "Subset of group indices", base.HEX)
field("uint64", "tag", "Tag", base.HEX)
field("uint64", "total", "Message length in bytes", base.DEC)
field("bytes", "payload", "Payload")
field("uint32", "crc", "CRC32C", base.HEX)
-- §2: bodies
field("uint16", "req.octets", "Bytes of bitmap", base.DEC)
field("bytes", "req.bitmap", "Numbers missing, from the next one awaited")
field("uint32", "probe.stream", "Stream", base.HEX)
-- §7.1
field("uint8", "job.kind", "Kind", base.DEC, JOB_KINDS)
field("bool", "job.by_hand", "Started by hand", 8, nil, 0x01)
field("bool", "job.introduces", "Introduces its sender", 8, nil, 0x02)
field("string", "job.name", "Name")
field("bytes", "job.id", "Job id or nonce")
field("bytes", "job.tag", "Tag made with the job's key")
field("uint16", "job.size", "Size in ranks", base.DEC)
field("uint8", "job.version_min", "Least version", base.DEC)
field("uint8", "job.version_max", "Greatest version", base.DEC)
field("uint32", "job.incarnation", "Incarnation", base.HEX)
field("string", "job.profile", "Profile")
field("none", "job.claim", "Claim")
field("uint16", "job.rank", "Rank", base.DEC)
field("uint32", "job.handle", "Endpoint handle", base.HEX)
field("uint32", "job.roster", "Roster number", base.DEC)
field("uint32", "job.world", "World handle", base.HEX)
field("uint32", "job.first_seq", "First sequence number", base.DEC)
field("uint16", "job.part", "Part", base.DEC)
field("uint16", "job.parts", "Parts", base.DEC)
field("uint16", "job.first_rank", "First rank", base.DEC)
field("uint16", "job.entries", "Entries", base.DEC)
field("uint8", "job.version", "Protocol version", base.DEC)
field("uint8", "job.medium", "Medium", base.DEC, MEDIA)
field("none", "job.entry", "Entry")
field("uint16", "job.mtu", "MTU of the job", base.DEC)
field("uint16", "job.attribute_octets", "Bytes of attributes", base.DEC)
field("bytes", "job.job_attributes", "Attributes of the job")
field("none", "attribute", "Attribute")
field("uint8", "attribute.type", "Type", base.DEC, ATTRIBUTES)
field("uint8", "attribute.octets", "Bytes of the value", base.DEC)
field("uint16", "attribute.mtu", "MTU of the node", base.DEC)
field("uint8", "attribute.links", "Links of the node", base.DEC)
field("uint32", "attribute.patience", "Patience with a silent node (ms)", base.DEC)
field("bytes", "attribute.value", "Value")
field("ether", "job.mac", "Address")
field("uint8", "job.state", "State", base.DEC, ACK_STATES)
field("bytes", "job.bitmap", "Parts held")
field("uint32", "job.error", "Error", base.DEC, ERRORS)
field("uint8", "job.scope", "Scope", base.DEC, SCOPES)
field("uint8", "job.reason", "Reason", base.DEC, REASONS)
-- §8.2
field("uint8", "node.kind", "Kind", base.DEC, NODE_KINDS)
field("uint8", "node.reason", "Reason", base.DEC, REASONS)
field("uint32", "node.incarnation", "Incarnation of the sender", base.HEX)
field("uint64", "node.token", "Token", base.HEX)
field("uint32", "node.own", "Handle of the sender's node", base.HEX)
field("uint32", "node.asked", "Handle of the receiver's node", base.HEX)
field("uint64", "node.number", "Number of the announcement", base.DEC)
field("ether", "node.mac", "Address of a link")
field("uint16", "node.segment", "Number of the segment in a mesh; 0: none", base.DEC)
field("uint8", "forward.hops", "Further segments", base.DEC)
field("ether", "forward.origin", "Origin")
field("ether", "forward.destination", "Destination")
field("uint16", "forward.length", "Length of the frame within, in bytes", base.DEC)
field("uint32", "node.megabits", "Speed of the link in Mb/s; 0: down", base.DEC)
-- §10, §11
field("uint32", "flow.stream", "Stream", base.HEX)
field("uint32", "flow.first", "First number", base.DEC)
field("uint16", "flow.count", "Count", base.DEC)
field("uint8", "flow.kind", "Kind", base.DEC, FLOW_KINDS)
field("uint8", "flow.unordered", "Numbers before the first that are not in order", base.DEC)
field("uint32", "counted.global", "Global counter", base.DEC)
field("uint16", "status.first", "Index of the first entry", base.DEC)
field("uint16", "status.entries", "Entries", base.DEC)
field("bool", "status.wanted", "Wanted", 8, nil, 0x01)
field("uint32", "status.next", "First number not in order", base.DEC)
field("uint32", "nack.group", "Group", base.HEX)
field("uint32", "nack.from", "From", base.DEC)
field("uint32", "nack.to", "To", base.DEC)
field("uint8", "nack.kind", "Kind", base.DEC, NACK_KINDS)
field("uint16", "nack.target", "Target", base.DEC)

-- §13
field("uint8", "link.kind", "Kind", base.DEC, LINK_KINDS)
field("uint8", "link.reason", "Reason", base.DEC)
field("uint8", "link.version", "Version of the protocol", base.DEC)
field("uint32", "link.incarnation", "Incarnation of the sender's engine", base.HEX)
field("uint64", "link.own", "Id of the sender", base.HEX)
field("uint64", "link.asked", "Id of the receiver", base.HEX)
field("uint32", "link.from", "Endpoint of the sender", base.HEX)
field("uint32", "link.to", "Endpoint of the receiver", base.HEX)
field("uint16", "link.slot", "Slot", base.DEC)
field("uint32", "link.first", "First number", base.DEC)
field("string", "link.profile", "Profile")
field("bytes", "link.tag", "Tag")

local registered = {}
for _, one in pairs(f) do
  registered[#registered + 1] = one
end
ulc.fields = registered

local malformed = ProtoExpert.new("ulc.malformed", "The frame is not as the protocol says",
  expert.group.MALFORMED, expert.severity.ERROR)
ulc.experts = { malformed }

ulc.prefs.ethertype = Pref.uint("EtherType", ETHERTYPE_DEFAULT, "The value of ulc-engine --ethertype")

-- A reader walks over the bytes that a frame says it has, and stops for good at the first that is
-- missing. Where the capture cut the frame (ulc dump keeps the first bytes), that is no fault.
local CUT = "was cut by the capture"
local Reader = {}
Reader.__index = Reader

function Reader.new(buffer, first, last, tree)
  return setmetatable({ buffer = buffer, at = first, last = last, tree = tree, failed = nil }, Reader)
end

function Reader:left()
  return self.last - self.at
end

function Reader:fail(why)
  if self.failed == nil then
    self.failed = why
  end
end

-- Returns the next `count` bytes; nil, and the reason is kept, if they are not there.
function Reader:take(count, what)
  if self.failed ~= nil then
    return nil
  end
  if self:left() < count then
    self:fail("ends before its " .. what)
    return nil
  end
  if self.at + count > self.buffer:len() then
    self:fail(CUT)
    return nil
  end
  local range = self.buffer(self.at, count)
  self.at = self.at + count
  return range
end

-- Adds a field of `count` bytes; returns its range or nil.
function Reader:add(name, count, tree)
  local range = self:take(count, name)
  if range ~= nil then
    (tree or self.tree):add(f[name], range)
  end
  return range
end

function Reader:number(name, count, tree)
  local range = self:add(name, count, tree)
  return range ~= nil and range:uint() or 0
end

function Reader:skip(count)
  self:take(count, "body")
end

-- Adds a line that holds `count` bytes of fields, and returns it to add them to.
function Reader:branch(name, count)
  if self.failed ~= nil or self:left() < count then
    self:fail("ends before its " .. name)
    return nil
  end
  if self.at + count > self.buffer:len() then
    self:fail(CUT)
    return nil
  end
  return self.tree:add(f[name], self.buffer(self.at, count))
end

local function text_of(range)
  return range:stringz(ENC_ASCII)
end

local function ack_entry(reader, info)
  local branch = reader:branch("ack", 12)
  if branch == nil then
    return
  end
  reader:number("ack.stream", 4, branch)
  local next = reader:number("ack.next", 4, branch)
  local credit = reader:number("ack.credit", 2, branch)
  reader:number("ack.delay", 2, branch)
  branch:append_text(string.format(": next %u, credit %u", next, credit))
  info[#info + 1] = string.format("next=%u", next)
end

local function extensions(reader, flags, info)
  if bit32.band(flags, 0x20) ~= 0 then
    ack_entry(reader, info)
  end
  if bit32.band(flags, 0x10) ~= 0 then
    local count = reader:take(1, "count of predecessors")
    local entries = count ~= nil and count:uint() or 0
    if count ~= nil and (entries == 0 or entries > 4) then
      reader:fail("has " .. entries .. " predecessors; 1 to 4 are legal")
    end
    for _ = 1, math.min(entries, 4) do
      local branch = reader:branch("after", 8)
      if branch ~= nil then
        local stream = reader:number("after.stream", 4, branch)
        reader:number("after.seq", 4, branch)
        if stream >= 65535 and stream < GROUP then
          reader:fail("has a predecessor in a stream of neither a group nor a rank")
        end
      end
    end
  end
  if bit32.band(flags, 0x08) ~= 0 then
    local subset = reader:add("subset", 8)
    if subset ~= nil and subset:uint64() == UInt64(0, 0) then
      reader:fail("is for an empty subset")
    end
  end
  if bit32.band(flags, 0x04) ~= 0 then
    reader:add("tag", 8)
  end
  if bit32.band(flags, 0xc0) == 0x80 then -- F without L
    return reader:add("total", 8)
  end
end

local crc_table = {}
for octet = 0, 255 do
  local value = octet
  for _ = 1, 8 do
    local low = bit32.band(value, 1)
    value = bit32.rshift(value, 1)
    if low == 1 then
      value = bit32.bxor(value, 0x82f63b78) -- 0x1edc6f41, reflected
    end
  end
  crc_table[octet] = value
end

-- CRC32C of a frame's first `count` bytes.
local function crc32c(buffer, count)
  local crc = 0xffffffff
  for place = 0, count - 1 do
    local index = bit32.band(bit32.bxor(crc, buffer(place, 1):uint()), 0xff)
    crc = bit32.bxor(bit32.rshift(crc, 8), crc_table[index])
  end
  return bit32.bxor(crc, 0xffffffff)
end

-- DATA, MCAST and COUNTED.
local function packet(reader, kind, flags, length, info)
  local is_group = bit32.band(reader.buffer(4, 1):uint(), 0x80) ~= 0
  if is_group ~= (kind ~= 1) then
    reader:fail("has a handle of the wrong kind")
  elseif bit32.band(flags, 0x84) == 0x04 then
    reader:fail("has a tag behind a message's first packet")
  elseif bit32.band(flags, 0x20) ~= 0 and kind ~= 1 then
    reader:fail("is a multicast with an acknowledgement")
  elseif bit32.band(flags, 0x08) ~= 0 and kind == 1 then
    reader:fail("is a unicast with a subset")
  end
  if kind == 9 then
    reader:number("counted.global", 4)
  end
  local total = extensions(reader, flags, info)
  local crc = bit32.band(flags, 0x01) ~= 0 and 4 or 0
  local payload = math.max(length - crc, 0)
  if length < crc then
    reader:fail("has a CRC and a length below 4")
  elseif payload > 0 then
    local there = reader.buffer:len() - reader.at
    if there > 0 and there < payload and payload <= reader:left() then
      reader:add("payload", there)
      reader:fail(CUT)
    else
      reader:add("payload", payload)
    end
  end
  if total ~= nil and total:uint64() <= UInt64(payload, 0) then
    reader:fail("has a message length not above its payload")
  end
  if crc > 0 then
    local covered = reader.at
    local found = reader:number("crc", crc)
    if reader.failed == nil and found ~= crc32c(reader.buffer, covered) then
      reader:fail("has a wrong CRC")
    end
  end
  info[#info + 1] = string.format("%u bytes", payload)
end

local function ack(reader, info)
  if reader:left() == 0 or reader:left() % 12 ~= 0 or reader:left() > 16 * 12 then
    reader:fail("is no list of 1 to 16 acknowledgements")
  end
  while reader.failed == nil and reader:left() > 0 do
    ack_entry(reader, info)
  end
end

local function req(reader, info)
  ack_entry(reader, info)
  local octets = reader:number("req.octets", 2)
  if octets > 128 then
    reader:fail("has a bitmap above 128 bytes")
  elseif octets > 0 then
    reader:add("req.bitmap", octets)
  end
end

local function probe(reader, info)
  info[#info + 1] = string.format("seq=%u", reader.buffer(10, 4):uint())
  reader:number("probe.stream", 4)
end

-- §7.3
local function attributes(reader, octets)
  local last = 0
  local stop = reader.at + octets
  while reader.failed == nil and reader.at < stop do
    local branch = reader:branch("attribute", math.min(2, stop - reader.at))
    if branch == nil or stop - reader.at < 2 then
      reader:fail("has an attribute without a length")
      return
    end
    local kind = reader:number("attribute.type", 1, branch)
    local length = reader:number("attribute.octets", 1, branch)
    branch:append_text(": " .. (ATTRIBUTES[kind] or "type " .. kind))
    if kind <= last or reader.at + length > stop then
      reader:fail("has an attribute whose type does not ascend, or that is too long")
      return
    end
    last = kind
    if kind == 1 and length == 2 then
      reader:number("attribute.mtu", 2, branch)
    elseif kind == 2 and length == 1 then
      reader:number("attribute.links", 1, branch)
    elseif kind == 3 and length == 4 then
      reader:number("attribute.patience", 4, branch)
    elseif length > 0 then
      reader:add("attribute.value", length, branch)
    end
  end
end

local job_bodies = {
  [1] = function(reader, info) -- JOIN
    info[#info + 1] = "size=" .. reader:number("job.size", 2)
    reader:number("job.version_min", 1)
    reader:number("job.version_max", 1)
    reader:number("job.incarnation", 4)
    local claims = reader:number("job.entries", 2)
    local octets = reader:number("job.attribute_octets", 2)
    local profile = reader:take(32, "profile")
    if profile ~= nil then
      reader.tree:add(f["job.profile"], profile, text_of(profile))
    end
    for _ = 1, math.min(claims, 128) do
      local branch = reader:branch("job.claim", 6)
      if branch == nil then
        return
      end
      info[#info + 1] = "rank=" .. reader:number("job.rank", 2, branch)
      reader:number("job.handle", 4, branch)
    end
    attributes(reader, octets)
  end,
  [2] = function(reader, info) -- ROSTER
    info[#info + 1] = "roster=" .. reader:number("job.roster", 4)
    reader:number("job.world", 4)
    reader:number("job.first_seq", 4)
    reader:number("job.size", 2)
    reader:number("job.part", 2)
    reader:number("job.parts", 2)
    local rank = reader:number("job.first_rank", 2)
    local entries = reader:number("job.entries", 2)
    reader:number("job.version", 1)
    reader:number("job.medium", 1)
    reader:number("job.mtu", 2)
    local of_job = reader:take(1, "length of the job's attributes")
    reader:skip(1)
    local padding = reader:take(2, "length of the padding")
    if of_job ~= nil and of_job:uint() > 0 then
      reader:add("job.job_attributes", of_job:uint())
    end
    local octets = 0
    for entry = 0, entries - 1 do
      local branch = reader:branch("job.entry", 15)
      if branch == nil then
        return
      end
      branch:append_text(": rank " .. (rank + entry))
      reader:add("job.mac", 6, branch)
      reader:number("job.handle", 4, branch)
      reader:number("job.incarnation", 4, branch)
      local its = reader:take(1, "length of a node's attributes")
      octets = octets + (its ~= nil and its:uint() or 0)
    end
    local stop = reader.at + octets
    while reader.failed == nil and reader.at < stop do
      reader:add("attribute.value", stop - reader.at)
    end
    if padding ~= nil then
      reader:skip(padding:uint())
    end
  end,
  [3] = function(reader, info) -- ROSTER_ACK
    info[#info + 1] = "roster=" .. reader:number("job.roster", 4)
    reader:number("job.parts", 2)
    info[#info + 1] = ACK_STATES[reader:number("job.state", 1)] or "state?"
    local octets = reader:take(1, "length of the bitmap")
    local padding = reader:take(2, "length of the padding")
    if octets ~= nil and octets:uint() > 0 then
      reader:add("job.bitmap", octets:uint())
    end
    if padding ~= nil then
      reader:skip(padding:uint())
    end
  end,
  [4] = function(reader, info) -- REJECT
    info[#info + 1] = ERRORS[reader:number("job.error", 4)] or "error?"
    reader:number("job.scope", 1)
    reader:skip(1)
    info[#info + 1] = "rank=" .. reader:number("job.rank", 2)
    reader:number("job.handle", 4)
    reader:add("job.mac", 6)
    reader:add("job.mac", 6)
  end,
  [5] = function(reader, info) -- BYE
    info[#info + 1] = "rank=" .. reader:number("job.rank", 2)
    info[#info + 1] = REASONS[reader:number("job.reason", 1)] or "reason?"
    reader:skip(1)
    reader:number("job.handle", 4)
  end,
  [6] = function(reader, info) -- COMMIT
    info[#info + 1] = "roster=" .. reader:number("job.roster", 4)
    reader:skip(4)
  end,
}

local function job(reader, info)
  local kind = reader:number("job.kind", 1)
  local flags = reader:take(1, "flags of the job")
  local by_hand = false
  if flags ~= nil then
    by_hand = bit32.band(flags:uint(), 1) ~= 0
    reader.tree:add(f["job.by_hand"], flags)
    reader.tree:add(f["job.introduces"], flags)
  end
  reader:skip(2) -- length of the name, 0
  local name = reader:take(64, "name")
  if name ~= nil then
    reader.tree:add(f["job.name"], name, text_of(name))
  end
  reader:add("job.id", 16)
  info[#info + 1] = JOB_KINDS[kind] or "kind?"
  if job_bodies[kind] == nil then
    reader:fail("is of an unknown kind of JOB")
    return
  end
  if name ~= nil then
    info[#info + 1] = '"' .. text_of(name) .. '"'
  end
  job_bodies[kind](reader, info)
  if not by_hand then
    reader:add("job.tag", 16)
  end
end

local function node(reader, info)
  local kind = reader:number("node.kind", 1)
  info[#info + 1] = NODE_KINDS[kind] or "kind?"
  if NODE_KINDS[kind] == nil then
    reader:fail("is of an unknown kind of NODE")
  end
  reader:number("node.reason", 1)
  reader:skip(2)
  reader:number("node.incarnation", 4)
  reader:add("node.token", 8)
  reader:number("node.own", 4)
  reader:number("node.asked", 4)
  if kind ~= 5 and kind ~= 9 then
    return
  end
  if kind == 9 then
    reader:add("node.number", 8)
  end
  local links = 0
  repeat
    reader:add("node.mac", 6)
    reader:number("node.segment", 2)
    reader:number("node.megabits", 4)
    links = links + 1
  until reader.failed ~= nil or reader:left() == 0 or links == 4
end

local function flow(reader, info)
  reader:number("flow.stream", 4)
  local first = reader:number("flow.first", 4)
  local count = reader:number("flow.count", 2)
  local kind = reader:number("flow.kind", 1)
  reader:number("flow.unordered", 1)
  info[#info + 1] = string.format("%s first=%u count=%u", FLOW_KINDS[kind] or "kind?", first, count)
  if FLOW_KINDS[kind] == nil or count == 0 then
    reader:fail("is no RESERVE, GRANT or REFUSE of at least one number")
  end
end

local function status(reader, info)
  info[#info + 1] = "global=" .. reader:number("counted.global", 4)
  reader:number("status.first", 2)
  local entries = reader:number("status.entries", 2)
  reader:number("status.wanted", 1)
  reader:skip(3)
  if entries == 0 or entries > 256 then
    reader:fail("has " .. entries .. " entries; 1 to 256 are legal")
  end
  for _ = 1, math.min(entries, 256) do
    reader:number("status.next", 4)
  end
end

local function nack(reader, info)
  reader:number("nack.group", 4)
  local from = reader:number("nack.from", 4)
  local to = reader:number("nack.to", 4)
  local kind = reader:number("nack.kind", 1)
  reader:skip(1)
  reader:number("nack.target", 2)
  info[#info + 1] = string.format("%s from=%u to=%u", NACK_KINDS[kind] or "kind?", from, to)
  if NACK_KINDS[kind] == nil then
    reader:fail("is of an unknown kind of NACK")
  end
end

local function link(reader, info)
  local kind = reader:number("link.kind", 1)
  info[#info + 1] = LINK_KINDS[kind] or "kind?"
  if LINK_KINDS[kind] == nil then
    reader:fail("is of an unknown kind of LINK")
  end
  local reason = reader:number("link.reason", 1)
  if kind == 4 then
    info[#info + 1] = ERRORS[reason] or "error?"
  elseif kind == 5 then
    info[#info + 1] = REASONS[reason] or "reason?"
  end
  reader:number("link.version", 1)
  reader:skip(1)
  reader:number("link.incarnation", 4)
  reader:add("link.own", 8)
  reader:add("link.asked", 8)
  reader:number("link.from", 4)
  reader:number("link.to", 4)
  reader:number("link.slot", 2)
  local octets = reader:number("job.attribute_octets", 2)
  reader:number("link.first", 4)
  if kind == 1 then
    local profile = reader:take(32, "profile")
    if profile ~= nil then
      reader.tree:add(f["link.profile"], profile, text_of(profile))
    end
  end
  attributes(reader, octets)
  if kind == 1 or kind == 2 or kind == 7 or kind == 8 then
    reader:add("link.tag", 16)
  end
end

local BODIES = {
  [3] = ack, [4] = req, [5] = probe, [6] = job, [7] = node, [8] = flow, [10] = status, [11] = nack,
  [12] = link,
}

local function flags_text(flags)
  local text = ""
  for place, letter in ipairs(HEADER_FLAGS) do
    if bit32.band(flags, bit32.lshift(1, 8 - place)) ~= 0 then
      text = text .. letter
    end
  end
  return text
end

local function header(buffer, tree)
  tree:add(f["version"], buffer(0, 1))
  tree:add(f["type"], buffer(0, 1))
  local flags = tree:add(f["flags"], buffer(1, 1))
  for _, name in ipairs({ "first", "last", "acks", "ordered", "subset_flag", "tagged", "ack_now",
    "crc_flag" }) do
    flags:add(f[name], buffer(1, 1))
  end
  tree:add(f["length"], buffer(2, 2))
  tree:add(f["handle"], buffer(4, 4))
  tree:add(f["rank"], buffer(8, 2))
  tree:add(f["seq"], buffer(10, 4))
end

-- §8.8: a frame of another node of a mesh, behind a header of its own.
local function forward(buffer, pinfo, root, tree)
  local function fail(why)
    tree:add_proto_expert_info(malformed, "The frame " .. why)
    pinfo.cols.info = "FORWARD [malformed]"
  end
  tree:add(f["version"], buffer(0, 1))
  tree:add(f["type"], buffer(0, 1))
  if buffer:len() < FORWARD_HEADER then
    return fail("ends before its header")
  end
  tree:add(f["forward.hops"], buffer(1, 1))
  tree:add(f["forward.origin"], buffer(2, 6))
  tree:add(f["forward.destination"], buffer(8, 6))
  tree:add(f["forward.length"], buffer(14, 2))
  local length = buffer(14, 2):uint()
  if bit32.rshift(buffer(0, 1):uint(), 4) ~= 0 then
    return fail("is not of version 0")
  elseif buffer(1, 1):uint() > 1 then
    return fail("has more further segments than 1")
  elseif length < HEADER or FORWARD_HEADER + length > buffer:reported_len() then
    return fail("has a length that is not its own")
  elseif buffer:len() < FORWARD_HEADER + length then
    pinfo.cols.info = "FORWARD [cut]"
    return
  elseif bit32.band(buffer(FORWARD_HEADER, 1):uint(), 0x0f) == FORWARD then
    return fail("holds FORWARD")
  end
  ulc.dissector(buffer(FORWARD_HEADER, length):tvb(), pinfo, root)
  pinfo.cols.info:prepend("FORWARD ")
end

function ulc.dissector(buffer, pinfo, root)
  pinfo.cols.protocol = "ULC"
  local tree = root:add(ulc, buffer())
  if buffer:len() > 0 and bit32.band(buffer(0, 1):uint(), 0x0f) == FORWARD then
    return forward(buffer, pinfo, root, tree)
  end
  if buffer:len() < HEADER then
    tree:add_proto_expert_info(malformed, "The frame ends before its header")
    pinfo.cols.info = "too short"
    return
  end
  header(buffer, tree)
  local version = bit32.rshift(buffer(0, 1):uint(), 4)
  local kind = bit32.band(buffer(0, 1):uint(), 0x0f)
  local flags = buffer(1, 1):uint()
  local length = buffer(2, 2):uint()
  local is_packet = kind == 1 or kind == 2 or kind == 9
  -- The length of a packet counts what follows the extensions; that of the others, the body.
  local whole = buffer:reported_len()
  local last = is_packet and whole or math.min(whole, HEADER + length)
  local reader = Reader.new(buffer, HEADER, last, tree)
  local info = { TYPES[kind] or ("type " .. kind) }
  if is_packet then
    info[#info + 1] = string.format("rank=%u seq=%u %s", buffer(8, 2):uint(), buffer(10, 4):uint(),
      flags_text(flags))
  end
  local frozen = kind == 6 or kind == 7 or kind == 12 -- JOB, NODE, LINK
  local version_right = frozen and 0 or 1
  if TYPES[kind] == nil then
    reader:fail("is of a type that this dissector does not know")
  elseif version ~= version_right then
    reader:fail("is of version " .. version)
  elseif is_packet then
    packet(reader, kind, flags, length, info)
  else
    local handle = buffer(4, 4):uint()
    if flags ~= 0 then
      reader:fail("is a control frame with flags")
    elseif kind ~= 5 and buffer(10, 4):uint() ~= 0 then
      reader:fail("is a control frame with a sequence number")
    elseif (kind == 3 or kind == 4) and handle >= GROUP then
      reader:fail("has a handle of the wrong kind")
    elseif frozen and (handle ~= 0 or buffer(8, 2):uint() ~= 0) then
      reader:fail("is JOB, NODE or LINK with a handle or rank")
    elseif whole < HEADER + length then
      reader:fail("ends before its length does")
    end
    BODIES[kind](reader, info)
    if reader.failed == nil and reader:left() > 0 then
      reader:fail("has a body that is longer than its fields")
    end
  end
  if reader.failed == CUT then
    info[#info + 1] = "[cut]"
  elseif reader.failed ~= nil then
    tree:add_proto_expert_info(malformed, "The frame " .. reader.failed)
    info[#info + 1] = "[malformed]"
  end
  pinfo.cols.info = table.concat(info, " ")
end

local table_of_types = DissectorTable.get("ethertype")
local listening = ETHERTYPE_DEFAULT
table_of_types:add(listening, ulc)

function ulc.prefs_changed()
  table_of_types:remove(listening, ulc)
  listening = ulc.prefs.ethertype
  table_of_types:add(listening, ulc)
end
