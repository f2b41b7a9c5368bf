// SPDX-License-Identifier: BSD-3-Clause
// A small client of one endpoint, over the rings themselves. It does what libulc does, without its
// policies, so that a test can also do what libulc never would. Collects every completion.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "abi/region.h"
#include "base/error.h"
#include "base/units.h"
#include "wire/ids.h"

namespace ulc::sim {

struct Message {
    Rank source = 0;
    std::uint32_t stream = 0;
    std::uint64_t tag = 0;
    bool has_tag = false;
    std::vector<std::byte> payload;
};

/// A completion kFault.
struct Report {
    Err error = Err::kOk;
    Rank source = 0;
    std::uint64_t count = 0;
    std::uint32_t stream = 0;
};

/// Page-aligned memory of an endpoint, on the heap.
class RegionMemory {
public:
    explicit RegionMemory(const abi::RegionSizes& sizes);
    ~RegionMemory();
    RegionMemory(const RegionMemory&) = delete;
    RegionMemory& operator=(const RegionMemory&) = delete;
    [[nodiscard]] void* base() const noexcept { return base_; }
    [[nodiscard]] const abi::RegionLayout& layout() const noexcept { return layout_; }

private:
    abi::RegionLayout layout_{};
    void* base_ = nullptr;
};

class RingClient {
public:
    /// Call after the engine admitted the region.
    RingClient(void* base, const abi::RegionLayout& layout, abi::Reach reach = abi::Reach::kRegion);

    /// `nonce`: a launcher's, abbreviated; 0: by hand. `patience`: as JoinRequest has it.
    bool join(std::string_view name, Rank rank, std::uint16_t size, std::uint8_t nonce = 0,
              Nanos patience = 0);
    /// Sends one record for the whole message. Up to 104 bytes go inline unless there is a subset.
    /// Payloads from kDirectMin on are sent from separate memory, which lives until then, if the
    /// engine reaches it. Returns false if there is no space.
    bool send(std::uint32_t stream, std::uint64_t tag, std::span<const std::byte> payload,
              std::uint64_t subset = 0, std::uint8_t extra_flags = 0);
    /// Sends one chunk of a message of `total` bytes at `offset`.
    bool send_chunk(std::uint32_t stream, std::uint64_t tag, std::span<const std::byte> payload,
                    std::uint64_t offset, std::uint64_t total);
    bool add_group(GroupHandle handle, std::span<const Rank> ranks);
    bool remove_group(GroupHandle handle);
    bool expect(Rank rank);
    /// Submits kHold: the limit, and whether a member that is not in `keep` is excluded when it is
    /// exceeded.
    bool set_hold(Nanos limit, bool excludes, std::span<const Rank> keep = {});
    bool leave();
    /// `key`: that of the endpoint, abbreviated.
    bool open_links(std::uint16_t slots, std::uint8_t key);
    using Address = std::array<unsigned char, abi::kAddressOctets>;
    /// Returns the cookie of link_done; 0: there is no space.
    std::uint32_t link(const Address& to, Nanos timeout = 0);
    bool unlink(Rank slot);
    bool ask_near(Rank peer);
    /// Submits any record, unchecked.
    bool submit(const abi::SubmissionRecord& record);
    /// Releases any block, unchecked.
    void release(std::uint32_t offset) { releases_.push(offset); }

    /// Takes at most `limit` completions. Returns how many.
    unsigned poll(unsigned limit = UINT32_MAX);
    /// Keeps the blocks of messages received after this call instead of giving them back.
    void keep_blocks() noexcept { keep_ = true; }

    // --- what has come
    std::vector<Message> messages;
    std::vector<Rank> peers_left;
    std::vector<Rank> peers_died;
    std::map<Rank, std::uint64_t> faults;  ///< packets that the profile detect reported, by source
    std::vector<Report> reports;  ///< faults in the order of their arrival, and what was lost
    std::map<std::uint32_t, int> sends_done;     ///< cookie → status
    std::map<std::uint32_t, int> offloads_done;  ///< the same for schedules
    std::map<GroupHandle, int> groups;           ///< kGroupReady: 0, kGroupFailed: status
    std::map<GroupHandle, int> listens;          ///< kGroupListens: status
    std::uint64_t last_cookie = 0;
    bool links_open = false;
    Address address{};
    std::vector<std::pair<Rank, bool>> linked;  ///< slots, and whether the peer called
    std::map<std::uint32_t, std::pair<Rank, int>> link_done;  ///< cookie → slot, status
    std::vector<Rank> unlinked;
    std::map<Rank, abi::NearRows> near;  ///< peers that are, by the last answer
    std::vector<Rank> answered;          ///< ranks of kNear, in order
    unsigned early = 0;                  ///< messages under slots that were not reported
    GroupHandle world = 0;
    Rank rank = kNoRank;
    std::uint16_t size = 0;
    int job_status = static_cast<int>(Err::kAgain);
    std::string job_text;
    bool left = false;
    int left_status = 0;
    unsigned broken = 0;       ///< completions that break the contract
    std::uint64_t digest = 0;  ///< hash of all completions so far, without payloads

    [[nodiscard]] const abi::Region& region() const noexcept { return region_; }
    [[nodiscard]] bool formed() const noexcept { return world != 0; }
    [[nodiscard]] int closed() const noexcept { return region_.control().closed.load(); }
    [[nodiscard]] std::uint32_t cookie_next() const noexcept { return cookie_; }

private:
    struct Open {
        bool active = false;
        std::uint64_t length = 0;
        Message message;
    };
    static constexpr std::uint32_t kDirectMin = 1024;
    [[nodiscard]] std::uint32_t allocate(std::uint32_t octets, std::uint32_t cookie);
    void on_send_done(const abi::SendDone& done);
    unsigned take_sends_done();
    void on_message(const abi::CompletionRecord& record);
    void on_record(const abi::CompletionRecord& record);
    void on_link_record(const abi::CompletionRecord& record);

    abi::Region region_;
    abi::SubmissionProducer submissions_;
    abi::CompletionConsumer completions_;
    abi::SendDoneConsumer dones_;
    abi::ReleaseProducer releases_;
    std::map<std::uint32_t, std::uint32_t> used_;             ///< tx arena: offset → bytes
    std::map<std::uint32_t, std::uint32_t> block_of_cookie_;  ///< cookie → offset
    std::map<std::uint32_t, std::vector<std::byte>> direct_;  ///< cookie → payload
    std::map<Rank, Open> open_;
    std::set<Rank> peers_;  ///< peers that were reported
    std::uint32_t cookie_ = 1;
    bool keep_ = false;
};

}  // namespace ulc::sim
