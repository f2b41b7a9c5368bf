// SPDX-License-Identifier: BSD-3-Clause
#include "seal/keys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "base/check.h"

namespace ulc::seal {
namespace {

constexpr std::uint64_t kNumbersEnd = std::uint64_t{1} << 63U;  ///< no node comes so far
constexpr std::uint8_t kBothCiphers = 3;
constexpr std::size_t kFileOctetsMin = 16;
constexpr std::size_t kFileOctetsMax = 4096;

/// BLAKE2b (RFC 7693) of a label and pieces, keyed. Pieces have fixed lengths.
template <std::size_t N>
class Hash {
public:
    Hash(std::span<const std::uint8_t> key, std::string_view label) noexcept {
        ULC_CHECK(crypto_generichash_init(&state_, key.data(), key.size(), N) == 0);
        add(label.data(), label.size());
    }
    ~Hash() { sodium_memzero(&state_, sizeof state_); }
    Hash(const Hash&) = delete;
    Hash& operator=(const Hash&) = delete;

    Hash& add(const void* data, std::size_t octets) noexcept {
        const auto* at = static_cast<const unsigned char*>(data);
        ULC_CHECK(crypto_generichash_update(&state_, at, octets) == 0);
        return *this;
    }
    template <typename T>
    Hash& add(const T& value) noexcept {
        return add(&value, sizeof value);
    }
    void end(std::array<std::uint8_t, N>& out) noexcept {
        ULC_CHECK(crypto_generichash_final(&state_, out.data(), N) == 0);
    }

private:
    crypto_generichash_state state_;
};

using HashOfKey = Hash<kKeyOctets>;

KeyId key_id(const Secret& secret, const Salt& salt, const Mac& name, Cipher cipher) noexcept {
    std::array<std::uint8_t, crypto_generichash_BYTES_MIN> hash;
    Hash<hash.size()>(secret.octets, "ULC seal id").add(salt).add(name).add(cipher).end(hash);
    KeyId id;
    std::copy_n(hash.begin(), id.size(), id.begin());
    return id;
}

/// Returns the associated data of a datagram for that node; no octet set: for all.
std::span<const std::uint8_t> associated(const Mac& receiver) noexcept {
    if (receiver == Mac{}) return {};
    return receiver.octets;
}

std::array<std::uint8_t, kTagOctets> tag_of(const Secret& secret, const std::byte* datagram,
                                            std::size_t octets) noexcept {
    std::array<std::uint8_t, kTagOctets> tag;
    Hash<kTagOctets>(secret.octets, "ULC seal proof").add(datagram, octets).end(tag);
    return tag;
}

}  // namespace

void* Guarded::operator new(std::size_t octets) {
    constexpr std::size_t kAlign = alignof(std::max_align_t);  // objects end at the end of a page
    void* const memory = sodium_malloc((octets + kAlign - 1) / kAlign * kAlign);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

Secret secret_of_nonce(std::span<const std::uint8_t, 16> nonce) noexcept {
    Secret secret;
    HashOfKey(nonce, "ULC seal of a job").end(secret.octets);
    return secret;
}

Err read_secret(const std::string& path, Secret& out, std::string& why) {
    const auto refuse = [&](const std::string& reason) {
        why = "key=" + path + " " + reason;
        return Err::kInvalid;
    };
    // A file that another process cannot exchange between the looks at it; no waiting on a pipe.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): start-up
    if (file < 0) return refuse(std::string("cannot be read: ") + std::strerror(errno));
    struct stat status {};
    std::array<char, kFileOctetsMax + 1> text;
    const bool looked = ::fstat(file, &status) == 0;
    const ssize_t got =
        looked && S_ISREG(status.st_mode) ? ::read(file, text.data(), text.size()) : 0;
    ::close(file);
    const bool whole = got == status.st_size;  // a file that is still written is no key
    const std::size_t octets = whole ? static_cast<std::size_t>(got) : 0;
    std::string wrong;
    if (!looked || !S_ISREG(status.st_mode)) {
        wrong = "is no regular file";
    } else if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        wrong = "may be read by others; run chmod 600 on it";
    } else if (status.st_uid != ::geteuid() && status.st_uid != 0) {
        wrong = "belongs to another user";
    } else if (octets < kFileOctetsMin || octets > kFileOctetsMax) {
        wrong = "has not 16 to 4096 octets; make a key by: head -c 32 /dev/urandom > FILE";
    } else {
        constexpr std::array<std::uint8_t, 16> kNoKey{};
        HashOfKey(kNoKey, "ULC seal of a file").add(text.data(), octets).end(out.octets);
    }
    sodium_memzero(text.data(), text.size());
    return wrong.empty() ? Err::kOk : refuse(wrong);
}

Salt random_salt() noexcept {
    Salt salt;
    randombytes_buf(salt.data(), salt.size());
    return salt;
}

// ---- keys of a sender ---------------------------------------------------------------------------

SenderKey::SenderKey(const Secret& secret, const Salt& salt, const Mac& name,
                     Cipher cipher) noexcept
    : cipher_(cipher), id_(key_id(secret, salt, name, cipher)) {
    HashOfKey(secret.octets, "ULC seal").add(salt).add(name).add(cipher).end(base_.octets);
}

const AeadKey& SenderKey::at(std::uint64_t number) noexcept {
    const std::uint64_t epoch = number >> kEpochBits;
    std::optional<Epoch>& slot = epochs_[epoch % epochs_.size()];
    if (!slot || slot->epoch != epoch) {
        Secret key;
        HashOfKey(base_.octets, "ULC seal epoch").add(Be64(epoch)).end(key.octets);
        slot.emplace(epoch, cipher_, key);
    }
    return slot->key;
}

// ---- keys of a peer -----------------------------------------------------------------------------

PeerKeys::PeerKeys(const Mac& name, const Proof& proof) noexcept
    : name_(name),
      salt_(proof.salt),
      has_aes_((proof.ciphers >> static_cast<unsigned>(Cipher::kAes256Gcm) & 1U) != 0),
      window_(proof.number) {}

/// Returns nullptr if no secret of the ring gives a key of that id.
SenderKey* PeerKeys::key_of(const Keyring& ring, const KeyId& id) noexcept {
    for (auto& key : keys_)
        if (key && key->id() == id) return &*key;
    while (ids_.size() < ring.count()) {
        const Secret& secret = ring.secret(ids_.size());
        (void)ids_.push_back({key_id(secret, salt_, name_, Cipher::kChaCha20Poly1305),
                              key_id(secret, salt_, name_, Cipher::kAes256Gcm)});
    }
    for (std::size_t at = 0; at < ids_.size(); ++at)
        for (std::size_t n = 0; n < kCiphers; ++n) {
            const auto cipher = static_cast<Cipher>(n);
            if (ids_[at][n] != id || (cipher == Cipher::kAes256Gcm && !ring.has_aes())) continue;
            return &keys_[n].emplace(ring.secret(at), salt_, name_, cipher);
        }
    return nullptr;
}

bool PeerKeys::open(const Keyring& ring, std::span<const std::byte> datagram, std::byte* text,
                    std::int64_t millisecond) noexcept {
    SealHead head;
    if (datagram.size() < kSealOctets) return false;
    std::memcpy(&head, datagram.data(), sizeof head);
    if (millisecond_ != millisecond) failures_ = 0;
    millisecond_ = millisecond;
    // In this order: what is cheap, and what no stranger can cause.
    const std::uint64_t number = head.number;
    const bool is_near =
        number >> kEpochBits <= (window_.end() >> kEpochBits) + 1 && number < kNumbersEnd;
    const bool known = head.kind == kSealedForOne || head.kind == kSealedForAll;
    if (!known || !is_near || !window_.is_fresh(number) || failures_ >= kFailuresMax) return false;
    SenderKey* const key = key_of(ring, head.key);
    if (key == nullptr) return false;
    static constexpr Mac kAll;
    const auto with = associated(head.kind == kSealedForOne ? ring.name() : kAll);
    if (!key->at(number).open(number, datagram.subspan(sizeof head), text, with)) {
        ++failures_;
        return false;
    }
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
    window_.take(number);
#endif
    return true;
}

// ---- secrets of this node -----------------------------------------------------------------------

bool Keyring::add(const Secret& secret) noexcept {
    const bool known = std::ranges::any_of(secrets_, [&](const Secret& each) {
        return sodium_memcmp(each.octets.data(), secret.octets.data(), kKeyOctets) == 0;
    });
    return known || secrets_.push_back(secret);
}

void Keyring::prove(std::size_t secret, std::byte* datagram, std::size_t octets) const noexcept {
    Proof proof;
    proof.salt = salt_;
    proof.number = number_;
    if (has_aes_) proof.ciphers = kBothCiphers;
    std::memcpy(datagram + octets, &proof, sizeof proof);
    proof.tag = tag_of(secrets_[secret], datagram, octets + offsetof(Proof, tag));
    std::memcpy(datagram + octets, &proof, sizeof proof);
}

std::size_t Keyring::check(std::span<const std::byte> datagram, Proof& out) const noexcept {
    if (datagram.size() < sizeof out) return kNone;
    const std::size_t octets = datagram.size() - sizeof out;
    std::memcpy(&out, datagram.data() + octets, sizeof out);
    for (std::size_t at = 0; at < secrets_.size(); ++at) {
        const auto tag = tag_of(secrets_[at], datagram.data(), octets + offsetof(Proof, tag));
        if (sodium_memcmp(tag.data(), out.tag.data(), tag.size()) == 0) return at;
    }
    return kNone;
}

void Keyring::seal(std::size_t secret, Cipher cipher, const Mac& receiver, std::byte* datagram,
                   std::size_t octets) noexcept {
    auto& key = keys_[secret * kCiphers + static_cast<std::size_t>(cipher)];
    if (!key) key.emplace(secrets_[secret], salt_, name_, cipher);
    const std::uint64_t number = number_++;
    SealHead head;
    head.kind = receiver == Mac{} ? kSealedForAll : kSealedForOne;
    head.key = key->id();
    head.number = number;
    std::memcpy(datagram, &head, sizeof head);
    std::byte* const text = datagram + sizeof head;
    key->at(number).seal(number, {text, octets}, text + octets, associated(receiver));
}

Err make_keyring(const std::string& key_file, const Mac& name, std::unique_ptr<Keyring>& out,
                 std::string& why) {
    if (sodium_init() < 0) {
        why = "libsodium does not start";
        return Err::kSystem;
    }
    auto ring = std::make_unique<Keyring>(name, random_salt(), has_aes());
    if (!key_file.empty()) {
        Secret secret;
        if (const Err e = read_secret(key_file, secret, why); e != Err::kOk) return e;
        ULC_CHECK(ring->add(secret));
    }
    out = std::move(ring);
    return Err::kOk;
}

}  // namespace ulc::seal
