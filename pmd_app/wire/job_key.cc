// SPDX-License-Identifier: BSD-3-Clause
#include "wire/job_key.h"

#include <sodium.h>

#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"

namespace ulc::wire {
namespace {

/// BLAKE2b of `what`, keyed by the nonce.
template <std::size_t N>
std::array<std::uint8_t, N> derive(const Nonce& nonce, std::string_view what) noexcept {
    std::array<std::uint8_t, N> out{};
    const int failed = crypto_generichash(out.data(), out.size(),
                                          reinterpret_cast<const unsigned char*>(what.data()),
                                          what.size(), nonce.octets.data(), nonce.octets.size());
    ULC_CHECK(failed == 0);
    return out;
}

}  // namespace

Nonce job_id_of(const Nonce& nonce) noexcept { return Nonce{derive<16>(nonce, "ULC job id")}; }

JobKey job_key_of(const Nonce& nonce) noexcept { return JobKey{derive<32>(nonce, "ULC job key")}; }

JobKey link_key_of(const Nonce& key) noexcept { return JobKey{derive<32>(key, "ULC link key")}; }

Nonce named_key_of(const Nonce& secret, std::span<const std::uint8_t> name) noexcept {
    std::string what = "ULC link name";
    what.append(name.begin(), name.end());
    return Nonce{derive<16>(secret, what)};
}

Nonce link_lookup_of(const Nonce& key) noexcept {
    return Nonce{derive<16>(key, "ULC link lookup")};
}

JobTag job_tag(const JobKey& key, const Mac& source, std::span<const std::byte> body) noexcept {
    crypto_generichash_state state;
    JobTag tag;
    int failed =
        crypto_generichash_init(&state, key.octets.data(), key.octets.size(), tag.octets.size());
    failed |= crypto_generichash_update(&state, source.octets.data(), source.octets.size());
    failed |= crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(body.data()),
                                        body.size());
    failed |= crypto_generichash_final(&state, tag.octets.data(), tag.octets.size());
    ULC_CHECK(failed == 0);
    return tag;
}

bool same_tag(const JobTag& a, const JobTag& b) noexcept {
    return sodium_memcmp(a.octets.data(), b.octets.data(), a.octets.size()) == 0;
}

}  // namespace ulc::wire
