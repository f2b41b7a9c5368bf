// SPDX-License-Identifier: BSD-3-Clause
// The job of this process, as its launcher shows it, and the addresses of endpoints in it.
//
// Endpoint number n of every rank joins the job "<name>.ofi.<n>". An address of an endpoint, 64
// bytes, the most that Open MPI takes, big-endian:
//
//   bytes 0-3     "ULCJ"
//   bytes 4-5     version, 3
//   bytes 6-7     rank
//   bytes 8-11    number of the endpoint in its process
//   bytes 12-19   hash of the job's name
//   bytes 20-23   hash of the job's nonce: an earlier job of that name has another
//   bytes 24-29   IPv4 address and port by which engines inside processes find each other
//                 (ulc_meeting.h); zero: none
//   bytes 30-31   zero; ignored
//   bytes 32-63   address for links (ulc.h), by which endpoints of other jobs reach this one; zero:
//                 they cannot
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/endian.h"

namespace ulc::ofi {

inline constexpr std::size_t kAddressBytes = 64;
using Address = std::array<unsigned char, kAddressBytes>;

struct AddressFields {
    unsigned char magic[4];
    Be16 version;
    Be16 rank;
    Be32 endpoint;
    Be64 job;
    Be32 life;
    unsigned char meeting_ip[4];
    Be16 meeting_port;
    Be16 reserved;
    unsigned char link[32];
};
static_assert(sizeof(AddressFields) == kAddressBytes && alignof(AddressFields) == 1);

class Job {
public:
    Job(std::string name, std::uint16_t rank, std::uint16_t size,
        const std::optional<std::array<unsigned char, 16>>& nonce);

    /// Returns the job that ULC_JOB, ULC_RANK, ULC_SIZE and ULC_NONCE or else the launcher show;
    /// nullptr: there is none, and *reason is a sentence. Asks the launcher at the first call.
    [[nodiscard]] static const Job* of_process(std::string* reason);
    /// True if the environment shows a job. Asks no launcher.
    [[nodiscard]] static bool is_shown() noexcept;

    [[nodiscard]] std::uint16_t rank() const noexcept { return rank_; }
    [[nodiscard]] std::uint16_t size() const noexcept { return size_; }
    [[nodiscard]] const unsigned char* nonce() const noexcept {
        return nonce_ ? nonce_->data() : nullptr;
    }
    /// Returns how many ranks of the job the launcher counts on this machine; the size of the job
    /// if the launcher does not say.
    [[nodiscard]] std::uint16_t ranks_here() const noexcept;
    /// Returns the name of the job that this endpoint of every rank joins.
    [[nodiscard]] std::string name_for(std::uint32_t endpoint) const;
    /// Returns the address without that for links.
    [[nodiscard]] Address address_of(std::uint16_t rank, std::uint32_t endpoint) const noexcept;
    /// Returns why no endpoint of this job can reach an address; nullptr: it can, by the job or a
    /// link.
    [[nodiscard]] const char* objection(const Address& address) const noexcept;
    /// True if the address is that of the endpoint with this number of a rank of the job.
    [[nodiscard]] bool has_member(const Address& address, std::uint32_t endpoint) const noexcept;

    /// Returns the address without that for links.
    [[nodiscard]] static Address identity_of(Address address) noexcept;
    [[nodiscard]] static AddressFields fields_of(const Address& address) noexcept;

private:
    std::string name_;
    std::uint16_t rank_;
    std::uint16_t size_;
    std::optional<std::array<unsigned char, 16>> nonce_;
    std::uint64_t name_hash_;
    std::uint32_t life_;
};

}  // namespace ulc::ofi
