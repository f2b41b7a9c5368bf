// SPDX-License-Identifier: BSD-3-Clause
// The MAC addresses of IPv4 addresses of one segment (RFC 826). Sans-IO: ip_socket.h passes what
// came and the time, and sends the questions.
//
//   ask() ──▶ asked ── reply ──▶ known ── 30 s, or a claim of another MAC ──▶ known, asked again
//              │ 3 questions without a reply                │ 60 s without a reply
//              ▼                                            ▼
//            removed                                      asked, or removed if it was not used
//
// A reply counts while a question for its address is open, and closes it. A claim of another MAC
// address, as a gateway makes that another machine replaces, changes nothing: it causes a question.
// Invariants: kEntriesMax entries, made by ask() alone; one question a second for an address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/tables/keyed_index.h"
#include "base/units.h"
#include "ip/packet.h"

namespace ulc::ip {

class ArpTable {
public:
    static constexpr std::size_t kEntriesMax = 4096;  ///< as udp::Peers::kPeersMax
    static constexpr Nanos kAskAgain = kSecond;
    static constexpr unsigned kTries = 3;
    static constexpr Nanos kRefresh = 30 * kSecond;  ///< age of an entry in use that is asked again
    static constexpr Nanos kExpire = 60 * kSecond;
    static constexpr Nanos kLook = 100 * kMillisecond;  ///< between two looks at all entries

    /// seed: random bits that strangers do not know.
    explicit ArpTable(std::uint64_t seed);

    /// Returns the MAC address of that IP address; nullptr: it is not known.
    [[nodiscard]] const Mac* find(Ipv4 address) noexcept;
    /// Asks for an address that is not known. False: the table is full.
    [[nodiscard]] bool ask(Ipv4 address, Nanos now);
    /// Returns whether a question is open for an address that is not known.
    [[nodiscard]] bool is_asked(Ipv4 address) const noexcept;
    /// Takes a reply. False: there was no question.
    [[nodiscard]] bool on_reply(Ipv4 address, const Mac& mac, Nanos now);
    /// Takes the sender of a request, which may contradict an entry.
    void on_claim(Ipv4 address, const Mac& mac, Nanos now);
    void on_timer(Nanos now);
    /// Gives the next address to ask for. False: none.
    [[nodiscard]] bool next_question(Ipv4& out);
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

private:
    struct Entry {
        Ipv4 address = 0;
        Mac mac;
        bool known = false;
        bool open = false;     ///< a question has no reply
        bool used = false;     ///< frames went there since the last reply
        bool doubted = false;  ///< another MAC address was claimed since then
        unsigned tries = 0;
        Nanos heard = 0;  ///< time of the last reply
        Nanos asked = 0;
    };

    void question(Entry& entry, Nanos now);
    [[nodiscard]] bool look_at(Entry& entry, Nanos now);
    void remove(std::size_t at) noexcept;

    std::vector<Entry> entries_;
    KeyedIndex index_;
    std::vector<Ipv4> questions_;
    Nanos next_look_ = 0;
};

}  // namespace ulc::ip
