// SPDX-License-Identifier: BSD-3-Clause
// A key of authenticated encryption (AEAD), by libsodium: ChaCha20-Poly1305 (RFC 8439 §2.8), or
// AES-256-GCM (NIST SP 800-38D) where the processor has its instructions. The nonce is the number
// of a datagram: each number is sealed at most once under a key.
#pragma once

#include <sodium.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ulc::seal {

inline constexpr std::size_t kKeyOctets = 32;
inline constexpr std::size_t kTagOctets = 16;

enum class Cipher : std::uint8_t { kChaCha20Poly1305, kAes256Gcm };
inline constexpr std::size_t kCiphers = 2;

/// Returns whether this processor has AES-256-GCM. sodium_init() was called.
[[nodiscard]] bool has_aes() noexcept;

/// Wiped when it ends. Any thread, one at a time.
class AeadKey {
public:
    AeadKey(Cipher cipher, const std::array<std::uint8_t, kKeyOctets>& key) noexcept;
    ~AeadKey() { sodium_memzero(this, sizeof *this); }
    AeadKey(const AeadKey&) = delete;
    AeadKey& operator=(const AeadKey&) = delete;

    /// Encrypts the text in its place, and writes kTagOctets to `tag`. `with`: associated data.
    void seal(std::uint64_t number, std::span<std::byte> text, std::byte* tag,
              std::span<const std::uint8_t> with = {}) const noexcept;
    /// Decrypts `sealed`, a text and its tag, to `text`. False: it was not sealed by this key under
    /// this number with these data, and `text` has zeros or nothing new.
    [[nodiscard]] bool open(std::uint64_t number, std::span<const std::byte> sealed,
                            std::byte* text,
                            std::span<const std::uint8_t> with = {}) const noexcept;

private:
    union {
        std::array<std::uint8_t, kKeyOctets> chacha_;
        crypto_aead_aes256gcm_state aes_;
    };
    Cipher cipher_;
};

}  // namespace ulc::seal
