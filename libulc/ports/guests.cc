// SPDX-License-Identifier: BSD-3-Clause
// Guest sessions of a process: making one, and taking part in one (sessions.h).
#include <cstdlib>

#include "base/clock.h"
#include "ports/process.h"

namespace ulc::ports {
namespace {

constexpr Nanos kFormMax = 2 * kSecond;    ///< at the guest
constexpr Nanos kAdmitMax = 2 * kFormMax;  ///< at a member: then the guest has given up
constexpr Nanos kLeaveMax = 5 * kSecond;

/// Opens an endpoint and starts joining the session's job. nullptr: failed.
ulc_endpoint* open_session(const Sessions::Invitation& words, int rank, int size) {
    ulc_endpoint* ep = nullptr;
    if (ulc_open(nullptr, &ep) != ULC_OK) return nullptr;
    const char* profile = std::getenv("ULC_PROFILE");  // NOLINT(concurrency-mt-unsafe): read only
    int error = profile == nullptr ? int{ULC_OK} : ulc_set_profile(ep, profile);
    if (error == ULC_OK)
        error = ulc_join(ep, words.job().c_str(), static_cast<std::uint16_t>(rank),
                         static_cast<std::uint16_t>(size), words.nonce.data());
    if (error == ULC_OK) return ep;
    ulc_close(ep);
    return nullptr;
}

}  // namespace

// ---------------------------------------------------------------- the guest

/// Makes a session with a group of `instances`, all of which have links, if there is none. If none
/// can be made, broadcasts go by the links, as before.
void Process::be_guest_of(std::uint8_t par_pid, unsigned instances) {
    Sessions::Host* host = sessions_.host(par_pid);
    if (sessions_.is_making() || (host != nullptr && host->has_all())) return;
    if (host != nullptr) host->is_retired = true;  // members have ended, and have successors
    for (Sessions::Host& one : sessions_.hosts())
        if (one.is_retired && one.way.senders == 0) end_host(one);
    host = sessions_.free_host();
    Sessions::Invitation words;
    if (instances < 2 || sessions_.by_links.test(par_pid) || host == nullptr || !words.choose())
        return;
    host->par_pid = par_pid;
    host->instances = instances;
    host->way.first_rank = 1;
    host->way.failed = &failed_;
    sessions_.set_making(words.number());
    const ulc_piece piece{&words, sizeof words};
    host->is_open = say_to_all(*host, Sessions::kInvitationPort, piece) && form(*host, words);
    if (host->is_open) {
        const std::uint64_t tag = words.number() << kPortBits | Sessions::kSwitchPort;
        static_cast<void>(say_to_all(*host, tag, ulc_piece{}));
    } else {
        ulc_close(host->way.ep);
        *host = Sessions::Host{};
        sessions_.by_links.set(par_pid);
    }
    sessions_.set_making(0);
}

/// Sends one of the library's own messages to all members by their links. False: one is gone.
bool Process::say_to_all(const Sessions::Host& host, std::uint64_t tag, const ulc_piece& piece) {
    bool all = true;
    for (unsigned node = 0; node < host.instances; ++node) {
        const Groups::Member* const member =
            groups_.member(host.par_pid, static_cast<std::uint8_t>(node));
        int error = ULC_ERR_AGAIN;
        while (error == ULC_ERR_AGAIN && member != nullptr && groups_.is_alive(*member)) {
            error =
                ulc_send(groups_.endpoint(), member->peer, tag, piece.base, piece.length, nullptr);
            if (error == ULC_ERR_AGAIN && !may_go_on(pause(changes_.load()))) return false;
        }
        all = all && error == ULC_OK;
    }
    return all;
}

/// Waits until the session's job has formed. False: a member refuses, or does not come.
bool Process::form(Sessions::Host& host, const Sessions::Invitation& words) {
    Way& way = host.way;
    way.ep = open_session(words, 0, static_cast<int>(host.instances) + 1);
    if (way.ep == nullptr) return false;
    ulc_set_error_handler(way.ep, Way::on_fault, &way);
    const Nanos until = monotonic_now() + kFormMax;
    for (int state = ULC_ERR_AGAIN; state == ULC_ERR_AGAIN; state = ulc_job_state(way.ep)) {
        if (sessions_.is_refused() || monotonic_now() > until) return false;
        const int waited = wait_for_words();
        if (!may_go_on(waited)) return false;
        static_cast<void>(ulc_poll(way.ep));
    }
    return ulc_job_state(way.ep) == ULC_OK;
}

int Process::wait_for_words() {
    constexpr Nanos kLook = kMillisecond;
    const int waited = wait_a_while(kLook);
    // In handlers nothing but the library's own messages are taken.
    if (serial_ > 0) take_words();
    return waited;
}

void Process::end_host(Sessions::Host& host) {
    static_cast<void>(ulc_leave_wait(host.way.ep, kLeaveMax));
    ulc_close(host.way.ep);
    host = Sessions::Host{};
}

// ---------------------------------------------------------------- the members of a group

/// Begins to receive an invitation. False: there is no place for it.
bool Process::on_invitation(ulc_message* message, const ulc_status& status) {
    for (Sessions::Invited& one : sessions_.invited()) {
        if (one.is_open) continue;
        const ulc_piece piece{&one.words, sizeof one.words};
        one.from = status.source;
        one.is_open =
            status.length == sizeof one.words &&
            ulc_receive_claimed(groups_.endpoint(), message, &piece, 1, &one.request) == ULC_OK;
        return one.is_open;
    }
    return false;
}

/// Takes part in the sessions to which this process is invited. Only the first thread does, since
/// endpoints interrupt the thread that has opened them.
void Process::admit_guests() {
    for (Sessions::Invited& one : sessions_.invited()) {
        ulc_status status;
        if (!one.is_open || ulc_test(groups_.endpoint(), &one.request, &status) != ULC_OK) continue;
        one.is_open = false;
        if (status.error == ULC_OK && !admit(one)) {
            const std::uint64_t tag = one.words.number() << kPortBits | Sessions::kRefusalPort;
            static_cast<void>(ulc_send(groups_.endpoint(), one.from, tag, nullptr, 0, nullptr));
        }
    }
    for (Sessions::Guest& guest : sessions_.guests()) {
        if (guest.ep == nullptr || guest.is_decided) continue;
        guest.is_decided =
            ulc_job_state(guest.ep) != ULC_ERR_AGAIN || monotonic_now() > guest.until;
    }
}

bool Process::admit(const Sessions::Invited& invited) {
    Sessions::Guest* guest = nullptr;
    for (Sessions::Guest& one : sessions_.guests())
        if (one.ep == nullptr) guest = &one;
    if (guest == nullptr) return false;
    ulc_endpoint* const ep = open_session(invited.words, node_ + 1, nodes_ + 1);
    if (ep == nullptr) return false;
    if (set_upcall(ep) != ULC_OK) {
        ulc_close(ep);
        return false;
    }
    endpoints_.add(ep);
    *guest = Sessions::Guest{};
    guest->ep = ep;
    guest->until = monotonic_now() + kAdmitMax;
    guest->from = invited.from;
    guest->number = invited.words.number();
    guest->has_switched = !acknowledges_;
    return true;
}

/// False: no message of a guest waits.
bool Process::deliver_of_guests() {
    bool any = false;
    for (const Sessions::Guest& guest : sessions_.guests()) {
        const bool is_open = guest.ep != nullptr && guest.is_decided && guest.has_switched;
        if (is_open && !arrival_.under_way) any = deliver_next(guest.ep) || any;
    }
    return any;
}

/// Ends sessions whose guest is gone, all of whose messages were taken. The endpoint of the upcall
/// that runs stays until later.
void Process::end_left_sessions() {
    for (Sessions::Guest& guest : sessions_.guests()) {
        const bool is_used =
            guest.ep == interrupter_ || (arrival_.under_way && arrival_.from == guest.ep);
        if (guest.ep == nullptr || !guest.is_decided || is_used) continue;
        const bool has_formed = ulc_job_state(guest.ep) == ULC_OK;
        if (has_formed && ulc_peer_state(guest.ep, 0) == ULC_OK) continue;
        const bool switches =
            !guest.has_switched && ulc_peer_state(groups_.endpoint(), guest.from) == ULC_OK;
        if (!has_formed || !switches) end_guest(guest);
    }
}

void Process::end_guest(Sessions::Guest& guest) {
    endpoints_.remove(guest.ep);
    static_cast<void>(ulc_upcall(guest.ep, nullptr, nullptr));
    static_cast<void>(ulc_leave(guest.ep));
    ulc_close(guest.ep);
    guest = Sessions::Guest{};
}

void Process::end_sessions() {
    for (Sessions::Host& host : sessions_.hosts())
        if (host.is_open) end_host(host);
    for (Sessions::Guest& guest : sessions_.guests())
        if (guest.ep != nullptr) end_guest(guest);
    sessions_.clear();
}

// ---------------------------------------------------------------- the library's own messages

/// True if the message is the library's own, which this takes. An invitation for which there is no
/// place is dropped: its guest gives up after kFormMax.
bool Process::take_word(ulc_message* message, const ulc_status& status) {
    const auto port = static_cast<PortNumber>(status.tag);
    if (port == Sessions::kInvitationPort && on_invitation(message, status)) return true;
    if (port == Sessions::kRefusalPort) {
        sessions_.on_refusal(status.tag >> kPortBits);
    } else if (port == Sessions::kSwitchPort) {
        sessions_.on_switch(status.tag >> kPortBits);
    } else if (port != Sessions::kInvitationPort &&
               !groups_.take_hello(status.tag, status.source)) {
        return false;
    }
    static_cast<void>(ulc_discard(groups_.endpoint(), message));
    return true;
}

/// Takes those that a handler may wait for.
void Process::take_words() {
    for (const PortNumber port : {Groups::kHelloPort, Sessions::kRefusalPort}) {
        ulc_message* message = nullptr;
        ulc_status status;
        while (ulc_claim(groups_.endpoint(), ULC_RANK_ANY, port, 0xff, &message, &status) == ULC_OK)
            static_cast<void>(take_word(message, status));
    }
}

}  // namespace ulc::ports
