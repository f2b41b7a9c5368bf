// SPDX-License-Identifier: BSD-3-Clause
// The rules of a group by PCODE, and what they keep of it at one member besides the streams' own
// numbers, which are its personal counters: pcv[q] is one less than `next` of the stream from q.
// Which file holds which verb:
//
//   multicast.cc   may a message be sent, and the counter it carries  (PCODE fig. 4, §5.1, §5.2)
//   handle.cc      a message arrived                                  (fig. 3, §5.1, §5.4)
//   status.cc      STATUS and PROGRESS, sent and taken                (§4, §5.2, §5.5)
//   nack.cc        the three kinds of NACK, sent and taken; timers    (fig. 5, §5.3, §5.7)
//   tables.cc      the words p0, p1 and pcode
#pragma once

#include <cstdint>

#include "base/units.h"
#include "urtp/group_rules.h"
#include "urtp/profiles/pcode/global_counter.h"
#include "urtp/profiles/pcode/nack_timer.h"
#include "urtp/timers.h"
#include "urtp/transport.h"

namespace ulc::urtp::pcode {

/// Unanswered NACKs for a gap in the global counters after which it is skipped: the sender of its
/// message is gone.
inline constexpr std::uint32_t kGlobalNacksMax = 8;

class Rules final : public GroupRules {
public:
    /// One of PCODE's protocols.
    enum class Version : std::uint8_t {
        kZero,   ///< P0: the global counter is not looked at, and NACKs go to all
        kFirst,  ///< P1: the same, but NACKs go to their source
        kFull,   ///< PCODE: gaps in it, flow window, STATUS by its growth
    };
    /// parts, group: outlive this.
    Rules(const TransportParts& parts, Group& group, Version version);
    ~Rules() override;

    [[nodiscard]] bool may_send(Nanos now) noexcept override;
    [[nodiscard]] std::uint32_t next_count() noexcept override;
    [[nodiscard]] Segment* ask_for_news() noexcept override;
    [[nodiscard]] bool may_hold(const RxStream& rx) const noexcept override;
    void in_order(RxStream& rx, std::uint32_t count, Nanos now) noexcept override;
    void acknowledge() noexcept override;
    [[nodiscard]] Segment* request(RxStream& rx, Nanos now) noexcept override;
    [[nodiscard]] bool has_word() noexcept override;
    [[nodiscard]] Segment* speak() noexcept override;
    void on_timer(Nanos now) noexcept override;
    [[nodiscard]] bool on_status(const wire::FrameView& frame, Session& session,
                                 Nanos now) override;
    [[nodiscard]] bool on_nack(const wire::FrameView& frame, Session& session,
                               Nanos now) noexcept override;
    void remove(std::uint16_t index) noexcept override;
    void fields(state::Archive& archive) override;
    [[nodiscard]] Timer* timer() noexcept override { return &timer_; }

private:
    [[nodiscard]] const Params& params() const noexcept { return parts_.context.params(); }
    void count(Counter id) noexcept { parts_.context.count(id); }
    void counters_moved(Nanos now) noexcept;
    void make_status_due(bool wanted) noexcept;
    Segment* send_status() noexcept;
    Segment* send_global_nack() noexcept;
    void status_of_ours(std::uint32_t at, Seq next, Nanos now) noexcept;
    void learn_tail(Session& session, Seq end, Nanos now);

    TransportParts parts_;
    Group& group_;
    const Version version_;
    GlobalCounter global_;
    NackTimer gap_;             ///< in the global counters
    Nanos status_at_ = kNever;  ///< an answer to a member that wants one, spread
    /// Asks the others for theirs, while the flow window holds us back.
    Nanos progress_at_ = kNever;
    std::uint16_t status_from_ = 0;  ///< member from which the STATUS under way goes on
    bool status_due_ = false;
    bool status_wanted_ = false;  ///< the one due asks the others for theirs
    bool nack_due_ = false;       ///< for the gap
    Timer timer_;
};

}  // namespace ulc::urtp::pcode
