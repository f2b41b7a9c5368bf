// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_echo.h"

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dpdk/eal.h"

namespace ulc::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kEtherType = 0xB688;  // 0x88B6 on the wire: IEEE 802 local experimental 2
constexpr std::uint16_t kBurst = 32;
constexpr std::uint32_t kMbufs = 4096;
constexpr unsigned kSpinsBeforeYield =
    20'000;  // on a core of one's own never reached within an echo
constexpr std::uint32_t kReplyMs = 200;

/// Bytes after the Ethernet header; the rest of the payload is filled.
struct Body {
    /// 'E' echo this, 'S' count this, 'C' answer with the count, 'Q' echo this and sleep.
    char what;
    char pad[3];
    std::uint32_t value;
};

enum class Do : std::uint32_t { kOpen, kRoundTrips, kOneWay, kServe, kEnd };

struct Command {
    Do what = Do::kEnd;
    std::uint32_t payload = 0;
    std::uint32_t count = 0;
    pid_t peer = 0;
};

struct Answer {
    double ns = -1;
    std::uint32_t received = 0;
    bool ok = false;
    char why[240] = {};
};

double ns_since(Clock::time_point start) {
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

bool elapsed(Clock::time_point start, std::uint32_t ms) { return ns_since(start) > ms * 1e6; }

/// Puts each side on a separate core when there are two: the figure is of the link, not of the
/// scheduler.
void take_core(bool near) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
    int skip = near ? 0 : 1;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed) || skip-- > 0) continue;
        cpu_set_t own;
        CPU_ZERO(&own);
        CPU_SET(cpu, &own);
        sched_setaffinity(0, sizeof own, &own);
        return;
    }
}

/// One side: an ethdev and nothing else.
class Station {
public:
    bool open(DpdkLink link, bool near, const std::string& directory, pid_t far, std::string& why) {
        if (link == DpdkLink::kVeth && near && !make_veth(far, why)) return false;
        dpdk::EalOptions eal;
        eal.program = "dpdk-echo";
        eal.memory_mb = 64;
        dpdk::EalReport report;
        if (dpdk::start_eal(eal, report, why) != Err::kOk) return false;
        const std::string name = link == DpdkLink::kMemif ? "net_memif0" : "net_af_packet0";
        const std::string arguments = link == DpdkLink::kMemif
                                          ? std::string(near ? "role=client" : "role=server") +
                                                ",socket-abstract=no,socket=" + directory + "/echo"
                                          : "iface=ulc0";
        if (rte_eal_hotplug_add("vdev", name.c_str(), arguments.c_str()) != 0 ||
            rte_eth_dev_get_port_by_name(name.c_str(), &port_) != 0) {
            why = name + " did not open";
            return false;
        }
        pool_ = rte_pktmbuf_pool_create("echo", kMbufs, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
                                        SOCKET_ID_ANY);
        const rte_eth_conf conf{};
        if (pool_ == nullptr || rte_eth_dev_configure(port_, 1, 1, &conf) != 0 ||
            rte_eth_rx_queue_setup(port_, 0, 1024, SOCKET_ID_ANY, nullptr, pool_) != 0 ||
            rte_eth_tx_queue_setup(port_, 0, 1024, SOCKET_ID_ANY, nullptr) != 0 ||
            rte_eth_dev_start(port_) != 0) {
            why = name + " did not start";
            return false;
        }
        return true;
    }

    void close() const { rte_eth_dev_stop(port_); }

    bool link_up() const {
        rte_eth_link link{};
        const auto start = Clock::now();
        while (!elapsed(start, 3000)) {
            if (rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP)
                return true;
            usleep(1000);
        }
        return false;
    }

    /// The far side: obeys the frames until one ends it.
    void serve() const {
        std::uint32_t counted = 0;
        unsigned idle = 0;
        for (;;) {
            rte_mbuf* burst[kBurst];
            const std::uint16_t n = rte_eth_rx_burst(port_, 0, burst, kBurst);
            if (n == 0) {
                if (++idle > kSpinsBeforeYield) sched_yield();
                continue;
            }
            idle = 0;
            std::uint16_t back = 0;
            bool sleep = false;
            for (std::uint16_t i = 0; i < n; ++i) {
                Body* body = body_of(burst[i]);
                if (body == nullptr || body->what == 'S') {
                    counted += body != nullptr ? 1 : 0;
                    rte_pktmbuf_free(burst[i]);
                    continue;
                }
                if (body->what == 'C') body->value = counted;
                if (body->what == 'Q') counted = 0;
                sleep |= body->what == 'Q';
                burst[back++] = burst[i];
            }
            send_all(burst, back);
            if (sleep) return;
        }
    }

    /// The median of some batches, times their number: one that was preempted does not count.
    double round_trips(std::uint32_t payload, std::uint32_t count) const {
        constexpr std::uint32_t kBatches = 11;
        const std::uint32_t each = std::max(1U, count / kBatches);
        std::array<double, kBatches> spent;
        for (double& batch : spent) {
            const auto start = Clock::now();
            for (std::uint32_t i = 0; i < each; ++i) {
                std::uint32_t value = 0;
                if (!send(payload, 'E', i) || !await('E', value) || value != i) return -1;
            }
            batch = ns_since(start);
        }
        std::nth_element(spent.begin(), spent.begin() + kBatches / 2, spent.end());
        return spent[kBatches / 2] * count / each;
    }

    double one_way(std::uint32_t payload, std::uint32_t count, std::uint32_t& received) const {
        const auto start = Clock::now();
        for (std::uint32_t sent = 0; sent < count;) {
            rte_mbuf* burst[kBurst];
            const std::uint32_t n = std::min<std::uint32_t>(kBurst, count - sent);
            for (std::uint32_t i = 0; i < n; ++i)
                burst[i] = frame(payload, 'S', sent + i);
            if (!send_all(burst, static_cast<std::uint16_t>(n))) return -1;
            sent += n;
        }
        for (int tries = 0; tries < 5; ++tries) {  // af_packet loses frames when its ring is full
            if (!send(payload, 'C', 0)) return -1;
            if (await('C', received)) return ns_since(start);
        }
        return -1;
    }

    /// Sends the far side to sleep.
    void quiet() const {
        std::uint32_t ignored = 0;
        if (send(64, 'Q', 0)) await('Q', ignored);
    }

private:
    static bool make_veth(pid_t far, std::string& why) {
        const std::string pid = std::to_string(far);
        const std::string commands = "ip link add ulc0 type veth peer name ulc0 netns " + pid +
                                     " && ip link set ulc0 up && nsenter -t " + pid +
                                     " -n ip link set ulc0 up";
        if (std::system((commands + " 2>/dev/null").c_str()) == 0) return true;
        why = "cannot make a veth pair (ip link, nsenter)";
        return false;
    }

    static Body* body_of(rte_mbuf* mbuf) {
        const auto* header = rte_pktmbuf_mtod(mbuf, const rte_ether_hdr*);
        if (mbuf->pkt_len < sizeof *header + sizeof(Body) || header->ether_type != kEtherType)
            return nullptr;
        return rte_pktmbuf_mtod_offset(mbuf, Body*, sizeof *header);
    }

    rte_mbuf* frame(std::uint32_t payload, char what, std::uint32_t value) const {
        rte_mbuf* mbuf = nullptr;
        while ((mbuf = rte_pktmbuf_alloc(pool_)) == nullptr)
            sched_yield();
        auto* header = rte_pktmbuf_mtod(mbuf, rte_ether_hdr*);
        std::memset(&header->dst_addr, 0xff, sizeof header->dst_addr);
        header->src_addr = {{2, 0, 0, 0, 0, 1}};
        header->ether_type = kEtherType;
        const Body body{.what = what, .pad = {}, .value = value};
        std::memcpy(rte_pktmbuf_mtod_offset(mbuf, void*, sizeof *header), &body, sizeof body);
        mbuf->data_len =
            static_cast<std::uint16_t>(std::max<std::size_t>(60, sizeof *header + payload));
        mbuf->pkt_len = mbuf->data_len;
        return mbuf;
    }

    bool send(std::uint32_t payload, char what, std::uint32_t value) const {
        rte_mbuf* mbuf = frame(payload, what, value);
        return send_all(&mbuf, 1);
    }

    bool send_all(rte_mbuf** burst, std::uint16_t n) const {
        unsigned idle = 0;
        std::uint16_t sent = 0;
        auto start = Clock::time_point();
        while ((sent = static_cast<std::uint16_t>(
                    sent + rte_eth_tx_burst(port_, 0, burst + sent, n - sent))) < n) {
            if (++idle < kSpinsBeforeYield) continue;
            if (start == Clock::time_point()) start = Clock::now();
            if (elapsed(start, kReplyMs)) return false;
            sched_yield();
        }
        return true;
    }

    /// The value of the next frame of a kind; false after kReplyMs.
    bool await(char what, std::uint32_t& value) const {
        auto start = Clock::time_point();
        for (unsigned idle = 0;; ++idle) {
            rte_mbuf* burst[kBurst];
            const std::uint16_t n = rte_eth_rx_burst(port_, 0, burst, kBurst);
            bool found = false;
            for (std::uint16_t i = 0; i < n; ++i) {
                const Body* body = body_of(burst[i]);
                if (body != nullptr && body->what == what) {
                    value = body->value;
                    found = true;
                }
                rte_pktmbuf_free(burst[i]);
            }
            if (found) return true;
            if (idle < kSpinsBeforeYield) continue;
            if (start == Clock::time_point()) start = Clock::now();
            if (elapsed(start, kReplyMs)) return false;
            sched_yield();
        }
    }

    std::uint16_t port_ = 0;
    rte_mempool* pool_ = nullptr;
};

/// A child's life: answers commands until there are no more.
void obey(DpdkLink link, bool near, const std::string& directory, int control) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    take_core(near);
    Answer first;
    first.ok = link != DpdkLink::kVeth || unshare(CLONE_NEWNET) == 0;
    if (!first.ok) std::snprintf(first.why, sizeof first.why, "network namespaces need root");
    if (write(control, &first, sizeof first) != sizeof first) return;
    Station station;
    Command command;
    while (read(control, &command, sizeof command) == sizeof command && command.what != Do::kEnd) {
        Answer answer;
        std::string why;
        switch (command.what) {
            case Do::kOpen:
                answer.ok = station.open(link, near, directory, command.peer, why);
                if (answer.ok && near && !station.link_up()) {
                    answer.ok = false;
                    why = "the link did not come up";
                }
                std::snprintf(answer.why, sizeof answer.why, "%s", why.c_str());
                break;
            case Do::kServe:
                station.serve();
                continue;
            case Do::kRoundTrips:
                answer.ns = station.round_trips(command.payload, command.count);
                station.quiet();
                break;
            case Do::kOneWay:
                answer.ns = station.one_way(command.payload, command.count, answer.received);
                station.quiet();
                break;
            case Do::kEnd:
                break;
        }
        if (write(control, &answer, sizeof answer) != sizeof answer) break;
    }
    station.close();
    dpdk::stop_eal();
}

Answer ask(int control, const Command& command) {
    Answer answer;
    if (send(control, &command, sizeof command, MSG_NOSIGNAL) != sizeof command ||
        recv(control, &answer, sizeof answer, MSG_WAITALL) != sizeof answer) {
        std::snprintf(answer.why, sizeof answer.why, "the echo process ended");
        answer.ok = false;
    }
    return answer;
}

}  // namespace

const char* name_of(DpdkLink link) { return link == DpdkLink::kMemif ? "memif" : "veth"; }

bool DpdkEcho::launch(DpdkLink link, std::string& why) {
    for (Side* side : {&far_, &near_}) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
        side->control = pair[0];
        side->pid = fork();
        if (side->pid == 0) {
            close(pair[0]);
            if (side == &near_) close(far_.control);
            obey(link, side == &near_, directory_, pair[1]);
            _exit(0);
        }
        close(pair[1]);
        Answer first;
        if (side->pid < 0 ||
            recv(side->control, &first, sizeof first, MSG_WAITALL) != sizeof first || !first.ok) {
            why = first.why;
            return false;
        }
    }
    // veth: near makes the pair when it opens, and it must be there before far opens.
    Side* const order_memif[] = {&far_, &near_};
    Side* const order_veth[] = {&near_, &far_};
    for (Side* side : link == DpdkLink::kMemif ? order_memif : order_veth) {
        const Answer answer = ask(side->control, {.what = Do::kOpen, .peer = far_.pid});
        if (!answer.ok) {
            why = answer.why;
            return false;
        }
    }
    return true;
}

std::unique_ptr<DpdkEcho> DpdkEcho::start(DpdkLink link, std::string& why) {
    std::unique_ptr<DpdkEcho> echo(new DpdkEcho);
    char directory[] = "/tmp/ulc-echo-XXXXXX";
    if (mkdtemp(directory) == nullptr) {
        why = "cannot make a directory in /tmp";
        return nullptr;
    }
    echo->directory_ = directory;
    if (!echo->launch(link, why)) return nullptr;
    return echo;
}

DpdkEcho::~DpdkEcho() {
    for (const Side& side : {near_, far_}) {
        if (side.control >= 0) {
            const Command end;
            static_cast<void>(!::send(side.control, &end, sizeof end, MSG_NOSIGNAL));
            close(side.control);
        }
        if (side.pid <= 0) continue;
        for (int i = 0; i < 200; ++i) {  // it may be serving still, if a measurement failed
            if (waitpid(side.pid, nullptr, WNOHANG) == side.pid) break;
            if (i == 199) {
                kill(side.pid, SIGKILL);
                waitpid(side.pid, nullptr, 0);
            }
            usleep(10'000);
        }
    }
    unlink((directory_ + "/echo").c_str());
    rmdir(directory_.c_str());
}

double DpdkEcho::round_trips_ns(std::uint32_t payload, std::uint32_t count) {
    const Command serve{.what = Do::kServe};
    if (::send(far_.control, &serve, sizeof serve, MSG_NOSIGNAL) != sizeof serve) return -1;
    return ask(near_.control, {.what = Do::kRoundTrips, .payload = payload, .count = count}).ns;
}

double DpdkEcho::one_way_ns(std::uint32_t payload, std::uint32_t count, std::uint32_t& received) {
    const Command serve{.what = Do::kServe};
    if (::send(far_.control, &serve, sizeof serve, MSG_NOSIGNAL) != sizeof serve) return -1;
    const Answer answer =
        ask(near_.control, {.what = Do::kOneWay, .payload = payload, .count = count});
    received = answer.received;
    return answer.ns;
}

}  // namespace ulc::bench
