// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/run/hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tools/ulc/programs.h"

namespace ulc::tools {
namespace {

/// $1: folder; then the program. Status 125: it could not be started.
constexpr std::string_view kScript =
    "exec 3<&0; IFS= read -r ULC_NONCE <&3 || exit 125; export ULC_NONCE; "
    "cd \"$1\" || exit 125; shift; "
    "command -v \"$1\" >/dev/null || { echo \"ulc run: the host $(uname -n) has no program $1; "
    "copy it there, to the same path\" >&2; exit 127; }; "
    "\"$@\" </dev/null 3<&- & program=$!; "
    "{ cat <&3; kill $program; sleep 5; kill -9 $program; } >/dev/null 2>&1 & watcher=$!; "
    "exec 3<&-; wait $program; status=$?; kill $watcher; exit $status";

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream in(text);
    return {std::istream_iterator<std::string>(in), {}};
}

/// No word of a host may be taken for an option or by a shell.
bool is_host_name(std::string_view name) {
    return !name.empty() && name.front() != '-' && std::ranges::all_of(name, [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               std::string_view("._-:@%").find(c) != std::string_view::npos;
    });
}

bool is_variable(std::string_view name) {
    return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
           std::ranges::all_of(name, [](char c) {
               return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
           });
}

/// One word for a shell, whatever is in it.
std::string shell_word(std::string_view word) {
    std::string out = "'";
    for (const char c : word)
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

bool read_slots(std::string_view word, unsigned& slots) {
    constexpr std::string_view kSlots = "slots=";
    if (!word.starts_with(kSlots)) return false;
    word.remove_prefix(kSlots.size());
    const char* const end = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data(), end, slots);
    return error == std::errc() && at == end && slots >= 1 && slots <= kRanksMax;
}

/// Turns "NAME" into "NAME=value" of our own environment.
std::string complete_export(std::string& one) {
    const std::string name = one.substr(0, one.find('='));
    if (!is_variable(name))
        return fmt::format("--export {}: write NAME=value, or NAME for the value here", one);
    if (one.size() > name.size()) return "";
    const std::string value = environment_of(name.c_str());
    if (value.empty())
        return fmt::format("--export {}: it has no value here; write {}=value", one, one);
    one += "=" + value;
    return "";
}

/// Returns what is wrong, as a sentence; empty: nothing.
std::string parse_hosts(std::string_view text, std::vector<Host>& hosts) {
    std::istringstream lines{std::string(text)};
    std::string line;
    for (unsigned number = 1; std::getline(lines, line); ++number) {
        const std::vector<std::string> words = words_of(line.substr(0, line.find('#')));
        if (words.empty()) continue;
        Host host{.name = words[0]};
        if (!is_host_name(host.name))
            return fmt::format("line {}: \"{}\" is no name of a host", number, host.name);
        if (words.size() > 2 || (words.size() == 2 && !read_slots(words[1], host.slots)))
            return fmt::format("line {}: write NAME, or NAME slots=K with K from 1 to {}", number,
                               kRanksMax);
        hosts.push_back(std::move(host));
    }
    return hosts.empty() ? "it names no host; write one a line" : "";
}

/// Variables of a rank with an engine inside. first_host: that of rank 0, as ssh takes it.
std::string embedded_engine(const HostOptions& options, const ClusterOptions& cluster,
                            std::string_view first_host, unsigned rank) {
    constexpr unsigned kFirstPort = 20'000;  // none that the kernel gives out itself
    constexpr unsigned kPorts = 10'000;
    const unsigned port = kFirstPort + options.port_drawn % kPorts;
    first_host.remove_prefix(first_host.rfind('@') + 1);  // 0 if there is none
    const std::string engine = rank == 0 ? fmt::format("embedded:udp,port={}", port)
                                         : fmt::format("embedded:udp,peer={}:{}", first_host, port);
    std::string words = " " + shell_word("ULC_ENGINE=" + engine);
    if (!options.library_path.empty())
        words += " " + shell_word("LD_LIBRARY_PATH=" + options.library_path);
    if (!cluster.engine_options.empty())
        words += " " + shell_word(fmt::format("ULC_ENGINE_OPTIONS={}",
                                              fmt::join(cluster.engine_options, " ")));
    return words;
}

}  // namespace

std::string read_hosts(const std::string& file, std::vector<Host>& hosts) {
    if (file.find(',') != std::string::npos) {
        std::string lines = file;
        std::ranges::replace(lines, ',', '\n');
        const std::string wrong = parse_hosts(lines, hosts);
        return wrong.empty() ? "" : fmt::format("--hosts {}: {}", file, wrong);
    }
    std::ifstream in(file);
    std::ostringstream text;
    if (!in || !(text << in.rdbuf()))
        return fmt::format("cannot read {}; it must be a file with a host a line", file);
    const std::string wrong = parse_hosts(text.str(), hosts);
    return wrong.empty() ? "" : fmt::format("{}: {}", file, wrong);
}

std::string place_on_hosts(const HostOptions& options, const std::vector<Host>& hosts,
                           const ClusterOptions& cluster, const std::string& folder,
                           ClusterPlan& plan) {
    unsigned slots = 0;
    for (const Host& host : hosts)
        slots += host.slots;
    const unsigned first = options.others ? 1 : 0;
    const unsigned ranks_max = std::min(slots + first, kRanksMax);
    if (cluster.ranks < 1 + first || cluster.ranks > ranks_max)
        return fmt::format(
            "-n must be {} to {}, by the slots of the hosts in {}; add hosts, or slots=", 1 + first,
            ranks_max, options.file);
    std::vector<std::string> exports = options.exports;
    for (std::string& one : exports) {
        if (std::string wrong = complete_export(one); !wrong.empty()) return wrong;
    }
    const std::vector<std::string> ssh = words_of(options.ssh);
    if (ssh.empty()) return "--ssh must name a command, as ssh";
    plan.nodes = static_cast<unsigned>(hosts.size());
    plan.first_rank = first;
    unsigned node = 0;
    unsigned used = 0;
    for (unsigned rank = first; rank < cluster.ranks; ++rank) {
        if (used == hosts[node].slots) {
            ++node;
            used = 0;
        }
        ++used;
        std::string command = "exec env";
        if (options.is_list()) command += embedded_engine(options, cluster, hosts[0].name, rank);
        for (const std::string& one : exports)
            command += " " + shell_word(one);
        command += fmt::format(" {} ULC_RANK={} ULC_SIZE={} sh -c {} ulc-rank {}",
                               shell_word("ULC_JOB=" + cluster.job), rank, cluster.ranks,
                               shell_word(kScript), shell_word(folder));
        for (const std::string& word : cluster.application)
            command += " " + shell_word(word);
        ChildSpec spec{.name = fmt::format("rank {} on {}", rank, hosts[node].name), .argv = ssh};
        spec.argv.push_back(hosts[node].name);
        spec.argv.push_back(std::move(command));
        spec.stdin_from = StdinFrom::kText;
        spec.text = cluster.nonce + "\n";
        plan.ranks.push_back(std::move(spec));
        plan.node_of_rank.push_back(node);
        plan.host_of_rank.push_back(hosts[node].name);
    }
    return "";
}

}  // namespace ulc::tools
