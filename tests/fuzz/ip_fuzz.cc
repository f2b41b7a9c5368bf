// SPDX-License-Identifier: BSD-3-Clause
// Any frames at a socket of ip/ that speaks UDP, IPv4 and ARP on a segment with hostile stations,
// between those of the test (docs/protocol/IP.md §18). Operations until the input ends: one octet
// says which, its arguments follow.
//
// Each octet that the socket gives lies in a frame that came. A frame goes to a MAC address only if
// a reply to an open question named it, or answers the frame that came last, at most one of a
// millisecond. An address is asked for once a second at most, and no frame is lost.
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "heap_pool.h"
#include "input.h"
#include "ip/ip_socket.h"

namespace {

using namespace ulc;
using namespace ulc::ip;
using fuzz::Input;
using Bytes = std::vector<std::byte>;

constexpr Ipv4 kOwn = 0x0a000001;
constexpr Ipv4 kGateway = 0x0a000002;
constexpr Ipv4 kFar = 0xc0a80001;
constexpr std::uint16_t kPort = 4001;
constexpr std::uint8_t kPrefix = 29;  // seven addresses, so that operations meet
constexpr std::uint16_t kMtu = 600;
constexpr Mac kMac{{2, 0, 0, 0, 0, 1}};

Nanos now = 0;

Mac mac(unsigned n) { return Mac{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(2 + n % 4)}}; }
Ipv4 node(unsigned n) { return kOwn + 1 + n % 5; }

class World {
public:
    World() : pool_(kMtu + kLinkOctets, 200) {
        Port below;
        below.context = this;
        below.pool = pool_.table();
        below.info.mac = kMac;
        below.info.mtu = kMtu;
        below.rx = [](void* context, Segment** out, std::uint16_t n) {
            auto& come = static_cast<World*>(context)->come_;
            std::uint16_t count = 0;
            for (; count < n && !come.empty(); come.pop_front())
                out[count++] = come.front();
            return count;
        };
        below.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
            auto& self = *static_cast<World*>(context);
            std::uint16_t count = 0;
            for (; count < n && self.accepts_ > 0; --self.accepts_)
                self.on_sent(frames[count++]);
            if (count < n) self.note_question(*frames[count]);  // lost, as on a wire
            return count;
        };
        std::string why;
        ULC_CHECK(IpSocket::open(below,
                                 {.address = kOwn,
                                  .prefix = kPrefix,
                                  .port = kPort,
                                  .gateway = kGateway,
                                  .seed = 1,
                                  .clock = [] { return now; }},
                                 socket_, why) == Err::kOk);
    }
    ~World() {
        socket_.reset();
        for (Segment* const segment : come_)
            fuzz::HeapPool::release(segment);
    }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    void step(Input& in) {
        const unsigned op = in.octet();
        switch (op % 6) {
            case 0:
                now += kMillisecond << (op / 6 % 16);
                (void)socket_->look();
                return;
            case 1: {
                const auto octets = std::as_bytes(in.take(in.get<std::uint16_t>() % 700));
                return arrive({octets.begin(), octets.end()});
            }
            case 2: {  // a datagram or an echo request, maybe changed
                const Station from{mac(op), node(op / 6), kPrefix, kPort, 0};
                const std::size_t octets = in.octet();
                Bytes frame(kLinkOctets + kAroundOctets + octets);
                put_link(frame.data(), from, kMac, kTypeIpv4);
                put_datagram(&frame[kLinkOctets], from, kOwn, kPort, octets);
                if (octets % 16 == 15) make_echo(frame);
                change(frame, in);
                set_checksum(frame);
                return arrive(frame);
            }
            case 3: {  // ARP, maybe changed
                const Station from{mac(in.octet()), node(op / 6), kPrefix, kPort, 0};
                Bytes frame(kLinkOctets + sizeof(ArpBody));
                put_link(frame.data(), from, kMac, kTypeArp);
                put_arp(&frame[kLinkOctets], from, op / 6 % 8 < 6 ? kArpReply : kArpRequest, kMac,
                        kOwn);
                change(frame, in);
                return arrive(frame);
            }
            case 4:
                return send(in, op / 6);
            default:
                accepts_ = op / 6;
        }
    }

private:
    static void change(Bytes& frame, Input& in) {
        const unsigned what = in.octet();
        const std::size_t at = in.get<std::uint16_t>() % frame.size();
        if (what % 4 == 1) frame[at] ^= std::byte{in.octet()};
        if (what % 4 == 2) frame.resize(at);
        if (what % 4 == 3) frame.push_back(std::byte{in.octet()});
    }
    /// Makes a datagram an echo request.
    static void make_echo(Bytes& frame) {
        const std::span body = std::span(frame).subspan(kLinkOctets + sizeof(Ipv4Header));
        EchoHeader echo{kEchoRequest, 0, 0, 1, 2};
        std::memcpy(body.data(), &echo, sizeof echo);
        echo.checksum = checksum_of(body);
        std::memcpy(body.data(), &echo, sizeof echo);
        frame[kLinkOctets + offsetof(Ipv4Header, protocol)] = std::byte{kIcmp};
    }
    /// Lets a header that was changed pass the check of its sum.
    static void set_checksum(Bytes& frame) {
        if (frame.size() < kLinkOctets + sizeof(Ipv4Header)) return;
        constexpr std::size_t kAt = kLinkOctets + 10;
        std::memset(&frame[kAt], 0, sizeof(std::uint16_t));
        const std::uint16_t sum =
            checksum_of(std::span(frame).subspan(kLinkOctets, sizeof(Ipv4Header)));
        std::memcpy(&frame[kAt], &sum, sizeof sum);
    }
    void arrive(const Bytes& frame) {
        if (frame.empty()) return;
        note_reply(frame);
        if (frame.size() >= kLinkOctets) std::memcpy(&last_from_, &frame[sizeof(Mac)], sizeof(Mac));
        come_.push_back(pool_.received(frame));
        udp::Arrived arrived;
        while (socket_->receive(arrived)) {
            std::uint16_t sum = sum_of(arrived.octets);  // reads each octet
            ULC_CHECK(sum <= UINT16_MAX && arrived.octets.size() <= kMtu);
            const udp::Address from = udp::address_of(*arrived.from);
            ULC_CHECK(from.port != 0 && from.is_v4());
        }
    }
    /// A reply to an open question lets frames for its sender go to the MAC address that it names.
    void note_reply(const Bytes& frame) {
        const Station self{kMac, kOwn, kPrefix, kPort, 0};
        LinkBody link;
        ArpBody arp;
        if (read_link(frame, self, link) != Reason::kNone || link.type != kTypeArp ||
            read_arp(link.octets, self, arp) != Reason::kNone || arp.operation != kArpReply)
            return;
        if (open_.erase(arp.sender_ip) > 0) named_[arp.sender_ip].insert(arp.sender);
    }
    static LinkBody body_of(const Segment& frame) {
        const Station wire{Mac{}, 0, 0, 0, 0};
        LinkBody link;
        ULC_CHECK(read_link({frame.frame, frame.length}, wire, link) == Reason::kNone);
        return link;
    }
    void note_question(const Segment& frame) {
        const LinkBody link = body_of(frame);
        if (link.type != kTypeArp) return;
        ArpBody arp;
        ULC_CHECK(link.octets.size() == sizeof arp);
        std::memcpy(&arp, link.octets.data(), sizeof arp);
        if (arp.operation != kArpRequest || arp.target_ip == kOwn) return;
        const auto last = asked_.find(arp.target_ip);
        ULC_CHECK(last == asked_.end() || now - last->second >= kSecond);
        asked_[arp.target_ip] = now;
        open_.insert(arp.target_ip);
    }
    void on_sent(Segment* frame) {
        note_question(*frame);
        const LinkBody link = body_of(*frame);
        if (link.type != kTypeArp) {
            Ipv4Header header;
            ULC_CHECK(link.type == kTypeIpv4 && link.octets.size() <= kMtu);
            std::memcpy(&header, link.octets.data(), sizeof header);
            ULC_CHECK(header.octets == link.octets.size());
            Mac to;
            std::memcpy(&to, frame->frame, sizeof to);
            const bool near = (header.destination ^ kOwn) >> 3U == 0;
            if (header.protocol == kIcmp) {
                ULC_CHECK(to == last_from_ && now >= next_echo_);
                next_echo_ = now + kMillisecond;
                return fuzz::HeapPool::release(frame);
            }
            ULC_CHECK(named_[near ? Ipv4{header.destination} : kGateway].contains(to));
        }
        fuzz::HeapPool::release(frame);
    }
    void send(Input& in, unsigned way) {
        udp::Address to;
        ULC_CHECK(udp::read_ip("10.0.0.1", to));
        const Be32 ip{way % 8 == 7 ? kFar : way % 8 == 6 ? in.get<Ipv4>() : node(way)};
        std::memcpy(&to.ip[12], &ip, sizeof ip);
        to.port = kPort;
        Bytes octets(1 + in.get<std::uint16_t>() % 2000);
        const std::size_t half = octets.size() / 2;
        iovec pieces[2]{{octets.data(), half}, {octets.data() + half, octets.size() - half}};
        const udp::SocketAddress address = udp::socket_address(to);
        const auto each = static_cast<std::uint16_t>(octets.size() / 4 + 1);
        const udp::Message message{&address, pieces, 2, way % 2 == 0 ? each : std::uint16_t{0}};
        int error = 0;
        const std::size_t sent = socket_->send({&message, 1}, error);
        ULC_CHECK((sent == 1) == (error == 0));
    }

    fuzz::HeapPool pool_;
    std::deque<Segment*> come_;
    unsigned accepts_ = 1000;
    std::unique_ptr<IpSocket> socket_;
    std::map<Ipv4, Nanos> asked_;
    std::set<Ipv4> open_;  ///< asked, without a reply
    std::map<Ipv4, std::set<Mac>> named_;
    Mac last_from_;
    Nanos next_echo_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    now = kSecond;
    Input in(data, size);
    World world;
    while (!in.done())
        world.step(in);
    return 0;
}
