// SPDX-License-Identifier: BSD-3-Clause
// The seal of datagrams (pmd_app/seal): published vectors of both ciphers, numbers that count once,
// and what a forger, a repeater and a holder of another secret reach: nothing.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "seal/aead.h"
#include "seal/keys.h"
#include "seal/window.h"

namespace ulc::seal {
namespace {

constexpr Mac kForAll;

std::vector<std::byte> bytes_of(std::string_view hexadecimal) {
    std::vector<std::byte> out;
    for (std::size_t n = 0; n + 1 < hexadecimal.size(); n += 2)
        out.push_back(
            static_cast<std::byte>(std::stoi(std::string(hexadecimal.substr(n, 2)), nullptr, 16)));
    return out;
}

std::array<std::uint8_t, kKeyOctets> key_of(std::string_view hexadecimal) {
    std::array<std::uint8_t, kKeyOctets> key{};
    const auto bytes = bytes_of(hexadecimal);
    std::memcpy(key.data(), bytes.data(), key.size());
    return key;
}

class Seal : public testing::Test {
protected:
    Seal() { EXPECT_GE(sodium_init(), 0); }
};

// ---- ciphers ------------------------------------------------------------------------------------

/// A text and its sealed form by OpenSSL 3.0, another implementation.
struct Vector {
    Cipher cipher;
    const char* key;
    std::uint64_t number;
    const char* text;
    const char* sealed;
};

constexpr const char* kText = "554c4320756e6465722061207365616c";
constexpr const char* kKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

TEST_F(Seal, agrees_with_another_implementation_of_both_ciphers) {
    for (const Vector& vector : {
             Vector{Cipher::kChaCha20Poly1305, kKey, 0x0102030405060708, kText,
                    "baaae6d8d0e2ccf9629f89f6f9894632b402f4e52a866e6fb662662da9e84866"},
             // NIST's GCM specification, test case 14: zeros throughout
             Vector{Cipher::kAes256Gcm,
                    "0000000000000000000000000000000000000000000000000000000000000000", 0,
                    "00000000000000000000000000000000",
                    "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
             Vector{Cipher::kAes256Gcm, kKey, 0x0102030405060708, kText,
                    "511d262ea88f6dfb71bf9ccf6d02589c3026285138084c129f7f7fe9778a27c4"},
         }) {
        if (vector.cipher == Cipher::kAes256Gcm && !has_aes()) continue;
        const AeadKey key(vector.cipher, key_of(vector.key));
        std::vector<std::byte> text = bytes_of(vector.text);
        const std::size_t octets = text.size();
        text.resize(octets + kTagOctets);
        key.seal(vector.number, {text.data(), octets}, text.data() + octets);
        EXPECT_EQ(text, bytes_of(vector.sealed));
        std::vector<std::byte> opened(octets);
        EXPECT_TRUE(key.open(vector.number, text, opened.data()));
        EXPECT_EQ(opened, bytes_of(vector.text));
        EXPECT_FALSE(key.open(vector.number + 1, text, opened.data())) << "another number";
        EXPECT_FALSE(key.open(vector.number, {text.data(), kTagOctets - 1}, opened.data()));
    }
}

// ---- numbers ------------------------------------------------------------------------------------

TEST_F(Seal, a_number_counts_once_and_not_when_it_is_old) {
    Prng prng(11);
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{70'000}}) {
        Window window(first);
        std::set<std::uint64_t> seen;
        std::uint64_t end = first;
        for (unsigned n = 0; n < 40'000; ++n) {
            std::uint64_t number = end + prng.below(3);
            if (prng.chance(0.4)) number = end - std::min(end, prng.below(3 * Window::kNumbers));
            if (prng.chance(0.001)) number = end + prng.below(100'000);
            const bool old = number < first || (number < end && end - number > Window::kNumbers);
            const bool fresh = !old && !seen.contains(number);
            ASSERT_EQ(window.is_fresh(number), fresh) << number << " of " << end;
            if (!fresh) continue;
            window.take(number);
            seen.insert(number);
            end = std::max(end, number + 1);
        }
        EXPECT_EQ(window.end(), end);
    }
}

TEST_F(Seal, numbers_that_a_proof_says_were_used_are_old_once_the_window_has_passed) {
    Window window(10);
    window.take(12);
    window.pass(5'000);
    EXPECT_FALSE(window.is_fresh(12));
    EXPECT_FALSE(window.is_fresh(5'000 - Window::kNumbers - 1));
    EXPECT_TRUE(window.is_fresh(4'999));
    EXPECT_TRUE(window.is_fresh(5'000));
    window.pass(100);
    EXPECT_EQ(window.end(), 5'000U) << "it never goes back";
}

// ---- keys ---------------------------------------------------------------------------------------

/// A node that seals, and what another one holds of it.
struct Node {
    std::unique_ptr<Keyring> ring;
    Mac name;

    Node(std::uint8_t n, std::initializer_list<std::uint8_t> secrets) : name{{2, 0, 0, 0, 0, n}} {
        Salt salt{};
        salt.fill(n);
        ring = std::make_unique<Keyring>(name, salt, has_aes());
        for (const std::uint8_t secret : secrets)
            EXPECT_TRUE(ring->add(secret_of(secret)));
    }
    static Secret secret_of(std::uint8_t n) {
        std::array<std::uint8_t, 16> nonce{};
        nonce.fill(n);
        return secret_of_nonce(nonce);
    }
    [[nodiscard]] Proof proof(std::size_t secret = 0) const {
        std::array<std::byte, 20 + sizeof(Proof)> datagram{};
        ring->prove(secret, datagram.data(), 20);
        Proof out;
        EXPECT_EQ(ring->check(datagram, out), secret);
        return out;
    }
    std::vector<std::byte> seal(std::string_view text, Cipher cipher, std::size_t secret = 0,
                                const Mac& receiver = kForAll) {
        std::vector<std::byte> datagram(text.size() + kSealOctets);
        std::memcpy(datagram.data() + sizeof(SealHead), text.data(), text.size());
        ring->seal(secret, cipher, receiver, datagram.data(), text.size());
        return datagram;
    }
};

std::string opened(PeerKeys& keys, const Keyring& ring, std::span<const std::byte> datagram,
                   std::int64_t millisecond = 0) {
    std::string text(datagram.size() < kSealOctets ? 0 : datagram.size() - kSealOctets, '\0');
    const bool good =
        keys.open(ring, datagram, reinterpret_cast<std::byte*>(text.data()), millisecond);
    return good ? text : "refused";
}

std::vector<Cipher> ciphers() {
    std::vector<Cipher> all{Cipher::kChaCha20Poly1305};
    if (has_aes()) all.push_back(Cipher::kAes256Gcm);
    return all;
}

TEST_F(Seal, holders_of_a_secret_open_what_each_other_seal) {
    Node a(1, {7});
    const Node b(2, {9, 7});
    for (const Cipher cipher : ciphers()) {
        PeerKeys keys(a.name, a.proof());
        const auto datagram = a.seal("hello", cipher);
        EXPECT_EQ(datagram[0], std::byte{kSealedForAll});
        EXPECT_EQ(std::search(datagram.begin(), datagram.end(),
                              reinterpret_cast<const std::byte*>("hello"),
                              reinterpret_cast<const std::byte*>("hello") + 5),
                  datagram.end())
            << "the text stands in it";
        EXPECT_EQ(opened(keys, *b.ring, datagram), "hello");
        EXPECT_EQ(opened(keys, *b.ring, datagram), "refused") << "it came before";
        EXPECT_EQ(opened(keys, *b.ring, a.seal("", cipher)), "");
    }
}

TEST_F(Seal, no_changed_cut_or_foreign_datagram_is_opened) {
    Node a(1, {7});
    Node c(3, {7});
    const Node b(2, {7});
    const Node stranger(4, {8});
    PeerKeys keys(a.name, a.proof());
    for (const Cipher cipher : ciphers()) {
        const auto good = a.seal("hello", cipher);
        std::int64_t look = 0;
        for (std::size_t n = 0; n < good.size(); ++n) {
            auto changed = good;
            changed[n] ^= std::byte{1};
            EXPECT_EQ(opened(keys, *b.ring, changed, ++look), "refused") << "octet " << n;
        }
        for (std::size_t n = 0; n < good.size(); ++n)
            EXPECT_EQ(opened(keys, *b.ring, {good.data(), n}, ++look), "refused");
        EXPECT_EQ(opened(keys, *b.ring, c.seal("hello", cipher), ++look), "refused")
            << "sealed by another node";
        PeerKeys others(a.name, a.proof());
        EXPECT_EQ(opened(others, *stranger.ring, good, ++look), "refused") << "another secret";
        EXPECT_EQ(opened(keys, *b.ring, good, ++look), "hello") << "the failures took no number";
    }
}

TEST_F(Seal, a_datagram_for_one_node_is_no_datagram_for_another) {
    Node a(1, {7});
    const Node b(2, {7});
    const Node c(3, {7});
    for (const Cipher cipher : ciphers()) {
        PeerKeys at_b(a.name, a.proof());
        PeerKeys at_c(a.name, a.proof());
        const auto datagram = a.seal("hello", cipher, 0, b.name);
        EXPECT_EQ(datagram[0], std::byte{kSealedForOne});
        EXPECT_EQ(opened(at_c, *c.ring, datagram), "refused");
        auto for_all = datagram;
        for_all[0] = std::byte{kSealedForAll};
        EXPECT_EQ(opened(at_c, *c.ring, for_all), "refused");
        EXPECT_EQ(opened(at_b, *b.ring, datagram), "hello");
    }
}

TEST_F(Seal, forged_tags_cost_bounded_work_and_keep_nothing_away_for_longer) {
    Node a(1, {7});
    const Node b(2, {7});
    PeerKeys keys(a.name, a.proof());
    for (unsigned n = 0; n < PeerKeys::kFailuresMax; ++n) {
        auto forged = a.seal("hello", Cipher::kChaCha20Poly1305);
        forged.back() ^= std::byte{1};
        EXPECT_EQ(opened(keys, *b.ring, forged, 5), "refused");
    }
    const auto good = a.seal("hello", Cipher::kChaCha20Poly1305);
    EXPECT_EQ(opened(keys, *b.ring, good, 5), "refused") << "no more work in this look";
    EXPECT_EQ(opened(keys, *b.ring, good, 6), "hello");
}

TEST_F(Seal, a_number_far_ahead_makes_no_key) {
    Node a(1, {7});
    const Node b(2, {7});
    PeerKeys keys(a.name, a.proof());
    auto far = a.seal("hello", Cipher::kChaCha20Poly1305);
    for (unsigned n = 0; n < 2 * PeerKeys::kFailuresMax; ++n) {
        const Be64 number{(std::uint64_t{n} + 2) << kEpochBits};
        std::memcpy(far.data() + offsetof(SealHead, number), &number, sizeof number);
        EXPECT_EQ(opened(keys, *b.ring, far), "refused");
    }
    EXPECT_EQ(opened(keys, *b.ring, a.seal("hello", Cipher::kChaCha20Poly1305)), "hello")
        << "they did not count as failures";
}

TEST_F(Seal, keys_change_with_the_epoch_of_the_number) {
    const Secret secret = Node::secret_of(1);
    Salt salt{};
    SenderKey key(secret, salt, Mac{{2, 0, 0, 0, 0, 1}}, Cipher::kChaCha20Poly1305);
    std::vector<std::vector<std::byte>> sealed;
    for (const std::uint64_t epoch : {0, 1, 2, 0}) {
        std::vector<std::byte> text(16 + kTagOctets);
        // The same number but for its epoch: with one key the streams would differ too, by the
        // nonce, so the key itself is compared, by what it opens.
        key.at(epoch << kEpochBits).seal(5, {text.data(), 16}, text.data() + 16);
        sealed.push_back(text);
    }
    EXPECT_NE(sealed[0], sealed[1]);
    EXPECT_NE(sealed[0], sealed[2]);
    EXPECT_NE(sealed[1], sealed[2]);
    EXPECT_EQ(sealed[0], sealed[3]);
}

TEST_F(Seal, no_two_keys_are_equal) {
    std::set<std::vector<std::byte>> sealed;
    unsigned made = 0;
    for (const std::uint8_t secret : {1, 2})
        for (const std::uint8_t salted : {1, 2})
            for (const std::uint8_t name : {1, 2})
                for (const Cipher cipher : ciphers()) {
                    Salt salt{};
                    salt.fill(salted);
                    Keyring ring(Mac{{2, 0, 0, 0, 0, name}}, salt, has_aes());
                    EXPECT_TRUE(ring.add(Node::secret_of(secret)));
                    std::vector<std::byte> datagram(8 + kSealOctets);
                    ring.seal(0, cipher, kForAll, datagram.data(), 8);
                    sealed.insert({datagram.begin() + sizeof(SealHead), datagram.end()});
                    ++made;
                }
    EXPECT_EQ(sealed.size(), made);
}

TEST_F(Seal, another_proof_of_the_same_salt_makes_nothing_fresh_again) {
    Node a(1, {7});
    const Node b(2, {7});
    PeerKeys keys(a.name, a.proof());
    const auto datagram = a.seal("hello", Cipher::kChaCha20Poly1305);
    EXPECT_EQ(opened(keys, *b.ring, datagram), "hello");
    keys.pass(a.proof());
    EXPECT_EQ(opened(keys, *b.ring, datagram), "refused");
    PeerKeys forgotten(a.name, a.proof());  // the node was silent for long
    EXPECT_EQ(opened(forgotten, *b.ring, datagram), "refused") << "its number is old";
}

TEST_F(Seal, a_ring_keeps_its_first_secrets) {
    Node a(1, {});
    for (std::uint8_t n = 0; n < 2 * kSecretsMax; ++n) {
        EXPECT_EQ(a.ring->add(Node::secret_of(n)), n < kSecretsMax);
        EXPECT_EQ(a.ring->add(Node::secret_of(n)), n < kSecretsMax) << "it is known";
    }
    EXPECT_EQ(a.ring->count(), kSecretsMax);
    Node b(2, {kSecretsMax - 1});
    PeerKeys keys(b.name, b.proof());
    EXPECT_EQ(opened(keys, *a.ring, b.seal("hello", Cipher::kChaCha20Poly1305)), "hello");
}

TEST_F(Seal, a_proof_of_another_secret_or_of_other_octets_is_none) {
    const Node a(1, {7});
    const Node b(2, {8});
    std::array<std::byte, 20 + sizeof(Proof)> datagram{};
    a.ring->prove(0, datagram.data(), 20);
    Proof out;
    EXPECT_EQ(b.ring->check(datagram, out), Keyring::kNone);
    EXPECT_EQ(a.ring->check(datagram, out), 0U);
    for (std::byte& octet : datagram) {
        octet ^= std::byte{1};
        EXPECT_EQ(a.ring->check(datagram, out), Keyring::kNone);
        octet ^= std::byte{1};
    }
    EXPECT_EQ(a.ring->check({datagram.data(), sizeof(Proof) - 1}, out), Keyring::kNone);
}

// ---- key files ----------------------------------------------------------------------------------

TEST_F(Seal, key_files_that_others_may_read_are_refused_in_a_sentence) {
    const std::string path = testing::TempDir() + "ulc_seal_key." + std::to_string(::getpid());
    const auto write = [&](std::size_t octets, char what) {
        std::ofstream(path, std::ios::trunc) << std::string(octets, what);
    };
    Secret secret;
    std::string why;
    EXPECT_EQ(read_secret(path, secret, why), Err::kInvalid);
    EXPECT_NE(why.find("cannot be read"), std::string::npos) << why;
    write(32, 'a');
    ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
    EXPECT_EQ(read_secret(path, secret, why), Err::kInvalid);
    EXPECT_NE(why.find("chmod 600"), std::string::npos) << why;
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    EXPECT_EQ(read_secret(path, secret, why), Err::kOk) << why;
    Secret other;
    write(32, 'b');
    EXPECT_EQ(read_secret(path, other, why), Err::kOk) << why;
    EXPECT_NE(secret.octets, other.octets);
    for (const std::size_t octets : {0, 15, 4097}) {
        write(octets, 'a');
        EXPECT_EQ(read_secret(path, secret, why), Err::kInvalid) << octets;
        EXPECT_NE(why.find("/dev/urandom"), std::string::npos) << why;
    }
    ::unlink(path.c_str());
    EXPECT_EQ(read_secret("/dev/null", secret, why), Err::kInvalid);
    EXPECT_NE(why.find("no regular file"), std::string::npos) << why;
}

}  // namespace
}  // namespace ulc::seal
