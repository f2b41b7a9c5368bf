// SPDX-License-Identifier: BSD-3-Clause
#include "ports/groups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <ulc_names.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/units.h"

namespace ulc::ports {
namespace {

constexpr Nanos kOpenMax = 5 * kSecond;
constexpr Nanos kLeaveMax = 5 * kSecond;
constexpr Nanos kFindMax = 2 * kSecond;  ///< until a member of another group is found

std::uint16_t key_of(std::uint8_t par_pid, std::uint8_t node) noexcept {
    return static_cast<std::uint16_t>(par_pid << 8U | node);
}

ulc_link_address name_of(unsigned par_pid, unsigned node, const unsigned char* secret) {
    std::array<char, ULC_NAME_BYTES + 1> text{};
    std::snprintf(text.data(), text.size(), "gamma/%u/%u", par_pid & 255U, node & 255U);
    ulc_link_address name{};
    static_cast<void>(ulc_link_name(text.data(), secret, &name));
    return name;
}

bool complain(const char* file, const char* why) {
    std::fprintf(stderr,
                 "gamma_init: ULC_GROUPS=%s: %s; it names a file of 16 bytes or more that only its "
                 "owner may read: head -c 16 /dev/urandom > FILE; chmod 600 FILE\n",
                 file, why);
    return false;
}

/// Reads the secret, which no other user may know.
bool read_secret(const char* file, std::array<unsigned char, 16>& out) {
    const int in = ::open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in < 0) return complain(file, std::strerror(errno));
    struct stat status {};
    const bool known = fstat(in, &status) == 0;
    const ssize_t got = read(in, out.data(), out.size());
    ::close(in);
    if (!known || !S_ISREG(status.st_mode)) return complain(file, "it is no file");
    if ((status.st_mode & 077U) != 0) return complain(file, "others may read or write it");
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return complain(file, "it is another user's");
    if (got != static_cast<ssize_t>(out.size())) return complain(file, "it is too short");
    const bool zero = std::ranges::all_of(out, [](unsigned char byte) { return byte == 0; });
    return zero ? complain(file, "it is zeros") : true;
}

}  // namespace

bool Groups::open(int par_pid, int node, int nodes) {
    const char* file = std::getenv("ULC_GROUPS");  // NOLINT(concurrency-mt-unsafe): read only
    if (file == nullptr || *file == '\0') return true;
    if (!read_secret(file, secret_)) return false;
    nodes_ = static_cast<unsigned>(nodes);
    const ulc_link_address name =
        name_of(static_cast<unsigned>(par_pid), static_cast<unsigned>(node), secret_.data());
    int error = ulc_open(nullptr, &ep_);
    const char* profile = std::getenv("ULC_PROFILE");  // NOLINT(concurrency-mt-unsafe): read only
    if (error == ULC_OK && profile != nullptr) error = ulc_set_profile(ep_, profile);
    if (error == ULC_OK) error = ulc_open_links_as_wait(ep_, kGuestsMax, &name, kOpenMax);
    if (error == ULC_OK) {
        peers_.assign(kGuestsMax, Peer{});
        return true;
    }
    if (error == ULC_ERR_RANK_TAKEN) {
        std::fprintf(stderr,
                     "gamma_init: another group of ULC_GROUPS has the parallel PID %d; give each "
                     "its own: ULC_PAR_PID=1 … 255\n",
                     par_pid);
    } else {
        std::fprintf(stderr, "gamma_init: messages of other groups: %s: %s\n",
                     ulc_error_text(error), ulc_last_error_text());
    }
    ulc_close(ep_);
    ep_ = nullptr;
    return false;
}

void Groups::close() {
    if (ep_ == nullptr) return;
    static_cast<void>(ulc_leave_wait(ep_, kLeaveMax));
    ulc_close(ep_);
    ep_ = nullptr;
    members_.clear();
    peers_.clear();
    ungreeted_.clear();
    guests_.clear();
}

// ---------------------------------------------------------------- members

Groups::Member* Groups::member(std::uint8_t par_pid, std::uint8_t node) noexcept {
    const auto at = members_.find(key_of(par_pid, node));
    return at == members_.end() || at->second->peer == kNone ? nullptr : at->second.get();
}

bool Groups::is_alive(const Member& member) const noexcept {
    return member.peer != kNone && ulc_peer_state(ep_, member.peer) == ULC_OK;
}

unsigned Groups::group_size(const Member& member) const noexcept {
    return member.peer == kNone ? 0 : peers_[member.peer].instances;
}

Groups::Member& Groups::start(std::uint8_t par_pid, std::uint8_t node) {
    std::unique_ptr<Member>& place = members_[key_of(par_pid, node)];
    if (place == nullptr) {
        place = std::make_unique<Member>();
        place->par_pid = par_pid;
        place->node = node;
    }
    Member& member = *place;
    if (member.calls || is_alive(member)) return member;
    if (member.peer != kNone) let_go(member);
    const ulc_link_address name = name_of(par_pid, node, secret_.data());
    member.error = ulc_link(ep_, &name, kFindMax, &member.call);
    member.calls = member.error == ULC_OK;
    return member;
}

/// The peer of a member that is gone. Another member may get its number.
void Groups::let_go(Member& member) {
    peers_[member.peer] = Peer{};
    static_cast<void>(ulc_unlink(ep_, member.peer, nullptr));
    member.peer = kNone;
    member.unsure.reset();
}

bool Groups::is_settled(Member& member) {
    if (!member.calls) return true;
    ulc_status status;
    if (ulc_test(ep_, &member.call, &status) != ULC_OK) return false;
    member.calls = false;
    member.error = status.error;
    if (status.error != ULC_OK) return true;
    member.peer = status.source;
    say_hello(member.peer);
    return true;
}

// ---------------------------------------------------------------- peers

// Both ends say it, whichever called: a peer that has linked by itself may be called too.
void Groups::say_hello(std::uint16_t peer) {
    const std::uint64_t tag = std::uint64_t{nodes_} << kPortBits | kHelloPort;
    if (ulc_send(ep_, peer, tag, nullptr, 0, nullptr) == ULC_ERR_AGAIN) ungreeted_.push_back(peer);
}

void Groups::greet() {
    const std::vector<std::uint16_t> again = std::move(ungreeted_);
    ungreeted_.clear();
    for (const std::uint16_t peer : again)
        say_hello(peer);
    std::uint16_t peer = 0;
    while (ulc_next_peer(ep_, &peer) == ULC_OK) {
        guests_.push_back(peer);
        say_hello(peer);
    }
}

// One that a member of members_ has keeps its place, so that its number means no other peer.
void Groups::forget_guests() {
    std::erase_if(guests_, [this](std::uint16_t guest) {
        if (ulc_peer_state(ep_, guest) == ULC_OK) return false;
        const bool used = std::ranges::any_of(
            members_, [guest](const auto& one) { return one.second->peer == guest; });
        if (used) return true;
        if (ulc_unlink(ep_, guest, nullptr) == ULC_ERR_AGAIN) return false;
        peers_[guest] = Peer{};
        std::erase(ungreeted_, guest);
        return true;
    });
}

bool Groups::take_hello(std::uint64_t tag, std::uint16_t peer) noexcept {
    if (static_cast<PortNumber>(tag) != kHelloPort) return false;
    peers_[peer].instances =
        static_cast<unsigned>(std::min<std::uint64_t>(tag >> kPortBits, GAMMA_NODES_MAX));
    return true;
}

bool Groups::shows_gap(std::uint64_t tag, std::uint16_t peer) noexcept {
    const std::uint64_t number = tag >> kPortBits;
    const bool gap = number != peers_[peer].next_in;
    peers_[peer].next_in = number + 1;
    return gap;
}

std::uint64_t Groups::tag_for(std::uint16_t peer, PortNumber port) const noexcept {
    return peers_[peer].next_out << kPortBits | port;
}

void Groups::take_failures(std::bitset<GAMMA_PORTS>& out) {
    for (auto& [key, member] : members_) {
        if (member->unsure.none() || is_alive(*member)) continue;
        out |= member->unsure;
        member->unsure.reset();
    }
}

}  // namespace ulc::ports
