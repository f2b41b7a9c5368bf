// SPDX-License-Identifier: BSD-3-Clause
// A simulated cluster of three nodes, driven by the fuzzer: a job of four ranks with groups, and
// two endpoints with links. Engines are replaced at any moment by new ones that take their state.
// The fuzzer also changes bytes of an exported state.
//
//   export(import(x)) == x; a run with upgrades shows the same frames, completions and counters as
//   the run without them. A changed state is refused with a sentence, or the transports and links
//   of its engine have whole invariants. The end gives every frame back.
//
//   input: configuration (3): profile, faults (2 bits) and rings (1 bit), seed; then operations
//   until the input ends: one byte says which, Op + kOps × client
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "input.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/trace/recorder.h"
#include "urtp/policy.h"

namespace {

using namespace ulc;
using fuzz::Input;

enum class Op : std::uint8_t {
    kSend,         ///< stream (1), length (1)
    kChunk,        ///< stream (1), length (1): the first half of a message, or its second one
    kTake,         ///< n (1): up to n completions
    kTime,         ///< n (1): at most 2^(n % 32) ns and kStepsMax events
    kEvents,       ///< n (1): n % 32 events
    kAddGroup,     ///< group (1), members (1)
    kRemoveGroup,  ///< group (1)
    kExpect,       ///< source (1)
    kHold,         ///< limit (1), excludes and kept members (1)
    kLink,         ///< to (1)
    kUnlink,       ///< slot (1)
    kLeave,
    kEnd,      ///< how (1)
    kLose,     ///< from and to (1), frames (1)
    kCable,    ///< node, and whether it is out (1)
    kUpgrade,  ///< node (1)
    kChanged,  ///< node (1), place (2), n (1), value (1): n imports, each with one byte changed
    kTaken,    ///< node (1), n (1), n bytes, each: place (2), value (1). If the state is taken, the
               ///< new engine goes on, and the run ends soon
};
constexpr unsigned kOps = 18;

constexpr std::uint16_t kNodes = 3;
constexpr std::uint16_t kRanks = 4;    ///< the last one on the node of the first
constexpr std::size_t kClients = 6;    ///< kRanks of a job, and two with links
constexpr unsigned kStepsMax = 200;    ///< in one operation
constexpr unsigned kOperations = 100;  ///< in one run
constexpr GroupHandle kGroup = kGroupBit | 0x777'000U;

std::vector<std::byte> payload(std::size_t octets, unsigned value) {
    return std::vector<std::byte>(octets, static_cast<std::byte>(value));
}

sim::ClusterConfig config_of(Input& in, sim::Recorder& recorder) {
    sim::ClusterConfig config;
    const auto words = urtp::policies();
    config.engine.profile = words[in.below(static_cast<unsigned>(words.size()))]->word;
    const unsigned shape = in.octet();
    constexpr std::array<double, 4> kRates{0, 0, 0.05, 0.3};
    config.net.ports = kNodes;
    config.net.segments = (shape & 8U) != 0 ? 64 : 256;
    config.net.faults.loss = kRates[shape & 3U];
    config.net.faults.reorder = kRates[shape & 3U];
    config.net.faults.duplicate = kRates[shape & 3U];
    config.sizes = (shape & 4U) != 0 ? abi::RegionSizes{16, 16, 16384, 16384}
                                     : abi::RegionSizes{64, 64, 65536, 65536};
    config.engine.endpoints_max = 8;
    config.engine.groups_max = 16;
    config.seed = 1U + in.octet();
    config.recorder = &recorder;
    return config;
}

class Run {
public:
    /// upgrades: false leaves them out, so that nothing else differs.
    Run(Input in, sim::Recorder& recorder, bool upgrades)
        : in_(in), upgrades_(upgrades), cluster_(config_of(in_, recorder)) {
        for (std::size_t n = 0; n < kClients; ++n) {
            cluster_.add_client(static_cast<std::uint16_t>(n % kNodes));
            ULC_CHECK(n < kRanks ? client(n).join("fuzz", static_cast<Rank>(n), kRanks)
                                 : client(n).open_links(3, static_cast<std::uint8_t>(n)));
            cluster_.touch(cluster_.node_of(n));
        }
    }

    void play() {
        for (unsigned n = 0; !in_.done() && n < kOperations && !changed_; ++n) {
            const unsigned op = in_.octet();
            act(static_cast<Op>(op % kOps), op / kOps % kClients);
        }
        if (changed_) return run(1 << 20, 50);
        ULC_CHECK(cluster_.shut_down() == 0);
    }
    /// Every engine that was replaced took the state unchanged, and at least one was.
    [[nodiscard]] bool upgraded() const { return cluster_.upgrades() > 0 && !changed_; }

private:
    [[nodiscard]] sim::RingClient& client(std::size_t n) { return cluster_.client(n); }

    void act(Op op, std::size_t n) {
        switch (op) {
            case Op::kTime:
                return run(Nanos{1} << in_.below(32), kStepsMax);
            case Op::kEvents:
                return run(kSecond, in_.below(32));
            case Op::kLose: {
                const unsigned way = in_.octet();
                return cluster_.net().faults().lose_next(way % kNodes, way / kNodes % kNodes,
                                                         in_.below(8));
            }
            case Op::kCable: {
                const unsigned which = in_.octet();
                return cluster_.net().faults().unplug(which % kNodes, which >= 128);
            }
            case Op::kUpgrade:
                return upgrade(in_.below(kNodes));
            case Op::kChanged:
                return change();
            case Op::kTaken:
                return take_changed();
            default:
                break;
        }
        if (cluster_.gone(n)) return;
        of_client(op, n);
        cluster_.touch(cluster_.node_of(n));
    }

    void of_client(Op op, std::size_t n) {
        sim::RingClient& one = client(n);
        switch (op) {
            case Op::kSend: {
                const std::uint32_t stream = stream_of(one);
                const std::size_t octets = length();
                ++sent_;
                (void)one.send(stream, sent_, payload(octets, sent_));
                break;
            }
            case Op::kChunk: {
                const std::uint32_t stream = stream_of(one);
                const std::size_t half = 64 + length() / 64 * 64;
                std::uint64_t& from = halves_[n];
                if (one.send_chunk(stream, 7, payload(half, 1), from == 0 ? 0 : from,
                                   from == 0 ? 2 * half : from + half))
                    from = from == 0 ? half : 0;
                break;
            }
            case Op::kTake:
                (void)one.poll(1U + in_.below(32));
                break;
            case Op::kAddGroup: {
                const GroupHandle group = kGroup + in_.below(3);
                const unsigned members = in_.octet();
                std::vector<Rank> ranks;
                for (Rank rank = 0; rank < kRanks; ++rank)
                    if ((members >> rank & 1U) != 0) ranks.push_back(rank);
                (void)one.add_group(group, ranks);
                break;
            }
            case Op::kRemoveGroup:
                (void)one.remove_group(kGroup + in_.below(3));
                break;
            case Op::kExpect:
                (void)one.expect(in_.below(kRanks));
                break;
            case Op::kHold: {
                const Nanos limit = Nanos{1} << in_.below(32);
                const unsigned how = in_.octet();
                const auto kept = static_cast<Rank>(how % kRanks);
                (void)one.set_hold(limit, how >= 128, {&kept, how % 8 >= kRanks ? 1U : 0U});
                break;
            }
            case Op::kLink: {
                const std::size_t to = in_.below(2);
                auto& address = addresses_[to];
                if (!cluster_.gone(kRanks + to)) address = client(kRanks + to).address;
                (void)one.link(address);
                break;
            }
            case Op::kUnlink:
                (void)one.unlink(in_.below(4));
                break;
            case Op::kLeave:
                (void)one.leave();
                break;
            case Op::kEnd:
                if (in_.octet() % 2 == 0)
                    cluster_.kill_client(n);
                else
                    cluster_.close_client(n);
                break;
            default:
                break;
        }
    }

    /// Mostly a rank or slot, the world, or a group.
    std::uint32_t stream_of(const sim::RingClient& one) {
        const unsigned octet = in_.octet();
        if (octet < 128) return octet % kRanks;
        if (octet < 192) return one.world;
        return kGroup + octet % 3;
    }
    std::size_t length() {
        const std::size_t octet = in_.octet();
        return octet < 128 ? octet : (octet - 127) * 100;
    }

    void run(Nanos span, unsigned steps) {
        (void)cluster_.run(span, [&steps] { return steps-- == 0; });
    }

    // --- upgrades
    void upgrade(std::uint16_t node) {
        if (!upgrades_) return;
        ULC_CHECK(cluster_.upgrade_node(node));
        if (!changed_) cluster_.engine(node).check_invariants();
    }

    /// Returns a place of the image, counted from its end: the schema is at its beginning.
    [[nodiscard]] std::size_t place_in(const state::Image& image) {
        return image.octets.size() - 1 - in_.get<std::uint16_t>() % image.octets.size();
    }

    std::unique_ptr<engine::Engine> import(std::uint16_t node, const state::Image& image) {
        std::string why;
        std::unique_ptr<engine::Engine> next = cluster_.import_node(node, image, why);
        ULC_CHECK(next != nullptr || !why.empty());
        if (next != nullptr) next->check_imported();
        return next;
    }

    void change() {
        const std::uint16_t node = in_.below(kNodes);
        state::Image image = cluster_.export_node(node);
        const std::size_t first = place_in(image);
        const unsigned imports = 1 + in_.below(32);
        const auto value = static_cast<std::byte>(in_.octet());
        if (!upgrades_) return;
        for (unsigned n = 0; n < imports && first + n < image.octets.size(); ++n) {
            const std::byte was = std::exchange(image.octets[first + n], value);
            (void)import(node, image);
            image.octets[first + n] = was;
        }
    }

    void take_changed() {
        const std::uint16_t node = in_.below(kNodes);
        state::Image image = cluster_.export_node(node);
        for (unsigned bytes = 1 + in_.octet() % 8U; bytes > 0; --bytes) {
            const std::size_t place = place_in(image);
            image.octets[place] = static_cast<std::byte>(in_.octet());
        }
        if (!upgrades_) return;
        std::unique_ptr<engine::Engine> next = import(node, image);
        if (next == nullptr) return;
        cluster_.replace_engine(node, std::move(next));
        cluster_.check_no_engines();
        changed_ = true;
    }

    Input in_;
    const bool upgrades_;
    sim::SimCluster cluster_;
    std::array<std::uint64_t, kClients> halves_{};         ///< octets of a message so far
    std::array<sim::RingClient::Address, 2> addresses_{};  ///< where links are called
    unsigned sent_ = 0;
    bool changed_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    sim::Recorder with;
    bool compare = false;
    {
        Run run(Input(data, size), with, true);
        run.play();
        compare = run.upgraded();
    }
    if (!compare) return 0;
    sim::Recorder without;
    {
        Run run(Input(data, size), without, false);
        run.play();
    }
    const std::string difference = with.difference(without);
    if (!difference.empty()) {
        std::fprintf(stderr, "with and without upgrades: %s\n", difference.c_str());
        std::abort();
    }
    return 0;
}
