// SPDX-License-Identifier: BSD-3-Clause
#include "reference/echo_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

namespace ulc::bench {
namespace {

/// Addresses of both ends.
struct Ends {
    std::string ours;
    std::string peers;
};
/// Those of nodes 0 and 1 of `ulc run --wire bridge` or `--wire routed` are in the environment.
Ends ends_of(Link link) {
    if (link == Link::kLoopback) return {"127.0.0.1", "127.0.0.1"};
    if (link == Link::kVeth) return {"10.199.7.1", "10.199.7.2"};
    const char* all = std::getenv("ULC_RUN_ADDRESSES");  // NOLINT(concurrency-mt-unsafe)
    std::istringstream words(all == nullptr ? "" : all);
    Ends ends;
    words >> ends.ours >> ends.peers;
    return ends;
}
constexpr unsigned kEmptyPollsMax = 2000;  // then yield: both sides may share a core
constexpr unsigned char kEnd = 0xE0;       // a one-byte datagram that ends an echo

bool bring_up(const char* interface) {
    const int s = socket(AF_INET, SOCK_DGRAM, 0);
    ifreq request{};
    std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
    bool ok = ioctl(s, SIOCGIFFLAGS, &request) == 0;
    request.ifr_flags |= IFF_UP;
    ok = ok && ioctl(s, SIOCSIFFLAGS, &request) == 0;
    close(s);
    return ok;
}

bool enter_network(const std::string& path) {
    const int network = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool entered = network >= 0 && setns(network, CLONE_NEWNET) == 0;
    if (network >= 0) close(network);
    return entered;
}

bool run(const std::string& command) { return std::system(command.c_str()) == 0; }

sockaddr_in address_of(Link link, bool peer, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    const Ends ends = ends_of(link);
    inet_pton(AF_INET, (peer ? ends.peers : ends.ours).c_str(), &address.sin_addr);
    return address;
}

void no_delay(int socket) {
    const int one = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

template <typename Attempt>
ssize_t attempt_until_done(Waiting waiting, Attempt attempt) {
    for (unsigned empty = 0;;) {
        const ssize_t n = attempt(waiting == Waiting::kPolled ? MSG_DONTWAIT : 0);
        if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return n;
        if (++empty % kEmptyPollsMax == 0) sched_yield();
    }
}

}  // namespace

struct EchoPeer::Command {
    Protocol protocol;
    Waiting waiting;
    bool sink;
    std::uint32_t octets;
};

const char* name_of(Protocol protocol) { return protocol == Protocol::kUdp ? "udp" : "tcp"; }
const char* name_of(Waiting waiting) { return waiting == Waiting::kPolled ? "polled" : "blocking"; }
const char* name_of(Link link) {
    switch (link) {
        case Link::kLoopback:
            return "loopback";
        case Link::kVeth:
            return "veth";
        case Link::kBridge:
            return "bridge";
    }
    return "";
}

bool send_all(int socket, const void* data, std::size_t octets, Waiting waiting) {
    const auto* at = static_cast<const char*>(data);
    while (octets > 0) {
        const ssize_t n = attempt_until_done(
            waiting, [&](int flags) { return send(socket, at, octets, flags | MSG_NOSIGNAL); });
        if (n <= 0) return false;
        at += n;
        octets -= static_cast<std::size_t>(n);
    }
    return true;
}

bool receive_all(int socket, void* data, std::size_t octets, Waiting waiting) {
    auto* at = static_cast<char*>(data);
    while (octets > 0) {
        const ssize_t n = receive_datagram(socket, at, octets, waiting);
        if (n <= 0) return false;
        at += n;
        octets -= static_cast<std::size_t>(n);
    }
    return true;
}

ssize_t receive_datagram(int socket, void* data, std::size_t octets, Waiting waiting) {
    return attempt_until_done(waiting,
                              [&](int flags) { return recv(socket, data, octets, flags); });
}

std::string bridge_network(unsigned node) {
    const char* all = std::getenv("ULC_RUN_NETWORKS");
    std::istringstream words(all == nullptr ? "" : all);
    std::string path;
    for (unsigned n = 0; n <= node; ++n)
        if (!(words >> path)) return "";
    return path;
}

bool enter_private_namespace() { return unshare(CLONE_NEWNET) == 0 && bring_up("lo"); }

std::unique_ptr<EchoPeer> EchoPeer::start(Link link, std::string& why) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        why = "socketpair failed";
        return nullptr;
    }
    const pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(link, pair[1]);
        _exit(0);
    }
    close(pair[1]);
    std::unique_ptr<EchoPeer> peer(new EchoPeer(link, child, pair[0]));
    char ready = 0;
    if (child < 0 || recv(pair[0], &ready, 1, 0) != 1 || ready != 1) {
        why = "a network namespace cannot be made; run as root";
        return nullptr;
    }
    if (link == Link::kVeth) {
        const std::string name = "ulcref" + std::to_string(child % 100000);
        const std::string pid = std::to_string(child);
        const bool made =
            run("ip link add " + name + " type veth peer name ulcpeer netns " + pid) &&
            run("ip addr add " + ends_of(link).ours + "/24 dev " + name) &&
            run("ip link set " + name + " up");
        if (!made || send(pair[0], "v", 1, 0) != 1 || recv(pair[0], &ready, 1, 0) != 1 ||
            ready != 1) {
            why = "a veth pair cannot be made; run as root, with iproute2 installed";
            return nullptr;
        }
    }
    return peer;
}

EchoPeer::~EchoPeer() {
    close(control_);
    if (child_ > 0) {
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }
}

int EchoPeer::connect_echo(Protocol protocol, Waiting waiting, std::uint32_t octets) {
    return connect({protocol, waiting, false, octets});
}

int EchoPeer::connect_sink(Waiting waiting, std::uint32_t octets) {
    return connect({Protocol::kTcp, waiting, true, octets});
}

int EchoPeer::connect(const Command& command) {
    std::uint16_t port = 0;
    if (send(control_, &command, sizeof command, 0) != sizeof command ||
        recv(control_, &port, sizeof port, 0) != sizeof port)
        return -1;
    const int type = command.protocol == Protocol::kUdp ? SOCK_DGRAM : SOCK_STREAM;
    const int s = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    const sockaddr_in to = address_of(link_, true, port);
    if (::connect(s, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
        close(s);
        return -1;
    }
    if (command.protocol == Protocol::kTcp) no_delay(s);
    return s;
}

void EchoPeer::disconnect(int socket, Protocol protocol) {
    if (protocol == Protocol::kUdp) send(socket, &kEnd, 1, 0);
    close(socket);
    char done = 0;
    static_cast<void>(recv(control_, &done, 1, 0));
}

void EchoPeer::serve(Link link, int control) {
    char ready = 1;
    if (link == Link::kVeth) {
        ready = enter_private_namespace() ? 1 : 0;
        send(control, &ready, 1, 0);
        char go = 0;
        if (ready == 0 || recv(control, &go, 1, 0) != 1) return;
        ready = run("ip addr add " + ends_of(link).peers + "/24 dev ulcpeer") && bring_up("ulcpeer")
                    ? 1
                    : 0;
    }
    if (link == Link::kBridge) ready = enter_network(bridge_network(1)) ? 1 : 0;
    send(control, &ready, 1, 0);
    Command command{};
    while (recv(control, &command, sizeof command, 0) == sizeof command) {
        serve_one(link, control, command);
        const char done = 1;
        send(control, &done, 1, 0);
    }
}

void EchoPeer::serve_one(Link link, int control, const Command& command) {
    const bool udp = command.protocol == Protocol::kUdp;
    const int listener = socket(AF_INET, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
    sockaddr_in here = address_of(link, true, 0);
    socklen_t length = sizeof here;
    if (bind(listener, reinterpret_cast<sockaddr*>(&here), length) != 0 ||
        (!udp && listen(listener, 1) != 0))
        _exit(1);
    getsockname(listener, reinterpret_cast<sockaddr*>(&here), &length);
    const std::uint16_t port = ntohs(here.sin_port);
    send(control, &port, sizeof port, 0);

    std::vector<unsigned char> buffer(command.octets + 1);
    if (udp) {
        sockaddr_in from{};
        socklen_t from_length = sizeof from;
        // The first datagram identifies the asker; after it the socket is connected, like the
        // asker's.
        ssize_t n = recvfrom(listener, buffer.data(), buffer.size(), 0,
                             reinterpret_cast<sockaddr*>(&from), &from_length);
        if (::connect(listener, reinterpret_cast<sockaddr*>(&from), from_length) != 0) _exit(1);
        while (n >= 0 && !(n == 1 && buffer[0] == kEnd)) {
            send(listener, buffer.data(), static_cast<std::size_t>(n), 0);
            n = receive_datagram(listener, buffer.data(), buffer.size(), command.waiting);
        }
    } else {
        const int s = accept(listener, nullptr, nullptr);
        no_delay(s);
        while (receive_all(s, buffer.data(), command.octets, command.waiting)) {
            unsigned char right = 1;
            if (command.sink) {
                for (std::size_t i = 0; i < command.octets; ++i)
                    right &= buffer[i] == pattern(i) ? 1 : 0;
            }
            if (!send_all(s, command.sink ? &right : buffer.data(),
                          command.sink ? 1 : command.octets, command.waiting))
                break;
        }
        close(s);
    }
    close(listener);
}

}  // namespace ulc::bench
