// SPDX-License-Identifier: BSD-3-Clause
// The keys of a wire whose datagrams are sealed (docs/protocol/IP.md §16). Sans-IO.
//
//   secret ─┬─(salt, name, cipher, epoch)─▶ key by which that node seals its datagrams
//           └─▶ tag of a proof: HELLO and WELCOME, which carry salt and next number of their sender
//
// A secret is the nonce of a job or the content of a key file. All holders of a secret can make
// each other's keys: members can forge each other (docs/design/THREAT_MODEL.md). A node draws its
// salt at each start, so no key serves twice. Every kEpochNumbers numbers a sender takes its next
// key, near the limits of the ciphers for long datagrams and far below them for those of Ethernet
// (RFC 9001 appendix B), and the number says which.
//
// Objects with keys lie in memory that no core file has and that is wiped (sodium_malloc(3)).
// One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/bounded.h"
#include "base/endian.h"
#include "base/error.h"
#include "seal/aead.h"
#include "seal/window.h"
#include "wire/ids.h"

namespace ulc::seal {

inline constexpr std::size_t kSecretsMax = 16;
inline constexpr unsigned kEpochBits = 26;
inline constexpr std::uint64_t kEpochNumbers = std::uint64_t{1} << kEpochBits;

/// Objects of such classes lie in memory with a guard page on each side.
struct Guarded {
    static void* operator new(std::size_t octets);
    static void operator delete(void* object) noexcept { sodium_free(object); }
};

/// Wiped when it ends.
struct Secret {
    std::array<std::uint8_t, kKeyOctets> octets{};

    Secret() = default;
    Secret(const Secret&) = default;
    Secret& operator=(const Secret&) = default;
    ~Secret() { sodium_memzero(octets.data(), octets.size()); }
};

using Salt = std::array<std::uint8_t, 32>;

/// Returns the secret of a job, made of its nonce.
[[nodiscard]] Secret secret_of_nonce(std::span<const std::uint8_t, 16> nonce) noexcept;
/// Reads a key file: 16 to 4096 octets, as random as a key, of a regular file that its owner alone
/// may read, and the owner is this user or root. Errors: kInvalid.
Err read_secret(const std::string& path, Secret& out, std::string& why);
/// Returns random bits of the kernel. sodium_init() was called.
[[nodiscard]] Salt random_salt() noexcept;

/// The end of a sealed HELLO or WELCOME.
struct Proof {
    Salt salt{};               ///< the sender's
    Be64 number{};             ///< the sender's next one: those before count no more
    std::uint8_t ciphers = 1;  ///< bit 0: ChaCha20-Poly1305, bit 1: AES-256-GCM
    std::array<std::uint8_t, 7> zero{};
    std::array<std::uint8_t, kTagOctets> tag{};  ///< made of the whole datagram before it
};
static_assert(sizeof(Proof) == 64);

/// The octets before a sealed text.
struct SealHead {
    std::uint8_t kind = 0;              ///< kSealedForOne or kSealedForAll
    std::array<std::uint8_t, 3> key{};  ///< the id of the key
    Be64 number{};
};
static_assert(sizeof(SealHead) == 12);

/// Kinds of sealed datagrams. The name of the one receiver is the cipher's associated data.
inline constexpr std::uint8_t kSealedForOne = 0x20;
inline constexpr std::uint8_t kSealedForAll = 0x21;

/// Octets by which sealing lengthens a datagram.
inline constexpr std::size_t kSealOctets = sizeof(SealHead) + kTagOctets;

using KeyId = std::array<std::uint8_t, 3>;

/// The keys of one sender under one secret for one cipher, of two epochs at a time.
class SenderKey {
public:
    SenderKey(const Secret& secret, const Salt& salt, const Mac& name, Cipher cipher) noexcept;
    SenderKey(const SenderKey&) = delete;
    SenderKey& operator=(const SenderKey&) = delete;

    [[nodiscard]] const KeyId& id() const noexcept { return id_; }
    /// Returns the key of that number.
    [[nodiscard]] const AeadKey& at(std::uint64_t number) noexcept;

private:
    struct Epoch {
        std::uint64_t epoch;
        AeadKey key;
        Epoch(std::uint64_t number, Cipher cipher, const Secret& secret) noexcept
            : epoch(number), key(cipher, secret.octets) {}
    };
    Secret base_;
    Cipher cipher_;
    KeyId id_;
    std::array<std::optional<Epoch>, 2> epochs_;  ///< by the lowest bit of the epoch
};

class Keyring;

/// The keys by which another node seals, and the numbers that came from it.
class PeerKeys : public Guarded {
public:
    /// Datagrams with a wrong tag that cost work within a millisecond.
    static constexpr unsigned kFailuresMax = 256;

    PeerKeys(const Mac& name, const Proof& proof) noexcept;

    [[nodiscard]] const Salt& salt() const noexcept { return salt_; }
    [[nodiscard]] bool has_aes() const noexcept { return has_aes_; }
    /// Returns the secret that the node has proved to hold.
    [[nodiscard]] std::size_t secret() const noexcept { return secret_; }
    void set_secret(std::size_t secret) noexcept { secret_ = secret; }
    /// Another proof of the same salt: its sender's numbers have come so far.
    void pass(const Proof& proof) noexcept { window_.pass(proof.number); }
    /// Opens a sealed datagram to `text`, which has the octets of the datagram less kSealOctets.
    /// False: it is none of this node, or for another one, has come before, or has a wrong tag.
    /// millisecond: the present one, or that of the last failure.
    [[nodiscard]] bool open(const Keyring& ring, std::span<const std::byte> datagram,
                            std::byte* text, std::int64_t millisecond) noexcept;

private:
    [[nodiscard]] SenderKey* key_of(const Keyring& ring, const KeyId& id) noexcept;

    Mac name_;
    Salt salt_;
    bool has_aes_;
    std::size_t secret_ = 0;
    unsigned failures_ = 0;  ///< in that millisecond
    std::int64_t millisecond_ = 0;
    Window window_;
    FixedVector<std::array<KeyId, kCiphers>, kSecretsMax> ids_;  ///< by the ring's secrets
    std::optional<SenderKey> keys_[kCiphers];                    ///< those that it used last
};

/// The secrets of this node, and the keys by which it seals.
class Keyring : public Guarded {
public:
    static constexpr std::size_t kNone = SIZE_MAX;

    Keyring(const Mac& name, const Salt& salt, bool aes) noexcept
        : name_(name), salt_(salt), has_aes_(aes) {}

    /// Takes another secret. False: it has kSecretsMax others.
    [[nodiscard]] bool add(const Secret& secret) noexcept;
    [[nodiscard]] std::size_t count() const noexcept { return secrets_.size(); }
    [[nodiscard]] const Secret& secret(std::size_t at) const noexcept { return secrets_[at]; }
    [[nodiscard]] bool has_aes() const noexcept { return has_aes_; }
    [[nodiscard]] const Mac& name() const noexcept { return name_; }

    /// Writes a Proof behind the `octets` octets of a datagram.
    void prove(std::size_t secret, std::byte* datagram, std::size_t octets) const noexcept;
    /// Checks the Proof that ends a datagram. Returns the secret by which it is right; kNone: by
    /// none of ours.
    [[nodiscard]] std::size_t check(std::span<const std::byte> datagram, Proof& out) const noexcept;

    /// Seals the text of `octets` octets that stands sizeof(SealHead) behind `datagram`, under
    /// the next number, for the node of that name. No octet set: for all that hold the secret.
    /// Writes SealHead before it and the tag behind it.
    void seal(std::size_t secret, Cipher cipher, const Mac& receiver, std::byte* datagram,
              std::size_t octets) noexcept;

private:
    Mac name_;
    Salt salt_;
    bool has_aes_;
    std::uint64_t number_ = 1;  ///< the next datagram's
    FixedVector<Secret, kSecretsMax> secrets_;
    std::array<std::optional<SenderKey>, kSecretsMax * kCiphers> keys_;
};

/// Starts libsodium, and makes the keyring of a node of that name, with a new salt and the secret
/// of a key file; none if `key_file` is empty. Errors: those of read_secret(), kSystem.
Err make_keyring(const std::string& key_file, const Mac& name, std::unique_ptr<Keyring>& out,
                 std::string& why);

}  // namespace ulc::seal
