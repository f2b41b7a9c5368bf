// SPDX-License-Identifier: BSD-3-Clause
// Groups of one endpoint, and their creation (docs/PROTOCOL.md §6.2): collective, non-blocking.
//
//   every member        kAddGroup ─▶ engine ─▶ kGroupReady | kGroupFailed   registered here, or not
//   then                Report{handle, nth, hashes, status, offers} ─▶ coordinator, the lowest rank
//                       of the set
//   coordinator         when all have reported (or died): Verdict{status, address} ─▶ every other
//                       member
//
// No member may multicast before the verdict, so that every member knows each group that a frame
// can name. The coordinator is found from the *set*, and the nth creation over a set must have one
// ordered list everywhere: so members that give different orders meet, and all get
// ULC_ERR_MISMATCH. Members that give different sets cannot be distinguished from members that have
// not called yet; they wait, until a peer leaves or the caller stops waiting. A caller's key is
// part of the set and of the list: creations with different keys are counted and matched
// separately, so their order may differ between members.
//
// Reports and verdicts are unicast messages of libulc with a separate tag, 32 bytes, big-endian. A
// report of a node without space for one more multicast address has up to 9 words more, its offers.
// sharing.h handles the address.
//
// Limits: kGroupsMax groups; kReportsMax reports that came before the own call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "abi/records.h"
#include "base/address_plan.h"
#include "base/endian.h"
#include "client/groups/operations.h"
#include "client/groups/sharing.h"
#include "client/jobs/membership.h"
#include "client/p2p/outbox.h"
#include "client/p2p/request.h"
#include "client/p2p/submitter.h"

namespace ulc::client {

struct Group {
    std::vector<std::uint16_t> ranks;
    std::uint16_t own_index = 0;
    std::uint16_t per_node = 1;  ///< maximum of them on one node
    Operations operations;       ///< collectives of coll/
    ulc_holder slowest{};        ///< as ulc_group_slowest(); error 0: none
};

class Groups {
public:
    static constexpr std::size_t kGroupsMax = 4096;
    static constexpr std::size_t kReportsMax = 1U << 16;
    /// Cookies of kAddGroup have this bit; those of sends do not.
    static constexpr std::uint32_t kCookieBit = 1U << 31;

    /// The references outlive this.
    Groups(Submitter& submitter, Outbox& outbox, const Membership& membership) noexcept
        : submitter_(submitter),
          outbox_(outbox),
          membership_(membership),
          sharing_(submitter, outbox) {}

    /// Notes that the job has formed. `per_node`: ranks of one node at most, as the engine says.
    /// May throw std::bad_alloc.
    void begin_job(std::uint64_t per_node);

    // --- as the functions of ulc.h
    /// `key`: nullptr, or as ulc_group_create_keyed().
    [[nodiscard]] int create(const std::uint16_t* ranks, std::uint16_t count,
                             const std::uint64_t* key, ulc_request* request);
    [[nodiscard]] int free(std::uint32_t handle);
    /// The arguments were validated except for the ranks.
    [[nodiscard]] int set_hold(std::int64_t limit, std::uint32_t flags,
                               std::span<const std::uint16_t> keep);
    /// Asks a member about an operation of the group (inquiry.h). Returns false if there is no
    /// space yet.
    [[nodiscard]] bool ask(std::uint16_t rank, std::uint32_t group, std::uint32_t number,
                           const Agreement& mine) noexcept;
    /// Returns nullptr if it is unknown. The world group is known once formed.
    [[nodiscard]] const Group* find(std::uint32_t handle) const noexcept;
    [[nodiscard]] Group* find(std::uint32_t handle) noexcept;

    /// Handles kGroupReady (status 0, with its offers) or kGroupFailed. Returns false for a wrong
    /// cookie, or offers that no engine makes.
    [[nodiscard]] bool on_registered(std::uint32_t cookie, int status,
                                     const abi::GroupOffers& offers);
    /// Handles kGroupListens.
    void on_listens(std::uint32_t handle, std::uint32_t address, int status) {
        sharing_.on_listens(handle, address, status);
    }
    /// Takes a report, a verdict, an inquiry (client/groups/inquiry.h) or a word
    /// (client/groups/sharing.h) from `source`. Returns false if it is malformed.
    [[nodiscard]] bool on_control(std::uint16_t source, std::uint64_t tag,
                                  std::span<const unsigned char> octets);
    /// Notes a member that holds up a group, if the kFault is about one.
    void on_fault(const abi::CompletionRecord& record) noexcept;
    void peer_gone(std::uint16_t rank, int error);
    void fail_all(int error);
    /// Sends messages that found no space. Returns how many creations ended.
    unsigned progress() {
        sharing_.progress();
        return to_remove_.empty() && forming_.empty() ? 0 : advance_all();
    }
    /// Returns true if progress() has something to do.
    [[nodiscard]] bool waits() const noexcept {
        return sharing_.waits() || !to_remove_.empty() || !forming_.empty();
    }
    void check_invariants() const;

private:
    friend struct Breaker;
    struct Control {
        Be32 handle;
        Be32 nth;        ///< creations over this set before
        Be64 set_hash;   ///< hash of the ranks in ascending order, and of the key
        Be64 list_hash;  ///< hash of the ranks in order, and of the key
        Be32 status;
        Be32 address;  ///< address of a verdict
    };
    static_assert(sizeof(Control) == 32);
    struct Report {
        std::uint16_t source;
        Control control;
        AddressOffers offers;  ///< none: there is space for any
    };
    enum class Stage : std::uint8_t {
        kRegistering,  ///< in the engine
        kReporting,    ///< the report found no space yet
        kWaiting,      ///< member: for the verdict; coordinator: for reports
        kConfirming,   ///< coordinator: verdicts are being sent
        kOver,
    };
    struct Forming {
        Request* request;
        std::vector<std::uint16_t> ranks;
        std::vector<bool> heard;  ///< coordinator: by index
        std::uint64_t set_hash;
        std::uint64_t list_hash;
        std::uint32_t handle;
        std::uint32_t nth;
        std::uint32_t cookie;
        std::uint32_t block;
        std::size_t missing;    ///< coordinator: reports still to come
        std::size_t confirmed;  ///< coordinator: verdicts sent, by index
        AddressOffers offers;   ///< offers of this node; none: it listens to the own address
        AddressId own_address;
        AddressId address;     ///< coordinator: agreed
        AddressChoice choice;  ///< coordinator
        std::uint16_t coordinator;
        std::uint16_t own_index;
        std::uint16_t per_node;
        int error;
        Stage stage;
        bool registered;
        bool orphaned;  ///< the coordinator is gone
    };

    [[nodiscard]] int begin(std::span<const std::uint16_t> ranks, const std::uint64_t* key,
                            ulc_request* request);
    [[nodiscard]] bool submit_add(Forming& forming);
    void on_report(Forming& forming, const Report& report);
    [[nodiscard]] static AddressOffers read_offers(std::span<const unsigned char> octets);
    void take_early_reports(Forming& forming);
    void advance(Forming& forming);
    void end(Forming& forming);
    [[nodiscard]] bool send_control(std::uint16_t to, std::uint64_t tag, const Forming& forming);
    void on_verdict(Forming& forming, const Control& control);
    void remove_here(std::uint32_t handle);
    unsigned advance_all();
    unsigned sweep();

    Submitter& submitter_;
    Outbox& outbox_;
    const Membership& membership_;
    Sharing sharing_;
    std::unordered_map<std::uint32_t, Group> groups_;
    std::unordered_map<std::uint64_t, std::uint32_t> list_counts_;
    std::unordered_map<std::uint64_t, std::uint32_t> set_counts_;
    std::list<Forming> forming_;
    std::vector<Report> early_;
    std::vector<std::uint32_t> to_remove_;  ///< kRemoveGroup records that found no space
    std::uint32_t next_cookie_ = 0;
};

}  // namespace ulc::client
