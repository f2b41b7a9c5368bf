// SPDX-License-Identifier: BSD-3-Clause
#include "main/options.h"

#include <unistd.h>

#include <fmt/format.h>
#include <toml++/toml.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <thread>

#include "base/text/nearest.h"
#include "base/text/quantity.h"
#include "main/account_names.h"
#include "main/net_options.h"
#include "urtp/policy.h"
#include "wire/header.h"

namespace ulc::daemon {
namespace {

constexpr std::uint32_t kMemoryBaseMb = 24;     // DPDK's own, and the device's rings
constexpr std::uint32_t kMemoryMinMb = 96;      // unless --memory says less
constexpr std::uint32_t kSegmentOctets = 2432;  // buffer, headroom and descriptor at MTU 1500

std::string help_of(const char* help, const std::string& default_text, const char* unit) {
    std::string text = help;
    if (!default_text.empty())
        text += " [" + default_text + (*unit != 0 ? " " + std::string(unit) : "") + "]";
    return text;
}

/// Options as on the command line.
struct Raw {
#define ULC_OPTION(flag, field, type, default_value, unit, minimum, maximum, help) \
    Raw##type field = raw_##type(default_value);
    using Rawu32 = std::uint32_t;
    using Rawnanos = std::int64_t;
    using Rawtext = std::string;
    using Rawlist = std::vector<std::string>;
    using Rawflag = bool;
    static Rawu32 raw_u32(std::uint32_t value) { return value; }
    static Rawnanos raw_nanos(std::int64_t value) { return value * kMicrosecond; }
    static Rawtext raw_text(const char* value) { return value; }
    static Rawlist raw_list(const char*) { return {}; }
    static Rawflag raw_flag(bool value) { return value; }
#include "main/options.def"
#undef ULC_OPTION
};

// One overload for each kind of value.
void add(CLI::App& app, const char* flag, std::uint32_t& value, const char* unit,
         std::int64_t minimum, std::int64_t maximum, const char* help) {
    app.add_option("--" + std::string(flag), value, help_of(help, std::to_string(value), unit))
        ->check(
            CLI::Range(static_cast<std::uint32_t>(minimum), static_cast<std::uint32_t>(maximum)));
}
void add(CLI::App& app, const char* flag, std::int64_t& value, const char* unit,
         std::int64_t minimum, std::int64_t maximum, const char* help) {
    const TimeBounds bounds{kMicrosecond, minimum * kMicrosecond, maximum * kMicrosecond};
    const auto read = [bounds](std::string& text) { return replace_time(text, bounds); };
    const std::string usual = std::to_string(value / kMicrosecond);
    app.add_option("--" + std::string(flag), value, help_of(help, usual, unit))
        ->transform(CLI::Validator(read, ""))
        ->type_name("TIME");
}
void add(CLI::App& app, const char* flag, std::string& value, const char*, std::int64_t,
         std::int64_t, const char* help) {
    app.add_option("--" + std::string(flag), value, help_of(help, value, ""));
}
void add(CLI::App& app, const char* flag, std::vector<std::string>& value, const char*,
         std::int64_t, std::int64_t, const char* help) {
    app.add_option("--" + std::string(flag), value, help)->delimiter('\0');
}
void add(CLI::App& app, const char* flag, bool& value, const char*, std::int64_t, std::int64_t,
         const char* help) {
    app.add_flag("--" + std::string(flag), value, help);
}

void assign(std::uint32_t& to, std::uint32_t from) { to = from; }
void assign(Nanos& to, Nanos from) { to = from; }
void assign(std::string& to, const std::string& from) { to = from; }
void assign(std::vector<std::string>& to, const std::vector<std::string>& from) { to = from; }
void assign(bool& to, bool from) { to = from; }

void add_all(CLI::App& app, Raw& raw) {
#define ULC_OPTION(flag, field, type, default_value, unit, minimum, maximum, help) \
    add(app, flag, raw.field, unit, minimum, maximum, help);
#include "main/options.def"
#undef ULC_OPTION
    app.set_config("--config", "", "TOML file with the same names: window = 256");
    app.allow_config_extras(CLI::config_extras_mode::error);
}

Options options_of(const Raw& raw) {
    Options options;
#define ULC_OPTION(flag, field, type, default_value, unit, minimum, maximum, help) \
    assign(options.field, raw.field);
#include "main/options.def"
#undef ULC_OPTION
    return options;
}

/// Fills `out`. Returns as check_relations() does.
std::string checked_options_of(const Raw& raw, Options& out) {
    out = options_of(raw);
    for (const std::string& text : out.param_texts) {
        if (std::string wrong = set_param(text, out.params); !wrong.empty()) return wrong;
    }
    return check_relations(out);
}

/// Returns a question for the option that somebody meant who wrote `word`, "--name" or a key of the
/// configuration.
std::string did_you_mean(std::string word, const char* dashes) {
    word.erase(0, word.find_first_not_of('-'));
    const std::string meant = nearest_word(word.substr(0, word.find('=')), {
#define ULC_OPTION(flag, ...) flag,
#include "main/options.def"
#undef ULC_OPTION
                                                                           });
    return meant.empty() ? "" : fmt::format(" did you mean {}{}?", dashes, meant);
}

/// Returns the sentence for an option of release 0.2.0 that is a parameter; empty: it is none.
/// `word` is as did_you_mean() takes it.
std::string now_a_parameter(std::string word, const char* instead) {
    word.erase(0, word.find_first_not_of('-'));
    word.erase(std::min(word.find('='), word.size()));
    const std::string name = param_of_option(word);
    return name.empty() ? "" : fmt::format(fmt::runtime(instead), word, name);
}

/// Returns the file given with --config; empty: none.
std::string config_of(const CLI::App& app) {
    const CLI::Option* option = app.get_config_ptr();
    return option == nullptr || option->results().empty() ? "" : option->results().back();
}

/// Returns the error of toml++ for the file, which is stricter than the reader of CLI11 and knows
/// lines; empty: none.
std::string toml_error(const std::string& path) {
    try {
        static_cast<void>(toml::parse_file(path));
    } catch (const toml::parse_error& error) {
        return fmt::format("{}, line {}: {}; lines look like: window = 256", path,
                           error.source().begin.line, error.description());
    }
    return {};
}

std::string explain(const CLI::App& app, const CLI::Error& error) {
    const std::string config = config_of(app);
    if (dynamic_cast<const CLI::FileError*>(&error) != nullptr)
        return "--config: cannot read " + config + "; name a TOML file, or leave --config out";
    if (!config.empty()) {
        if (std::string wrong = toml_error(config); !wrong.empty()) return wrong;
    }
    std::string text = error.what();
    const std::string word = text.substr(text.rfind(' ') + 1);
    if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr) {
        if (std::string moved = now_a_parameter(
                word, "{} is a parameter: write param = [\"{}=VALUE\"]; --help-params lists all");
            !moved.empty())
            return config + ": " + moved;
        return fmt::format("{}: unknown option {};{} --help lists all", config, word,
                           did_you_mean(word, ""));
    }
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        const auto extras = app.remaining();
        const std::string& first = extras.front();
        if (std::string moved = now_a_parameter(
                first, "--{} is a parameter: write --param {}=VALUE; --help-params lists all");
            first.starts_with('-') && !moved.empty())
            return moved;
        return first.starts_with('-')
                   ? fmt::format("there is no option {};{} --help lists all", first,
                                 did_you_mean(first, "--"))
                   : fmt::format("one word too many: {}; --help lists the options", first);
    }
    return config.empty() ? text : text + " (on the command line or in " + config + ")";
}

/// Returns the ids of the names and numbers that id_of knows; the others are in `unknown`.
template <typename Id>
std::vector<Id> ids_of(const std::vector<std::string>& texts,
                       std::optional<Id> (*id_of)(const std::string&), std::string* unknown) {
    std::vector<Id> ids;
    for (const std::string& text : texts) {
        if (const auto id = id_of(text)) {
            ids.push_back(*id);
        } else if (unknown != nullptr) {
            *unknown = text;
        }
    }
    return ids;
}

/// Returns why the users and groups that may attach are not usable; empty: they are.
std::string check_allowed(const Options& o) {
    std::string unknown;
    static_cast<void>(ids_of<uid_t>(o.allow_uids, user_id, &unknown));
    if (!unknown.empty())
        return "--allow-uid: there is no user '" + unknown + "'; getent passwd lists all";
    static_cast<void>(ids_of<gid_t>(o.allow_gids, group_id, &unknown));
    if (!unknown.empty())
        return "--allow-gid: there is no group '" + unknown + "'; getent group lists all";
    return {};
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        if (end > at) parts.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

/// Returns the memory that the frames of all nets take, in MiB.
std::uint32_t memory_needed_mb(const Options& o) {
    const std::uint64_t frames =
        (2ULL * o.segments + o.rx_descriptors + o.tx_descriptors) * o.devices.size();
    const std::uint64_t octets = frames * (kSegmentOctets + (o.mtu > 1500 ? o.mtu - 1500U : 0U));
    return static_cast<std::uint32_t>(kMemoryBaseMb + octets / (1U << 20));
}

/// Returns why the IP address is not usable; empty: it is, or there is none.
std::string check_ip(const Options& o, std::size_t devices) {
    if (o.ip.empty())
        return o.gateway.empty() && o.vlan == 0
                   ? ""
                   : "--gateway and --vlan belong to --ip; add the node's address, or leave them "
                     "out";
    if (devices != 1) return "--ip is for an engine of one device; start one for each device";
    if (o.exception)
        return "--ip uses the IP packets of the NIC, which --exception gives to the kernel; leave "
               "one out";
    ip::DeviceSpec ignored;
    std::string why;
    return ip::parse_device(o.ip, o.gateway, o.vlan, ignored, why) == Err::kOk ? "" : why;
}

bool power_of_two(std::uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

}  // namespace

std::string check_relations(const Options& o) {
    if (std::string wrong = check_nets(nets_of(o.devices)); !wrong.empty()) return wrong;
    const std::vector<NetOption> nets = nets_of(o.devices);
    if (o.crc && names_of(nets).size() < nets.size())
        return "--crc does not go with several links of a net, since each link fills in addresses; "
               "leave --crc out";
    port::MeshPlace place;
    if (!o.mesh.empty() && !parse_place(o.mesh, place))
        return fmt::format("--mesh {} is no place; write row and column from 1 to {}, as in 2,3",
                           o.mesh, kMeshLinesMax);
    if (!o.seal.empty() && names_of(nets).size() != nets.size())
        return "--seal is for nets of one device; leave it out, or give each device a net";
    if (std::string wrong = check_ip(o, nets.size()); !wrong.empty()) return wrong;
    if (!o.mesh.empty() && (nets.size() != 2 || names_of(nets).size() != 1))
        return "--mesh needs one net with two devices, as in --device lan:eth0 --device lan:eth1";
    if (o.mtu != 0 && o.mtu < wire::kMtuMin)
        return fmt::format("--mtu must be at least {}, or 0 for what the device offers",
                           wire::kMtuMin);
    urtp::Policy policy;
    urtp::Params params;
    if (urtp::resolve(o.profile, policy, params) != Err::kOk)
        return fmt::format("--profile {} is unknown; words, joined by +: {}", o.profile,
                           urtp::policy_words());
    if (!power_of_two(o.window)) return "--window must be a power of two";
    if (!power_of_two(o.sq_slots) || !power_of_two(o.cq_slots))
        return "--submission-slots and --completion-slots must be powers of two";
    if (o.hugepages != "auto" && o.hugepages != "always" && o.hugepages != "never")
        return "--hugepages is auto, always or never, not " + o.hugepages;
    if (o.sandbox != "auto" && o.sandbox != "yes" && o.sandbox != "no")
        return "--sandbox is auto, yes or no, not " + o.sandbox;
    if (o.upgrade != "yes" && o.upgrade != "no") return "--upgrade is yes or no, not " + o.upgrade;
    if (o.window < 2 * o.params.ack_window)
        return "--window must be at least twice ack-window of --param, or senders stop for ACKs";
    if (o.params.min_recv_wait > o.params.max_recv_wait)
        return "--param: min-recv-wait must not exceed max-recv-wait";
    if (o.params.min_send_wait > o.params.max_send_wait)
        return "--param: min-send-wait must not exceed max-send-wait";
    if (o.peer_dead < 4 * o.params.max_send_wait)
        return "--peer-dead must be at least four times max-send-wait of --param, or a few lost "
               "probes kill a peer";
    if (std::max(o.tx_arena, o.rx_arena) > o.params.arena_max)
        return "--tx-arena and --rx-arena must not exceed arena-max of --param";
    const std::uint32_t needed_mb = memory_needed_mb(o);
    if (o.memory_mb != 0 && needed_mb > o.memory_mb)
        return fmt::format(
            "{} of --segments {} need --memory {}, not {}; raise the one or lower the other",
            o.devices.size() == 1 ? "one net" : fmt::format("{} nets", o.devices.size()),
            o.segments, needed_mb, o.memory_mb);
    return check_allowed(o);
}

bool parse_daemon_options(int argc, const char* const* argv, Options& out, int& status) {
    CLI::App app(
        "ulc-engine: one node's engine; owns a NIC and serves local processes that link libulc");
    Raw raw;
    add_all(app, raw);
    app.set_version_flag("--version", ULC_VERSION);
    bool markdown = false;
    app.add_flag("--print-options", markdown, "print all options as a Markdown table and end");
    bool lists_params = false;
    app.add_flag("--help-params", lists_params, "print the parameters of --param and end");
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& done) {  // --help, --version
        status = app.exit(done);
        return false;
    } catch (const CLI::Error& error) {
        std::fprintf(stderr, "ulc-engine: %s\n", explain(app, error).c_str());
        status = 2;
        return false;
    }
    if (const std::string wrong = config_of(app).empty() ? "" : toml_error(config_of(app));
        !wrong.empty()) {
        std::fprintf(stderr, "ulc-engine: %s\n", wrong.c_str());
        status = 2;
        return false;
    }
    if (markdown || lists_params) {
        std::fputs((markdown ? options_as_markdown() : params_as_text()).c_str(), stdout);
        status = 0;
        return false;
    }
    if (const std::string wrong = checked_options_of(raw, out); !wrong.empty()) {
        std::fprintf(stderr, "ulc-engine: %s\n", wrong.c_str());
        status = 2;
        return false;
    }
    return true;
}

Err parse_embedded_options(const char* devices, const char* options, Options& out,
                           std::string& why) {
    CLI::App app;
    Raw raw;
    add_all(app, raw);
    try {
        app.parse(options == nullptr ? std::string() : std::string(options), false);
    } catch (const CLI::Error& error) {
        why = "ULC_ENGINE_OPTIONS: " + explain(app, error);
        return Err::kInvalid;
    }
    if (devices != nullptr && *devices != 0) raw.devices = split(devices, ';');
    why = checked_options_of(raw, out);
    return why.empty() ? Err::kOk : Err::kInvalid;
}

namespace {

/// Returns the most endpoints: MPI processes have two, and more ranks than processors are few.
std::uint32_t endpoints_of(const Options& o) {
    if (o.endpoints != 0) return o.endpoints;
    return std::clamp(4 * std::thread::hardware_concurrency(), 512U, 4096U);
}

engine::AccountLimits account_limits_of(const Options& o) {
    engine::AccountLimits limits;
    const bool others = o.allow_all || !o.allow_uids.empty() || !o.allow_gids.empty();
    limits.user_share = others ? o.user_share : 100;
    limits.octets = std::uint64_t{o.client_memory_mb} << 20;
    if (o.client_memory_mb == 0) {
        const auto usual = abi::compute_layout(region_sizes_of(o));
        const std::uint64_t each = usual ? usual.value().region_octets : 0;
        limits.octets = std::max<std::uint64_t>(1024ULL << 20, endpoints_of(o) * each);
    }
    limits.jobs_per_second = o.jobs_per_second;
    limits.owner = geteuid();
    limits.errors_per_second = o.params.client_errors;
    return limits;
}

}  // namespace

NodeOptions node_options_of(const Options& o) {
    NodeOptions node;
    node.eal.program = "ulc-engine";
    node.eal.memory_mb =
        o.memory_mb != 0 ? o.memory_mb : std::max(kMemoryMinMb, memory_needed_mb(o));
    node.eal.hugepages = o.hugepages == "always"  ? dpdk::Hugepages::kAlways
                         : o.hugepages == "never" ? dpdk::Hugepages::kNever
                                                  : dpdk::Hugepages::kAuto;
    node.eal.extra_args = o.eal_args;
    for (const NetOption& net : nets_of(o.devices)) {
        dpdk::PortOptions port;
        port.device = net.device;
        port.mtu = static_cast<std::uint16_t>(o.mtu);
        port.segments = o.segments;
        port.exception = o.exception;
        port.ether_type = static_cast<std::uint16_t>(o.ether_type);
        port.rx_descriptors = static_cast<std::uint16_t>(o.rx_descriptors);
        port.tx_descriptors = static_cast<std::uint16_t>(o.tx_descriptors);
        node.nets.push_back({net.name, port});
        node.eal.devices.push_back(net.device);
    }
    node.seal = o.seal;
    if (std::string ignored; !o.ip.empty())
        static_cast<void>(ip::parse_device(o.ip, o.gateway, o.vlan, node.ip, ignored));
    if (!o.mesh.empty()) static_cast<void>(parse_place(o.mesh, node.mesh.emplace()));
    urtp::Params& p = node.engine.params;
    p.window = o.window;
    p.ack_window = o.params.ack_window;
    p.ack_delay = o.params.ack_delay;
    p.ack_delay_max = o.params.ack_delay_max;
    p.min_req_gap = o.params.min_req_gap;
    p.min_recv_wait = o.params.min_recv_wait;
    p.max_recv_wait = o.params.max_recv_wait;
    p.initial_rtt = o.params.initial_rtt;
    p.min_send_wait = o.params.min_send_wait;
    p.max_send_wait = o.params.max_send_wait;
    p.peer_dead = o.peer_dead;
    p.hold_limit = o.params.hold_limit;
    p.rx_pool_packets = o.params.rx_pool;
    // A process that waits for a node without sending to it is notified of its death as soon as one
    // that sends.
    jobs::LivenessConfig& liveness = node.engine.jobs.liveness;
    liveness.node_dead = o.peer_dead;
    liveness.node_idle = std::min(liveness.node_idle, o.peer_dead / 8);
    node.engine.profile = o.profile;
    node.engine.ether_type = static_cast<std::uint16_t>(o.ether_type);
    node.engine.crc = o.crc;
    node.engine.seed = 0;
    node.engine.endpoints_max = static_cast<std::uint16_t>(endpoints_of(o));
    node.engine.join_timeout = o.params.join_timeout;
    node.engine.groups_max = o.groups;
    node.engine.jobs.jobs_max = static_cast<std::uint16_t>(o.jobs != 0 ? o.jobs : endpoints_of(o));
    node.engine.accounts = account_limits_of(o);
    node.engine.offloads_max = o.params.offloads;
    node.engine.offload_steps_max = o.params.offload_steps;
    node.idle.spin = o.spin;
    node.idle.nap_after = o.nap_after;
    node.idle.nap_max = o.nap;
    node.idle.nap = std::min(node.idle.nap, o.nap);
    node.slow_time = o.slow_time;
    node.trace.file = o.trace;
    node.trace.records = o.trace_frames;
    return node;
}

AttachOptions attach_options_of(const Options& o) {
    AttachOptions attach;
    attach.socket_path = o.socket_path;
    attach.allow_uids = ids_of<uid_t>(o.allow_uids, user_id, nullptr);
    attach.allow_gids = ids_of<gid_t>(o.allow_gids, group_id, nullptr);
    attach.allow_all = o.allow_all;
    attach.rules.sizes = region_sizes_of(o);
    attach.rules.sizes_max = {65536, 65536, o.params.arena_max, o.params.arena_max};
    attach.rules.nets.clear();
    attach.rules.nets = names_of(nets_of(o.devices));
    attach.handshakes_burst = o.attach_burst;
    attach.upgrades = o.upgrade == "yes";
    attach.connections_max = 2 * endpoints_of(o) + 16;
    return attach;
}

abi::RegionSizes region_sizes_of(const Options& o) {
    return {o.sq_slots, o.cq_slots, o.tx_arena, o.rx_arena};
}

std::string options_as_markdown() {
    std::string out =
        "| option | default | unit | bounds | meaning |\n| --- | --- | --- | --- | --- |\n";
    const auto row = [&](const char* flag, const std::string& value, const char* unit,
                         std::int64_t minimum, std::int64_t maximum, const char* help) {
        const std::string bounds = maximum == 0 ? "" : fmt::format("{} … {}", minimum, maximum);
        out += fmt::format("| `--{}` | {} | {} | {} | {} |\n", flag, value, unit, bounds, help);
    };
#define ULC_OPTION(flag, field, type, default_value, unit, minimum, maximum, help) \
    row(flag, fmt::format("{}", default_value), unit, minimum, maximum, help);
#include "main/options.def"
#undef ULC_OPTION
    return out;
}

}  // namespace ulc::daemon
