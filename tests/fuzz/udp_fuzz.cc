// SPDX-License-Identifier: BSD-3-Clause
// Any datagrams at a node on UDP, between those of an honest one: what strangers send, what they
// recorded, and what they changed of it (docs/protocol/IP.md §15, §16).
//
//   octet 0: bit 0: the net is sealed; bit 1: each node has another secret too
//   then operations until the input ends: one octet says which, its arguments follow
//
// On a sealed net no node but the honest one counts, and none of its datagrams counts twice or
// changed. An address that proved nothing gets three times the octets that came from there at most,
// and a question a second.
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/check.h"
#include "input.h"
#include "udp/peers.h"

namespace {

using namespace ulc;
using namespace ulc::udp;
using fuzz::Input;
using Datagram = std::vector<std::byte>;

constexpr unsigned kAddresses = 8;  ///< 0 ours, 1 the honest node's, others of strangers
constexpr std::size_t kKeptMax = 64;
constexpr std::size_t kQuestionOctets = sizeof(Hello) + sizeof(seal::Proof);

Address address(unsigned n) {
    Address out;
    ULC_CHECK(read_ip("10.0.0.1", out));
    out.ip[15] = static_cast<std::uint8_t>(n + 1);
    out.port = 4001;
    return out;
}

seal::Secret secret_of(std::uint8_t n) {
    std::array<std::uint8_t, 16> nonce{};
    nonce.fill(n);
    return seal::secret_of_nonce(nonce);
}

struct Node {
    Mac name;
    std::unique_ptr<seal::Keyring> ring;
    std::unique_ptr<Peers> peers;

    Node(std::uint8_t n, bool sealed, bool two) : name{{2, 0, 0, 0, 0, n}} {
        if (sealed) {
            seal::Salt salt{};
            salt.fill(n);
            ring = std::make_unique<seal::Keyring>(name, salt, seal::has_aes());
            ULC_CHECK(!two || ring->add(secret_of(n)));
            ULC_CHECK(ring->add(secret_of(9)));
        }
        peers = std::make_unique<Peers>(PeersConfig{name, n, ring.get()});
    }
};

class World {
public:
    World(bool sealed, bool two) : sealed_(sealed), ours_(1, sealed, two), honest_(2, sealed, two) {
        honest_.peers->add(address(0), 0);
    }

    void step(Input& in) {
        const unsigned op = in.octet();
        switch (op % 6) {
            case 0:
                now_ += kMillisecond << (op / 6 % 12);
                ours_.peers->on_timer(now_);
                honest_.peers->on_timer(now_);
                return;
            case 1:  // the network carries what waits
                while (take(ours_, 0) || take(honest_, 1)) {
                }
                return;
            case 2: {
                const auto octets = std::as_bytes(in.take(in.get<std::uint16_t>() % 1400));
                return arrive(2 + op / 6 % (kAddresses - 2), {octets.begin(), octets.end()});
            }
            case 3: {  // a recorded one, maybe changed, from any address
                if (kept_.empty()) return;
                Datagram datagram = kept_[in.octet() % kept_.size()];
                change(datagram, in);
                return arrive(1 + op / 6 % (kAddresses - 1), datagram);
            }
            case 4:
                return frame(in, false);
            default:
                return frame(in, true);
        }
    }
    void check() const {
        ours_.peers->each([&](const Peers::Peer& peer) {
            ULC_CHECK(!sealed_ || (peer.name == honest_.name && peer.keys != nullptr));
        });
        for (const auto& [to, octets] : sent_)
            ULC_CHECK(!sealed_ || octets <= 3 * came_.at(to) + questions() * kQuestionOctets);
    }

private:
    [[nodiscard]] std::size_t questions() const {
        return 2 + static_cast<std::size_t>(now_ / kSecond);
    }
    static void change(Datagram& datagram, Input& in) {
        const unsigned what = in.octet();
        if (datagram.empty()) return;
        const std::size_t at = in.get<std::uint16_t>() % datagram.size();
        if (what % 4 == 1) datagram[at] ^= std::byte{in.octet()};
        if (what % 4 == 2) datagram.resize(at);
        if (what % 4 == 3) datagram.push_back(std::byte{in.octet()});
    }
    /// Carries a datagram between the two honest nodes; strangers' are counted.
    bool take(Node& node, unsigned from) {
        std::byte body[kControlMax];
        Address to;
        const std::size_t octets = node.peers->next_tx(to, body);
        if (octets == 0) return false;
        ULC_CHECK(octets <= kControlMax);
        const Datagram datagram(body, body + octets);
        keep(datagram);
        if (to == address(0)) {
            ours_.peers->on_datagram(address(from), datagram, now_);
        } else if (to == address(1)) {
            honest_.peers->on_datagram(address(from), datagram, now_);
        } else if (from == 0 && ours_.peers->name_of(to) == Mac{}) {
            sent_[to] += octets;
            came_[to] += 0;
        }
        return true;
    }
    void arrive(unsigned from, const Datagram& datagram) {
        came_[address(from)] += datagram.size();
        ours_.peers->on_datagram(address(from), datagram, now_);
    }
    void keep(const Datagram& datagram) {
        if (kept_.size() < kKeptMax) kept_.push_back(datagram);
    }
    /// A sealed frame of the honest node, or a recorded one; `changed`: by a stranger.
    void frame(Input& in, bool changed) {
        seal::PeerKeys* const keys = ours_.peers->keys_of(address(1));
        if (!sealed_ || keys == nullptr) return;
        Datagram datagram(1 + in.octet() + seal::kSealOctets);
        const bool aes = seal::has_aes() && in.octet() % 2 != 0;
        const auto cipher = aes ? seal::Cipher::kAes256Gcm : seal::Cipher::kChaCha20Poly1305;
        honest_.ring->seal(honest_.ring->count() - 1, cipher, ours_.name, datagram.data(),
                           datagram.size() - seal::kSealOctets);
        const Datagram whole = datagram;
        if (changed) change(datagram, in);
        Datagram text(datagram.size());
        const bool good = keys->open(*ours_.ring, datagram, text.data(), now_ / kMillisecond);
        ULC_CHECK(!good || datagram == whole);
        ULC_CHECK(!good || !keys->open(*ours_.ring, datagram, text.data(), now_ / kMillisecond));
    }

    bool sealed_;
    Node ours_;
    Node honest_;
    Nanos now_ = 0;
    std::vector<Datagram> kept_;
    std::map<Address, std::size_t> sent_;
    std::map<Address, std::size_t> came_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ULC_CHECK(sodium_init() >= 0);
    Input in(data, size);
    const unsigned way = in.octet();
    World world((way & 1U) != 0, (way & 2U) != 0);
    while (!in.done()) {
        world.step(in);
        world.check();
    }
    return 0;
}
