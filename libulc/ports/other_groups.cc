// SPDX-License-Identifier: BSD-3-Clause
// Ports that are bound to members of other groups: reaching them, and sending to them.
#include <cstdio>

#include "ports/process.h"

namespace ulc::ports {
namespace {

constexpr int kHelloLooks = 20;  ///< looks of kLookEvery, until a group has said its size

bool complain(unsigned par_pid, unsigned node, const char* why) {
    std::fprintf(stderr, "gamma_setport: parallel PID %u, instance %u: %s\n", par_pid, node, why);
    return false;
}

}  // namespace

/// Waits until there is a link, or none can be. Handlers run meanwhile, but in handlers.
bool Process::link(Groups::Member& member) {
    while (!groups_.is_settled(member)) {
        const int waited = pause(changes_.load());
        if (!may_go_on(waited)) return complain(member.par_pid, member.node, "the engine ended");
    }
    if (member.error == ULC_OK) return true;
    return complain(member.par_pid, member.node,
                    member.error == ULC_ERR_TIMEOUT
                        ? "no such process answers: it has not called gamma_init, has ended, or "
                          "has not the secret of ULC_GROUPS (another user's group)"
                        : ulc_error_text(member.error));
}

bool Process::reach(std::uint8_t par_pid, std::uint8_t node) {
    const Call call(*this);
    if (groups_.endpoint() == nullptr)
        return complain(par_pid, node,
                        "messages to other groups need a secret that both groups share; set "
                        "ULC_GROUPS to its file for both");
    if (node != BROADCAST) return link(groups_.start(par_pid, node));
    Groups::Member& master = groups_.start(par_pid, kMasterNode);
    if (!link(master)) return false;
    for (int looks = 0; groups_.group_size(master) == 0; ++looks) {
        const int waited = pause(changes_.load());
        if (serial_ > 0) take_words();
        if (!may_go_on(waited) || looks == kHelloLooks || !groups_.is_alive(master))
            return complain(par_pid, kMasterNode, "it does not say how large its group is");
    }
    const unsigned size = groups_.group_size(master);
    for (unsigned other = 1; other < size; ++other)
        static_cast<void>(groups_.start(par_pid, static_cast<std::uint8_t>(other)));
    bool all = true;
    for (unsigned other = 1; other < size; ++other)
        all = link(groups_.start(par_pid, static_cast<std::uint8_t>(other))) && all;
    if (all) be_guest_of(par_pid, size);
    return all;
}

bool Process::send_to_group(const Port& port, PortNumber number, const void* data,
                            std::size_t length, SendMode mode) {
    if (serial_ > 0) mode = SendMode::kFast;
    if (!acknowledges_ && mode == SendMode::kDelivered) mode = SendMode::kTaken;
    Groups::Member* const first =
        groups_.member(port.group, port.node == BROADCAST ? std::uint8_t{kMasterNode} : port.node);
    bool sent = first != nullptr && send_to(*first, port, number, data, length, mode);
    if (first != nullptr && port.node == BROADCAST) {
        for (unsigned other = 1; other < groups_.group_size(*first); ++other) {
            Groups::Member* const member =
                groups_.member(port.group, static_cast<std::uint8_t>(other));
            sent = member != nullptr && send_to(*member, port, number, data, length, mode) && sent;
        }
    }
    if (!sent) failed_.set(number);
    return sent;
}

bool Process::send_to(Groups::Member& member, const Port& port, PortNumber number, const void* data,
                      std::size_t length, SendMode mode) {
    ulc_endpoint* const ep = groups_.endpoint();
    const ulc_piece piece{const_cast<void*>(data), length};
    const auto flags = mode == SendMode::kDelivered ? unsigned{ULC_SEND_DELIVERED} : 0U;
    ulc_request request;
    ulc_request* const waits = mode == SendMode::kFast ? nullptr : &request;
    for (;;) {
        if (!groups_.is_alive(member)) return false;
        const std::uint64_t tag = groups_.tag_for(member.peer, port.to);
        const int error = ulc_sendv(ep, member.peer, tag, &piece, 1, flags, waits);
        if (error == ULC_OK) break;
        if (error != ULC_ERR_AGAIN || !may_go_on(pause(changes_.load()))) return false;
    }
    groups_.sent(member.peer);
    if (mode == SendMode::kFast || !acknowledges_) member.unsure.set(number);
    if (waits == nullptr) return true;
    const bool arrived = complete(ep, request) == ULC_OK;
    // Messages to one peer arrive in order, so those before it have arrived too.
    if (arrived && mode == SendMode::kDelivered) member.unsure.reset();
    if (!arrived) return false;
    if (mode == SendMode::kTaken) member.unsure.set(number);
    return true;
}

}  // namespace ulc::ports
