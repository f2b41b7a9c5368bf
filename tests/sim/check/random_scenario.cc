// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/check/random_scenario.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "coll/reduction.h"
#include "tests/sim/host/presets.h"

namespace ulc::sim {
namespace {

class Draw {
public:
    explicit Draw(std::uint64_t seed) : prng_(seed) {}
    bool chance(double p) { return prng_.chance(p); }
    /// Returns a uniform value in low … high.
    std::uint64_t between(std::uint64_t low, std::uint64_t high) {
        return low + prng_.below(high - low + 1);
    }
    Nanos nanos(Nanos low, Nanos high) {
        return static_cast<Nanos>(
            between(static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)));
    }
    template <typename T>
    T one_of(std::initializer_list<T> values) {
        return *std::next(values.begin(), static_cast<std::ptrdiff_t>(prng_.below(values.size())));
    }
    /// Returns a power of two from 2^low to 2^high.
    std::uint32_t power(unsigned low, unsigned high) { return 1U << between(low, high); }
    double real(double low, double high) {
        return low + (high - low) * (static_cast<double>(prng_.below(1U << 30)) / (1U << 30));
    }

private:
    Prng prng_;
};

void draw_net(Draw& draw, NetConfig& net) {
    net.ports =
        static_cast<std::uint16_t>(draw.chance(0.1) ? draw.between(6, 12) : draw.between(1, 5));
    net.mtu = draw.one_of<std::uint16_t>({576, 1500, 1500, 1500, 4000, 9000});
    const std::uint64_t kind = draw.between(0, 9);
    net.medium = kind < 4   ? MediumKind::kSwitch
                 : kind < 7 ? MediumKind::kCutThrough
                 : kind < 9 ? MediumKind::kHub
                            : MediumKind::kDirect;
    if (net.medium == MediumKind::kDirect) net.ports = 2;
    if (net.medium == MediumKind::kHub) {
        net.bits_per_second = draw.one_of<std::uint64_t>({10'000'000, 100'000'000});
        net.mtu = 1500;
        return;
    }
    const auto rate = [&draw] {
        return draw.one_of<std::uint64_t>(
            {100'000'000, 1'000'000'000, 10'000'000'000, 100'000'000'000});
    };
    net.bits_per_second = rate();
    if (net.medium != MediumKind::kDirect && draw.chance(0.2)) {
        for (std::uint16_t port = 0; port < std::max<std::uint16_t>(net.ports, 2); ++port)
            net.port_bits_per_second.push_back(rate());
    }
    net.latency = draw.nanos(0, 20 * kMicrosecond);
    if (draw.chance(0.4)) net.buffer_octets = draw.between(20'000, 300'000);
    if (draw.chance(0.2)) net.shared_octets = draw.between(60'000, 500'000);
}

FaultRates draw_faults(Draw& draw) {
    FaultRates faults;
    if (draw.chance(0.7)) faults.loss = draw.one_of<double>({0.0001, 0.001, 0.01, 0.03, 0.1, 0.2});
    if (draw.chance(0.2)) faults.burst = {draw.real(0.001, 0.02), draw.real(0.05, 0.5), 1};
    if (draw.chance(0.3)) faults.duplicate = draw.real(0, 0.1);
    if (draw.chance(0.3)) {
        faults.reorder = draw.real(0, 0.2);
        faults.reorder_delay = draw.nanos(kMicrosecond, kMillisecond);
    }
    return faults;
}

HostCosts draw_host(Draw& draw) {
    if (draw.chance(0.3)) return {};
    if (draw.chance(0.5)) {
        const auto& presets = host_presets();
        return presets[draw.between(0, presets.size() - 1)];
    }
    HostCosts host;
    host.name = "random";
    host.round = draw.nanos(1, 2 * kMicrosecond);
    host.send_frame = draw.nanos(0, 10 * kMicrosecond);
    host.send_octet = draw.real(0, 30);
    host.receive_frame = draw.nanos(0, 10 * kMicrosecond);
    host.receive_octet = draw.real(0, 30);
    host.submit = draw.nanos(0, 3 * kMicrosecond);
    host.complete = draw.nanos(0, 3 * kMicrosecond);
    host.notice = draw.chance(0.5) ? Notice::kPoll : Notice::kInterrupt;
    host.poll_period = draw.nanos(0, 20 * kMicrosecond);
    host.interrupt_latency = draw.nanos(0, 30 * kMicrosecond);
    host.interrupt_cost = draw.nanos(0, 10 * kMicrosecond);
    host.bus_octet = draw.real(0, 30);
    host.bus_setup = draw.nanos(0, 2 * kMicrosecond);
    host.bus_by_processor = draw.chance(0.3);
    host.send_threshold = draw.one_of<std::uint32_t>({0, 64, 256, 1024});
    host.receive_threshold = draw.one_of<std::uint32_t>({0, 64, 256});
    host.nic = draw.nanos(0, 2 * kMicrosecond);
    host.tx_ring_frames = static_cast<std::uint16_t>(draw.power(1, 9));
    host.rx_ring_frames = draw.power(4, 10);
    return host;
}

void draw_engine(Draw& draw, engine::EngineConfig& engine) {
    urtp::Params& p = engine.params;
    p.window = draw.power(5, 9);
    p.ack_window = static_cast<std::uint32_t>(draw.between(1, 32));
    p.ack_delay = draw.nanos(0, 500 * kMicrosecond);
    p.ack_delay_max = draw.nanos(0, 8 * kMillisecond);
    if (draw.chance(0.3)) p.reorder_wait = draw.nanos(0, 500 * kMicrosecond);
    p.req_spread = draw.nanos(0, 50 * kMicrosecond);
    p.repair_gather = draw.nanos(0, 50 * kMicrosecond);
    p.min_req_gap = draw.nanos(0, 500 * kMicrosecond);
    p.min_recv_wait = draw.nanos(10 * kMicrosecond, kMillisecond);
    p.max_recv_wait = draw.nanos(p.min_recv_wait, 100 * kMillisecond);
    p.initial_rtt = draw.nanos(10 * kMicrosecond, 5 * kMillisecond);
    p.min_send_wait = draw.nanos(10 * kMicrosecond, 2 * kMillisecond);
    p.max_send_wait = draw.nanos(p.min_send_wait, 100 * kMillisecond);
    p.probe_slot = draw.nanos(0, 20 * kMicrosecond);
    p.rx_pool_packets = static_cast<std::uint32_t>(draw.between(16, 1024));
    p.request_on_receive = draw.chance(0.7);
    engine.crc = draw.chance(0.2);
    engine.pending_sends = draw.power(3, 8);
    engine.records_per_round = static_cast<std::uint32_t>(draw.between(1, 64));
    engine.packets_per_round = static_cast<std::uint32_t>(draw.between(1, 64));
    engine.frames_per_round = static_cast<std::uint32_t>(draw.between(1, 128));
    if (draw.chance(0.3)) {
        engine.jobs.first_seq_fixed = true;  // numbers wrap soon
        engine.jobs.first_seq = static_cast<std::uint32_t>(0 - draw.between(0, 200));
    }
}

void draw_region(Draw& draw, abi::RegionSizes& sizes) {
    sizes.sq_slots = draw.power(3, 8);
    sizes.cq_slots = draw.power(3, 9);
    sizes.tx_arena_octets = draw.power(16, 19);
    sizes.rx_arena_octets = draw.power(16, 19);
}

void draw_traffic(Draw& draw, RandomScenario& s) {
    const bool slow = s.cluster.net.bits_per_second <= 10'000'000;
    s.traffic.messages = static_cast<unsigned>(draw.between(3, slow ? 10 : 40));
    s.traffic.length_max =
        draw.one_of<std::size_t>({100, 5'000, 40'000, slow ? 40'000U : 120'000U});
    if (draw.chance(0.3)) s.traffic.read_gap = draw.nanos(kMicrosecond, 2 * kMillisecond);
    if (draw.chance(0.4)) s.traffic.think = draw.nanos(kMicrosecond, kMillisecond);
    s.traffic.own_groups = draw.chance(0.7);
    s.traffic.repairs = s.cluster.engine.profile.find("detect") == std::string::npos;
}

// Returns the operation of coll/ whose algorithms the call may name: with blocks by rank, some
// operations have fewer.
coll::Op op_of(const Operation& operation) {
    const coll::Op op = operation_of(operation.kind);
    if (!operation.uneven) return op;
    switch (op) {
        case coll::Op::kGather:
            return coll::Op::kGatherv;
        case coll::Op::kScatter:
            return coll::Op::kScatterv;
        case coll::Op::kAlltoall:
            return coll::Op::kAlltoallv;
        default:
            return op;
    }
}

std::string draw_algorithm(Draw& draw, coll::Op op) {
    if (draw.chance(0.2)) return {};  // the library chooses
    std::vector<std::string_view> names;
    for (const coll::Algorithm& algorithm : coll::algorithms())
        if (algorithm.op == op) names.push_back(algorithm.name);
    std::string choice(names[draw.between(0, names.size() - 1)]);
    if (draw.chance(0.4)) choice += ":" + std::to_string(draw.between(1, 5));
    if (draw.chance(0.5))
        choice += "@" + std::to_string(draw.one_of<unsigned>({500, 700, 2000, 16'384}));
    return choice;
}

void draw_reduction(Draw& draw, Operation& op) {
    op.user = draw.chance(0.25);
    do {
        op.type = static_cast<std::uint32_t>(draw.between(ULC_INT8, ULC_LONG_DOUBLE_INT));
        op.op = static_cast<std::uint32_t>(draw.between(ULC_SUM, ULC_MAXLOC));
    } while (coll::apply_of(op.type, op.op) == nullptr);
    // No separate draw: the draws of existing seeds stay the same
    op.commutes = op.user && op.op % 2 != 0;
}

Operation draw_operation(Draw& draw, std::size_t ranks, bool slow) {
    Operation op;
    op.kind = static_cast<CollectiveKind>(draw.between(0, kCollectiveKinds - 1));
    op.octets = draw.one_of<std::size_t>({0, 1, 40, 1000, 5000, 30'000});
    const bool vectors =
        op.kind == CollectiveKind::kBroadcast ||
        (op.kind >= CollectiveKind::kReduce && op.kind != CollectiveKind::kReduceScatter);
    const std::size_t most = slow ? 60'000 : 240'000;  // with all blocks together
    if (!vectors) op.octets = std::min(op.octets, most / ranks);
    op.root = static_cast<std::uint16_t>(draw.between(0, ranks - 1));
    op.in_place = draw.chance(0.5);
    op.uneven = draw.chance(0.3);
    if (op.kind >= CollectiveKind::kReduce) draw_reduction(draw, op);
    op.algorithm = draw_algorithm(draw, op_of(op));
    return op;
}

void draw_work(Draw& draw, RandomScenario& s) {
    const bool slow = s.cluster.net.bits_per_second <= 10'000'000;
    s.overlap = draw.chance(0.4) ? draw.between(2, 4) : 1;
    s.blocking = draw.chance(0.3);
    s.work.resize(s.ranks >= 3 && draw.chance(0.3) ? draw.between(2, 3) : 1);
    for (RandomScenario::GroupWork& work : s.work) {
        std::size_t ranks = s.ranks;
        if (&work != s.work.data()) {
            for (std::uint16_t rank = 0; rank < s.ranks; ++rank)
                work.ranks.insert(
                    work.ranks.begin() + static_cast<std::ptrdiff_t>(draw.between(0, rank)), rank);
            work.ranks.resize(ranks = draw.between(2, s.ranks));
        }
        for (std::uint64_t left = draw.between(1, 12); left > 0; --left)
            work.operations.push_back(draw_operation(draw, ranks, slow));
    }
}

// Draws a job's transport: one protocol, and sometimes another way to acknowledge and to react to
// congestion than its own. Collectives need one that retransmits.
std::string draw_profile(Draw& draw, bool collective) {
    std::string profile =
        draw.one_of({"urtp", "urtp", "urtp", "urtp", "urtp-1997", "gbn", "conservative", "credit",
                     "optimistic", "p0", "p1", "pcode", "detect"});
    if (profile == "detect") return collective ? "urtp" : profile;
    if (draw.chance(0.3)) profile += draw.one_of({"+lazy", "+block", "+eager"});
    if (draw.chance(0.3)) profile += draw.one_of({"+open", "+aimd", "+backoff", "+delay"});
    return profile;
}

void draw_events(Draw& draw, RandomScenario& s) {
    const std::uint64_t count = draw.chance(0.5) ? draw.between(1, 4) : 0;
    const std::uint16_t nodes = s.cluster.net.ports;
    bool death = false;
    for (std::uint64_t n = 0; n < count; ++n) {
        ScenarioEvent event;
        event.at = draw.nanos(0, 30 * kMillisecond);
        event.lasts = draw.nanos(10 * kMicrosecond, 200 * kMillisecond);
        event.kind = static_cast<EventKind>(draw.between(0, 6));
        event.index = draw.between(0, nodes - 1U);
        event.speed = draw.one_of<double>({0.01, 0.1, 0.5, 2});
        switch (event.kind) {
            case EventKind::kPartition:
                event.index = draw.between(0, (1ULL << nodes) - 1);
                break;
            case EventKind::kUnplug:
            case EventKind::kSlowNode:
            case EventKind::kPauseNode:
                break;
            case EventKind::kPauseClient:
                event.index = draw.between(0, s.ranks - 1U);
                break;
            case EventKind::kKillClient:
            case EventKind::kKillNode:
                // At most one rank dies, and two must remain. Collectives only end then; separate
                // tests cover that.
                if (death || s.collective || s.ranks < 3 || nodes < 3) continue;
                death = true;
                if (event.kind == EventKind::kKillClient)
                    event.index = draw.between(0, s.ranks - 1U);
                break;
        }
        s.events.push_back(event);
    }
}

// Draws interfaces that compare few multicast addresses, so that groups share them or use
// broadcast. It draws from a separate stream, so that a seed's other choices stay the same.
void draw_filters(Draw draw, NetConfig& net) {
    if (draw.chance(0.5)) net.multicast_filters = draw.one_of<std::uint16_t>({1, 2, 2, 3, 4, 14});
}

// Returns the processor time of one frame of the largest size, sent and received by the host.
double frame_cost(const HostCosts& host, std::uint16_t mtu) {
    const double octets = (host.send_octet + host.receive_octet) / host.speed + host.bus_octet;
    const Nanos fixed = host.send_frame + host.receive_frame + host.submit + host.complete +
                        host.interrupt_cost + host.round;
    return static_cast<double>(fixed) / host.speed + octets * mtu;
}

// Sets the timeout after which a peer is declared dead: in that time its host, however slow, could
// have taken 20,000 frames. An operator of such hosts sets it likewise. The slowest host decides,
// for one frame of the largest size.
void set_patience(RandomScenario& s) {
    const NetConfig& net = s.cluster.net;
    std::uint64_t slowest = net.bits_per_second;
    for (const std::uint64_t rate : net.port_bits_per_second)
        slowest = std::min(slowest, rate);
    double frame = static_cast<double>(line_time(net.mtu, slowest));
    for (const HostCosts& host : s.cluster.hosts)
        frame = std::max(frame, frame_cost(host, net.mtu));
    s.patience = std::clamp(static_cast<Nanos>(frame * 20'000), 2 * kSecond, 600 * kSecond);
    s.cluster.engine.params.peer_dead = s.patience;
    s.cluster.engine.jobs.liveness.node_dead = s.patience;
}

const char* name_of(MediumKind kind) {
    switch (kind) {
        case MediumKind::kSwitch:
            return "switch";
        case MediumKind::kCutThrough:
            return "cut-through";
        case MediumKind::kDirect:
            return "direct";
        case MediumKind::kHub:
            return "hub";
    }
    return "";
}

const char* name_of(EventKind kind) {
    static constexpr const char* kNames[] = {"partition",  "unplug",       "slow-node",
                                             "pause-node", "pause-client", "kill-client",
                                             "kill-node"};
    return kNames[static_cast<std::size_t>(kind)];
}

void describe_work(std::ostream& out, const RandomScenario::GroupWork& work) {
    out << "\n   ";
    for (const std::uint16_t rank : work.ranks)
        out << ' ' << rank;
    out << (work.ranks.empty() ? " world:" : ":");
    for (const Operation& op : work.operations) {
        out << ' ' << coll::name_of(op_of(op)) << '/' << op.algorithm << " of " << op.octets;
        if (op.kind >= CollectiveKind::kReduce) out << " type " << op.type << " op " << op.op;
        out << " root " << op.root << (op.in_place ? " in place" : "")
            << (op.uneven ? " uneven" : "") << (op.user ? " user" : "")
            << (op.commutes ? " commutes" : "") << ';';
    }
}

}  // namespace

bool RandomScenario::somebody_dies() const noexcept {
    return std::ranges::any_of(events, [](const ScenarioEvent& event) {
        return event.kind == EventKind::kKillClient || event.kind == EventKind::kKillNode;
    });
}

RandomScenario random_scenario(std::uint64_t seed) {
    Draw draw(seed);
    RandomScenario s;
    s.seed = seed;
    s.cluster.seed = seed;
    draw_net(draw, s.cluster.net);
    s.cluster.net.seed = seed;
    s.cluster.net.faults = draw_faults(draw);
    s.cluster.net.segments = draw.chance(0.3) ? draw.power(9, 11) : 4096;
    const std::uint16_t nodes = s.cluster.net.ports;
    const std::uint64_t per_node = draw.chance(0.3) ? draw.between(2, 3) : 1;
    s.ranks = static_cast<std::uint16_t>(std::max<std::uint64_t>(nodes * per_node, 2));
    const bool mixed = draw.chance(0.4);
    const std::uint16_t hosts = mixed ? nodes : std::uint16_t{1};
    for (std::uint16_t node = 0; node < hosts; ++node)
        s.cluster.hosts.push_back(draw_host(draw));
    draw_engine(draw, s.cluster.engine);
    if (s.cluster.engine.crc && draw.chance(0.7)) {  // damage that no lower layer detects
        s.cluster.net.faults.corrupt = draw.one_of<double>({0.0001, 0.001, 0.01, 0.05});
        s.cluster.net.faults.corrupt_octets_max = static_cast<std::uint32_t>(draw.between(1, 16));
    }
    draw_region(draw, s.cluster.sizes);
    s.collective = draw.chance(0.25);
    s.cluster.engine.profile = draw_profile(draw, s.collective);
    if (s.collective) {
        draw_work(draw, s);
    } else {
        draw_traffic(draw, s);
    }
    draw_events(draw, s);
    draw_filters(Draw(~seed), s.cluster.net);
    if (Draw(seed + (std::uint64_t{1} << 63)).chance(0.5)) s.cluster.embedded = Embedded::kHalf;
    set_patience(s);
    s.faulty = draw.nanos(10 * kMillisecond, 500 * kMillisecond);
    for (const ScenarioEvent& event : s.events)
        s.faulty = std::max(s.faulty, event.at + event.lasts);
    return s;
}

std::string RandomScenario::describe() const {
    std::ostringstream out;
    const NetConfig& net = cluster.net;
    const urtp::Params& p = cluster.engine.params;
    out << "  medium " << name_of(net.medium) << ", " << net.ports << " nodes, " << ranks
        << " ranks, " << net.bits_per_second / 1'000'000 << " Mb/s"
        << (net.port_bits_per_second.empty() ? "" : " (mixed)") << ", mtu " << net.mtu
        << ", latency " << net.latency << " ns, buffer " << net.buffer_octets << ", shared "
        << net.shared_octets << ", segments " << net.segments;
    if (net.multicast_filters != kPassesAll) out << ", filters " << net.multicast_filters;
    if (cluster.embedded != Embedded::kNone) out << ", half embedded";
    out << "\n  faults: loss " << net.faults.loss << ", burst " << net.faults.burst.enter
        << ", duplicate " << net.faults.duplicate << ", damage " << net.faults.corrupt
        << ", reorder " << net.faults.reorder << " up to " << net.faults.reorder_delay
        << " ns, for " << faulty << " ns\n  hosts:";
    for (const HostCosts& host : cluster.hosts)
        out << ' ' << host.name;
    out << "\n  profile " << cluster.engine.profile << "\n  window " << p.window << ", ack_window "
        << p.ack_window << ", ack_delay " << p.ack_delay << ", min_req_gap " << p.min_req_gap
        << ", rx_pool " << p.rx_pool_packets << ", pending_sends " << cluster.engine.pending_sends
        << ", rings " << cluster.sizes.sq_slots << '/' << cluster.sizes.cq_slots << ", arenas "
        << cluster.sizes.tx_arena_octets << '/' << cluster.sizes.rx_arena_octets << "\n  ";
    if (collective) {
        out << "collectives, " << overlap << " at once" << (blocking ? ", blocking:" : ":");
        for (const GroupWork& each : work)
            describe_work(out, each);
    } else {
        out << traffic.messages << " messages a rank, to " << traffic.length_max
            << " octets, read gap " << traffic.read_gap << ", think " << traffic.think;
    }
    for (const ScenarioEvent& event : events)
        out << "\n  at " << event.at << ": " << name_of(event.kind) << ' ' << event.index << " for "
            << event.lasts << " ns, speed " << event.speed;
    out << '\n';
    return out.str();
}

}  // namespace ulc::sim
