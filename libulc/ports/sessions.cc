// SPDX-License-Identifier: BSD-3-Clause
#include "ports/sessions.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace ulc::ports {
namespace {

/// High bits of a tag that have a port's number, and two that are libulc's (ulc.h).
constexpr unsigned kUnusedBits = kPortBits + 2;

}  // namespace

bool Sessions::Invitation::choose() noexcept {
    do {
        if (getrandom(name.data(), name.size(), 0) != static_cast<ssize_t>(name.size()) ||
            getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
            return false;
    } while (number() == 0);
    return true;
}

std::uint64_t Sessions::Invitation::number() const noexcept {
    std::uint64_t number = 0;
    std::memcpy(&number, name.data(), sizeof number);
    return number >> kUnusedBits;
}

std::string Sessions::Invitation::job() const {
    std::string job = "gamma-guest/";
    for (const unsigned char octet : name) {
        std::array<char, 3> text{};
        std::snprintf(text.data(), text.size(), "%02x", octet);
        job += text.data();
    }
    return job;
}

bool Sessions::Host::has_all() const noexcept {
    for (unsigned node = 0; node < instances; ++node)
        if (ulc_peer_state(way.ep, rank_of(node)) != ULC_OK) return false;
    return true;
}

bool Sessions::has_invited() const noexcept {
    return std::ranges::any_of(invited_, &Invited::is_open);
}

Sessions::Guest* Sessions::guest_of(const ulc_endpoint* ep) noexcept {
    const auto at = std::ranges::find(guests_, ep, &Guest::ep);
    return ep == nullptr || at == guests_.end() ? nullptr : &*at;
}

void Sessions::on_switch(std::uint64_t number) noexcept {
    for (Guest& guest : guests_)
        if (guest.ep != nullptr && guest.number == number) guest.has_switched = true;
}

Sessions::Host* Sessions::free_host() noexcept {
    const auto at = std::ranges::find(hosts_, false, &Host::is_open);
    return at == hosts_.end() ? nullptr : &*at;
}

Sessions::Host* Sessions::host(std::uint8_t par_pid) noexcept {
    const auto at = std::ranges::find_if(hosts_, [par_pid](const Host& one) {
        return one.is_open && !one.is_retired && one.par_pid == par_pid;
    });
    return at == hosts_.end() ? nullptr : &*at;
}

Way* Sessions::way_to(std::uint8_t par_pid, std::uint8_t node) noexcept {
    Host* const host = this->host(par_pid);
    if (host == nullptr) return nullptr;
    const bool is_there =
        node == BROADCAST ||
        (node < host->instances && ulc_peer_state(host->way.ep, host->rank_of(node)) == ULC_OK);
    return is_there ? &host->way : nullptr;
}

int Sessions::poll_hosts() noexcept {
    int events = 0;
    for (const Host& host : hosts_)
        if (host.is_open) events += std::max(ulc_poll(host.way.ep), 0);
    return events;
}

void Sessions::clear() noexcept {
    for (Invited& one : invited_)
        one.is_open = false;
    guests_ = {};
    for (Host& host : hosts_)
        host = Host{};
    by_links.reset();
}

}  // namespace ulc::ports
