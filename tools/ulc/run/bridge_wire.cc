// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/run/bridge_wire.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "tools/ulc/programs.h"

namespace ulc::tools {
namespace {

/// Tokens of the shaper: a quarter of a millisecond of the line, so that a late timer loses none.
constexpr std::uint64_t kBurstOctetsMin = 16 * 1024;
constexpr std::uint64_t kBurstsPerSecond = 4000;
constexpr std::uint64_t kBitsPerOctet = 8;

constexpr const char* kOwnNetwork = "/proc/thread-self/ns/net";
constexpr const char* kNoRoot =
    "a wire of network namespaces needs root or user namespaces; run it with sudo, or as root: "
    "sysctl "
    "kernel.unprivileged_userns_clone=1";

std::string reason(int error) { return std::strerror(error); }

bool write_file(const char* path, const std::string& text) {
    const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(fd);
    return written;
}

std::string path_of(int network) { return fmt::format("/proc/{}/fd/{}", ::getpid(), network); }

/// Makes this process root of a user namespace, if it is not root already.
std::string become_root() {
    if (::geteuid() == 0) return "";
    const uid_t uid = ::geteuid();
    const gid_t gid = ::getegid();
    if (::unshare(CLONE_NEWUSER) != 0)
        return fmt::format("{} (unshare: {})", kNoRoot, reason(errno));
    write_file("/proc/self/setgroups", "deny");
    if (!write_file("/proc/self/uid_map", fmt::format("0 {} 1", uid)) ||
        !write_file("/proc/self/gid_map", fmt::format("0 {} 1", gid)))
        return fmt::format("{} (uid_map: {})", kNoRoot, reason(errno));
    return "";
}

/// Moves a child into the namespace, where IPv6 is to send nothing, and executes the program. A
/// namespace with one interface has nothing to pass on; a router has.
[[noreturn]] void become(int network, char* const* argv, int error_fd) {
    if (::setns(network, CLONE_NEWNET) != 0) ::_exit(126);
    for (const char* which : {"all", "default"})
        write_file(fmt::format("/proc/sys/net/ipv6/conf/{}/disable_ipv6", which).c_str(), "1");
    write_file("/proc/sys/net/ipv4/ip_forward", "1");
    ::dup2(error_fd, STDERR_FILENO);
    ::execvp(argv[0], argv);
    ::_exit(127);
}

/// Runs the program. Returns the first line of its standard error if it fails, else nothing.
std::string run_in(int network, const BridgeStep& step) {
    std::vector<std::string> words = step.argv;
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return reason(errno);
    const pid_t pid = ::fork();
    if (pid == 0) become(network, argv.data(), ends[1]);
    const int fork_error = errno;
    ::close(ends[1]);
    std::string said;
    char buffer[512];
    for (ssize_t n; pid > 0 && (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
        said.append(buffer, static_cast<std::size_t>(n));
    ::close(ends[0]);
    if (pid < 0) return reason(fork_error);
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
    said = said.substr(0, said.find('\n'));
    return said.empty() ? fmt::format("ended with status {}", status) : said;
}

/// Name of a node's port in the namespace of the bridge or router.
std::string port_of(unsigned node, unsigned link) {
    return link == 0 ? fmt::format("port{}", node) : fmt::format("port{}.{}", node, link);
}

}  // namespace

std::string address_of_node(bool routed, unsigned node) {
    return routed ? fmt::format("10.77.{}.2", node) : fmt::format("10.77.0.{}", node + 1);
}

std::vector<BridgeStep> bridge_steps(const BridgeOptions& options,
                                     const std::vector<std::string>& namespaces) {
    std::vector<BridgeStep> steps;
    const unsigned bridge = options.nodes;
    const std::string mtu = std::to_string(options.mtu);
    const auto in = [&](unsigned place, std::vector<std::string> argv) {
        steps.push_back({place, std::move(argv)});
    };
    const auto own_port = [&](unsigned node, unsigned link) {
        const std::string port = port_of(node, link);
        const std::string own = fmt::format("eth{}", link);
        in(bridge, {"ip", "link", "add", port, "mtu", mtu, "type", "veth", "peer", "name", own,
                    "mtu", mtu, "netns", namespaces[node]});
        if (options.routed) {
            in(bridge, {"ip", "address", "add", fmt::format("10.77.{}.1/24", node), "dev", port});
            in(bridge, {"ip", "link", "set", port, "up"});
        } else {
            in(bridge, {"ip", "link", "set", port, "master", "br0", "up"});
        }
        if (options.bits_per_second > 0) {
            const std::uint64_t burst = std::max(
                kBurstOctetsMin, options.bits_per_second / kBitsPerOctet / kBurstsPerSecond);
            in(bridge, {"tc", "qdisc", "replace", "dev", port, "root", "tbf", "rate",
                        fmt::format("{}bit", options.bits_per_second), "burst",
                        std::to_string(burst), "limit", std::to_string(options.queue_octets)});
        }
        in(node, {"ip", "link", "set", own, "up"});
    };
    if (!options.routed)
        in(bridge, {"ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0"});
    for (unsigned node = 0; node < options.nodes; ++node) {
        for (unsigned link = 0; link < options.links; ++link)
            own_port(node, link);
        in(node,
           {"ip", "address", "add", address_of_node(options.routed, node) + "/24", "dev", "eth0"});
        in(node, {"ip", "link", "set", "lo", "up"});
        if (options.routed)
            in(node, {"ip", "route", "add", "default", "via", fmt::format("10.77.{}.1", node)});
    }
    if (!options.routed) in(bridge, {"ip", "link", "set", "br0", "mtu", mtu, "up"});
    return steps;
}

BridgeWire::~BridgeWire() {
    for (const int network : namespaces_)
        ::close(network);
}

std::string BridgeWire::paths() const {
    std::string all;
    for (std::size_t node = 0; node + 1 < namespaces_.size(); ++node)
        all += (node == 0 ? "" : " ") + path_of(namespaces_[node]);
    return all;
}

std::string BridgeWire::make(const BridgeOptions& options) {
    for (const char* program : {"ip", "tc"}) {
        if (find_in_path(program).empty())
            return fmt::format(
                "a wire of network namespaces needs the program '{}'; run: apt-get install "
                "iproute2",
                program);
    }
    if (std::string wrong = become_root(); !wrong.empty()) return wrong;
    const int home = ::open(kOwnNetwork, O_RDONLY | O_CLOEXEC);
    std::vector<std::string> paths;
    int error = home < 0 ? errno : 0;
    for (unsigned place = 0; place <= options.nodes && error == 0; ++place) {
        const int network =
            ::unshare(CLONE_NEWNET) == 0 ? ::open(kOwnNetwork, O_RDONLY | O_CLOEXEC) : -1;
        if (network < 0) {
            error = errno;
            break;
        }
        namespaces_.push_back(network);
        paths.push_back(path_of(network));
    }
    if (home >= 0) {
        // In a user namespace the way back is closed, and this process needs no network.
        static_cast<void>(::setns(home, CLONE_NEWNET));
        ::close(home);
    }
    if (error != 0)
        return fmt::format(
            "--wire: this machine gives no network namespace: {}; {}", reason(error),
            error == EPERM ? "run it as root" : "look at: sysctl user.max_net_namespaces");
    for (const BridgeStep& step : bridge_steps(options, paths)) {
        const std::string said = run_in(namespaces_[step.place], step);
        if (said.empty()) continue;
        std::string command;
        for (const std::string& word : step.argv)
            command += (command.empty() ? "" : " ") + word;
        return fmt::format("the wire cannot be made: '{}' failed: {}", command, said);
    }
    return "";
}

}  // namespace ulc::tools
