// SPDX-License-Identifier: BSD-3-Clause
#include "seal/aead.h"

#include <cstring>

#include "base/check.h"
#include "base/endian.h"

namespace ulc::seal {
namespace {

static_assert(kKeyOctets == crypto_aead_chacha20poly1305_ietf_KEYBYTES);
static_assert(kKeyOctets == crypto_aead_aes256gcm_KEYBYTES);
static_assert(kTagOctets == crypto_aead_chacha20poly1305_ietf_ABYTES);
static_assert(kTagOctets == crypto_aead_aes256gcm_ABYTES);

/// 96 bits: zeros, and the number in big-endian order.
struct Nonce {
    std::array<std::uint8_t, 4> zero{};
    Be64 number;
    explicit Nonce(std::uint64_t value) noexcept : number{value} {}
    [[nodiscard]] const unsigned char* data() const noexcept { return zero.data(); }
};
static_assert(sizeof(Nonce) == crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
static_assert(sizeof(Nonce) == crypto_aead_aes256gcm_NPUBBYTES);

unsigned char* octets_of(std::byte* at) noexcept { return reinterpret_cast<unsigned char*>(at); }
const unsigned char* octets_of(const std::byte* at) noexcept {
    return reinterpret_cast<const unsigned char*>(at);
}

}  // namespace

bool has_aes() noexcept { return crypto_aead_aes256gcm_is_available() == 1; }

AeadKey::AeadKey(Cipher cipher, const std::array<std::uint8_t, kKeyOctets>& key) noexcept
    : chacha_(key), cipher_(cipher) {
    if (cipher == Cipher::kChaCha20Poly1305) return;
    ULC_CHECK(has_aes());
    ULC_CHECK(crypto_aead_aes256gcm_beforenm(&aes_, key.data()) == 0);
}

void AeadKey::seal(std::uint64_t number, std::span<std::byte> text, std::byte* tag,
                   std::span<const std::uint8_t> with) const noexcept {
    const Nonce nonce(number);
    unsigned char* const at = octets_of(text.data());
    const int failed = cipher_ == Cipher::kAes256Gcm
                           ? crypto_aead_aes256gcm_encrypt_detached_afternm(
                                 at, octets_of(tag), nullptr, at, text.size(), with.data(),
                                 with.size(), nullptr, nonce.data(), &aes_)
                           : crypto_aead_chacha20poly1305_ietf_encrypt_detached(
                                 at, octets_of(tag), nullptr, at, text.size(), with.data(),
                                 with.size(), nullptr, nonce.data(), chacha_.data());
    ULC_CHECK(failed == 0);
}

bool AeadKey::open(std::uint64_t number, std::span<const std::byte> sealed, std::byte* text,
                   std::span<const std::uint8_t> with) const noexcept {
    if (sealed.size() < kTagOctets) return false;
    const Nonce nonce(number);
    const std::size_t octets = sealed.size() - kTagOctets;
    const unsigned char* const from = octets_of(sealed.data());
    const int failed = cipher_ == Cipher::kAes256Gcm
                           ? crypto_aead_aes256gcm_decrypt_detached_afternm(
                                 octets_of(text), nullptr, from, octets, from + octets, with.data(),
                                 with.size(), nonce.data(), &aes_)
                           : crypto_aead_chacha20poly1305_ietf_decrypt_detached(
                                 octets_of(text), nullptr, from, octets, from + octets, with.data(),
                                 with.size(), nonce.data(), chacha_.data());
    return failed == 0;
}

}  // namespace ulc::seal
