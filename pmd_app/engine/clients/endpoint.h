// SPDX-License-Identifier: BSD-3-Clause
// One client: its memory, its transport, and what it is charged for. An idle round reads the first
// cache lines.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "abi/region.h"
#include "base/error.h"
#include "base/units.h"
#include "endpoint/inlet.h"
#include "endpoint/lifetime.h"
#include "endpoint/offload.h"
#include "endpoint/outlet.h"
#include "endpoint/reports.h"
#include "endpoint/send_queue.h"
#include "endpoint/work.h"
#include "engine/accounts.h"
#include "engine/clients/membership.h"
#include "engine/engine.h"
#include "engine/links.h"
#include "urtp/frame_share.h"
#include "urtp/transport.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::endpoint {
struct Breaker;  // tests/unit/engine/invariants_test.cc
}  // namespace ulc::endpoint

namespace ulc::engine {

using endpoint::Report;
using endpoint::Reports;
using endpoint::Work;

class Net;

class Endpoint {
public:
    Endpoint(Net& net, User& user, const Claimant& claimant, EndpointId handle,
             std::uint32_t pending_sends)
        : net_(&net), handle_(handle), sends_(pending_sends), user_(&user), claimant_(claimant) {}
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;
    ~Endpoint();

    // --- what it is
    [[nodiscard]] EndpointId handle() const noexcept { return handle_; }
    [[nodiscard]] Net& net() const noexcept { return *net_; }
    [[nodiscard]] bool is_on(const Net& net) const noexcept { return net_ == &net; }
    [[nodiscard]] User& user() const noexcept { return *user_; }
    /// The charge of reserve().
    [[nodiscard]] const Claimant& claimant() const noexcept { return claimant_; }

    // --- its parts
    [[nodiscard]] endpoint::Lifetime& life() noexcept { return life_; }
    [[nodiscard]] const endpoint::Lifetime& life() const noexcept { return life_; }
    [[nodiscard]] endpoint::Inlet& inlet() noexcept { return inlet_; }
    [[nodiscard]] const endpoint::Inlet& inlet() const noexcept { return inlet_; }
    [[nodiscard]] endpoint::SendQueue& sends() noexcept { return sends_; }
    [[nodiscard]] const endpoint::SendQueue& sends() const noexcept { return sends_; }
    /// nullptr: it is reserved.
    [[nodiscard]] endpoint::Outlet* outlet() const noexcept { return outlet_.get(); }
    /// nullptr: it has no job that formed, and no links.
    [[nodiscard]] urtp::Transport* member() const noexcept { return member_.get(); }
    [[nodiscard]] Membership& membership() noexcept { return membership_; }
    [[nodiscard]] const Membership& membership() const noexcept { return membership_; }
    /// nullptr: it had no schedule yet.
    [[nodiscard]] endpoint::Offloads* offloads() const noexcept { return offloads_.get(); }
    /// nullptr: it is not open for links.
    [[nodiscard]] EndpointLinks* links() const noexcept { return links_.get(); }
    /// Bad records and schedules.
    [[nodiscard]] ErrorCount& errors() noexcept { return errors_; }
    [[nodiscard]] const abi::Region& region() const noexcept { return region_; }
    [[nodiscard]] Reports& reports() noexcept { return reports_; }
    [[nodiscard]] const Reports& reports() const noexcept { return reports_; }

    // --- its work
    /// Marks work for this round, or the next one if its step is over.
    void mark(Work work) noexcept {
        work_ |= bits(work);
        if ((bits(work) & bits(Work::kSend)) != 0) inlet_.retry();
    }
    /// Removes a mark. The step that does the work calls it first, so that it may mark more.
    void unmark(Work work) noexcept { work_ &= static_cast<std::uint8_t>(~bits(work)); }
    [[nodiscard]] bool has(Work any) const noexcept { return (work_ & bits(any)) != 0; }
    [[nodiscard]] bool has_work() const noexcept { return work_ != 0; }
    /// Time at which its member is to have a turn.
    [[nodiscard]] Nanos timer() const noexcept { return timer_; }
    void set_timer(Nanos timer) noexcept { timer_ = timer; }
    /// Its place among the looks of Quiet.
    [[nodiscard]] std::uint32_t look() const noexcept { return look_; }
    void set_look(std::uint32_t place) noexcept { look_ = place; }

    // --- its client
    /// Takes the client's memory, at the start or from an earlier engine. wakes: the engine can
    /// wake clients that sleep.
    void map(const abi::Region& region, Counters& counters, const Interrupt& interrupt, bool wakes);
    /// Queues what its client is to hear, and marks the work.
    void report(const Report& what) {
        reports_.add(what);
        mark(Work::kControl);
    }
    /// Reports that the client gets no job, or no links, or that they have ended.
    void report_failure(Err error, std::string_view text) {
        reports_.add_failure(error, text);
        mark(Work::kControl);
    }
    /// Returns the number of completions and of ends of sends that its client was given, free
    /// running.
    [[nodiscard]] std::uint32_t given() const noexcept {
        return outlet_ == nullptr ? 0 : outlet_->given();
    }
    /// True if its client was given something since take_wake().
    [[nodiscard]] bool owes_wake() const noexcept { return outlet_->given() != woken_at_; }
    /// Returns true if its client may sleep or compute: its state is to be checked.
    [[nodiscard]] bool take_wake() noexcept {
        woken_at_ = outlet_->given();
        return notified_;
    }
    void set_interrupt(const Interrupt& interrupt, bool wakes) noexcept {
        interrupt_ = interrupt;
        notified_ = interrupt.call != nullptr || wakes;
    }
    /// The upcall of its client; none: not requested, or the client is gone.
    [[nodiscard]] const Interrupt& interrupt() const noexcept { return interrupt_; }
    /// Returns true if this abi::SourceNote of its client is not the one before.
    [[nodiscard]] bool is_new_note(std::uint32_t word) noexcept {
        return std::exchange(source_note_, word) != word;
    }

    // --- its transport
    /// True if it belongs to a job, or is open for links.
    [[nodiscard]] bool in_use() const noexcept {
        return membership_.has_job() || links_ != nullptr;
    }
    /// True if a transmission frees space in the member's window (profile detect).
    [[nodiscard]] bool forgets() const noexcept { return forgets_; }
    /// Makes its transport. The frames that it holds are charged to its user.
    void begin_member(urtp::TransportConfig& config, std::span<const urtp::Peer> roster,
                      Counters& counters);
    void end_member() noexcept;
    /// The frames that its member holds for its sends; nullptr: it has none.
    [[nodiscard]] urtp::FrameShare* send_frames() noexcept {
        return send_frames_ ? &*send_frames_ : nullptr;
    }
    [[nodiscard]] std::uint32_t frames_unacked() const noexcept {
        return send_frames_ ? send_frames_->held() : 0;
    }
    [[nodiscard]] std::uint32_t frames_undelivered() const noexcept {
        return receive_frames_ ? receive_frames_->held() : 0;
    }
    void begin_links(std::unique_ptr<EndpointLinks> links) noexcept { links_ = std::move(links); }
    void end_links() noexcept { links_.reset(); }
    /// Returns its schedules.
    endpoint::Offloads& begin_offloads(std::uint32_t schedules_max, std::uint32_t steps_max,
                                       Counters& counters);
    /// Drops its schedules without a report.
    void drop_offloads() noexcept {
        if (outlet_ != nullptr) outlet_->set_offloads(nullptr);
        offloads_.reset();
    }

    /// Fails the process if an invariant of an admitted endpoint is broken between two rounds.
    void check_invariants() const;
    /// Writes or reads what stands in no other place, once its parts are there.
    void fields(state::Archive& archive);

private:
    friend struct endpoint::Breaker;

    static constexpr std::uint8_t bits(Work work) noexcept {
        return static_cast<std::uint8_t>(work);
    }

    // --- read in every round
    endpoint::Inlet inlet_;
    Nanos timer_ = kNever;
    std::uint8_t work_ = 0;
    bool notified_ = false;
    bool forgets_ = false;
    std::uint32_t woken_at_ = 0;  ///< given() at the last take_wake()
    endpoint::Lifetime life_;
    std::unique_ptr<urtp::Transport> member_;
    std::unique_ptr<endpoint::Outlet> outlet_;
    Net* net_;
    std::unique_ptr<endpoint::Offloads> offloads_;
    std::uint32_t look_ = 0;
    EndpointId handle_;
    abi::Region region_;
    endpoint::SendQueue sends_;

    // --- control
    Membership membership_;
    std::unique_ptr<EndpointLinks> links_;
    Interrupt interrupt_;
    std::uint32_t source_note_ = 0;  ///< the last that was obeyed
    Reports reports_;

    // --- what it is charged for
    ErrorCount errors_;
    User* user_;
    Claimant claimant_;
    std::optional<urtp::FrameShare> send_frames_;  ///< while there is a member, which counts here
    std::optional<urtp::FrameShare> receive_frames_;
};

}  // namespace ulc::engine
