// SPDX-License-Identifier: BSD-3-Clause
// The key of a job, made of its launcher's nonce, and its tags (docs/PROTOCOL.md §7.2).
//
//   nonce, secret ──▶ id: in the head of every JOB frame, names the job without saying its nonce
//                 └─▶ key ──(source MAC, body)──▶ tag behind the body
//
// BLAKE2b of libsodium. Nothing here is on the data path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/ids.h"
#include "wire/job.h"

namespace ulc::wire {

struct JobKey {
    std::array<std::uint8_t, 32> octets{};
};

/// A hash of the nonce, from which the nonce cannot be found.
[[nodiscard]] Nonce job_id_of(const Nonce& nonce) noexcept;
[[nodiscard]] JobKey job_key_of(const Nonce& nonce) noexcept;
/// The same of the key in the address of an endpoint that is open for links (wire/link.h).
[[nodiscard]] JobKey link_key_of(const Nonce& key) noexcept;
/// The key of an endpoint with a name, and the hash by which such an endpoint is looked up.
[[nodiscard]] Nonce named_key_of(const Nonce& secret, std::span<const std::uint8_t> name) noexcept;
[[nodiscard]] Nonce link_lookup_of(const Nonce& key) noexcept;

/// Returns the tag of a JOB body that `source` sends.
[[nodiscard]] JobTag job_tag(const JobKey& key, const Mac& source,
                             std::span<const std::byte> body) noexcept;
/// Compares in constant time.
[[nodiscard]] bool same_tag(const JobTag& a, const JobTag& b) noexcept;

}  // namespace ulc::wire
