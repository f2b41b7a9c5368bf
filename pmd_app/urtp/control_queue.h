// SPDX-License-Identifier: BSD-3-Clause
// The order of those who speak on the wire, besides packets: control frames go first, in turn, but
// not alone.
//
//   sessions   what a receiver has to say of its streams, or a question whether the peer lives
//   probes     streams whose tail is without news, or that want buffer space
//   groups     what PCODE's groups say
//
// The queue knows who wants to speak, and whose turn it is. The Sender, the Receiver and the
// group's rules know what is said. After kRunMax control frames in a row packets have a turn:
// timers may ask for more than a slow host can send, and data must answer it in the end.
#pragma once

#include "base/tables/list.h"
#include "urtp/context.h"
#include "urtp/session.h"

namespace ulc::urtp {

class Sessions;

/// One turn to speak.
struct Turn {
    enum class Kind : std::uint8_t {
        kNone,
        kDoubt,    ///< session: asks whether the peer lives
        kStream,   ///< rx: FLOW, REQ, or the acknowledgements of its session
        kProbe,    ///< tx: asks for news of the tail
        kReserve,  ///< tx: asks for buffer space
        kGroup,    ///< group: what its rules say
    };
    Kind kind = Kind::kNone;
    Session* session = nullptr;
    RxStream* rx = nullptr;
    TxStream* tx = nullptr;
    Group* group = nullptr;
};

class ControlQueue {
public:
    static constexpr std::uint32_t kRunMax = 16;  ///< control frames before a packet's turn

    /// context: outlives this.
    explicit ControlQueue(const Context& context) noexcept : context_(context) {}

    /// Wants a turn. No effect if it waits already.
    void push(Session& session) noexcept { sessions_.add(session); }
    void push(TxStream& tx) noexcept { probes_.add(tx); }
    void push(Group& group) noexcept { groups_.add(group); }
    /// No effect if it is not here.
    void remove(Session& session) noexcept { sessions_.remove(session); }
    void remove(TxStream& tx) noexcept {
        if (!probes_.empty()) probes_.remove(tx);  // else its link need not be read
    }
    void remove(Group& group) noexcept { groups_.remove(group); }

    [[nodiscard]] bool empty() const noexcept {
        return sessions_.empty() && probes_.empty() && groups_.empty();
    }
    /// The last control frame is still in the port (Params::control_one_by_one). The wait is
    /// bounded, since some devices report late.
    [[nodiscard]] bool waits(Nanos now) const noexcept {
        const Params& p = context_.params();
        return p.control_one_by_one && context_.departures->left_at(ticket_) == kNever &&
               now - sent_at_ < p.control_wait_max;
    }
    /// A control frame may go before packets do.
    [[nodiscard]] bool goes_first() const noexcept { return !empty() && run_ < kRunMax; }
    /// Packets have a turn. True: they have it because control frames had kRunMax.
    bool end_run() noexcept {
        const bool full = run_ == kRunMax;
        run_ = 0;
        return full;
    }

    /// Returns the next turn; those that have nothing to say any more leave the queue. kNone: the
    /// queue is empty.
    [[nodiscard]] Turn next() noexcept;
    /// The turn gave a frame, which goes to the port now.
    void spoke(const Turn& turn, Nanos now) noexcept;
    /// Counts it as one that went before packets that may wait.
    void extend_run() noexcept { ++run_; }

    void fields(state::Archive& archive, const Sessions& named);  ///< urtp/state/
    /// Fails the process if an invariant is broken. O(length of the queue).
    void check_invariants() const;

private:
    [[nodiscard]] static RxStream* next_stream(Session& session) noexcept;

    const Context& context_;
    List<Session, &Session::control_link> sessions_;
    List<TxStream, &TxStream::probe_link> probes_;
    List<Group, &Group::control_link> groups_;
    std::uint32_t run_ = 0;     ///< control frames since the last packet
    std::uint32_t ticket_ = 0;  ///< ticket of the last control frame (departures.h)
    Nanos sent_at_ = 0;         ///< when the port was given it
};

}  // namespace ulc::urtp
