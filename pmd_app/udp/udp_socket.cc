// SPDX-License-Identifier: BSD-3-Clause
#include "udp/udp_socket.h"

#include <linux/sockios.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "udp/device.h"

namespace ulc::udp {
namespace {

constexpr std::size_t kBufferOctets = 1U << 16;  ///< the longest message that the kernel joins
constexpr std::size_t kLongOctets = 1U << 14;    ///< copying such a message costs more than a call
/// Space that this asks the kernel for. An ordinary user gets as much as net.core.rmem_max.
constexpr int kReceiveOctets = 8 << 20;
constexpr int kSendOctets = 1 << 20;

// NOLINTNEXTLINE(concurrency-mt-unsafe): start-up
std::string reason(int error) { return std::strerror(error); }

int set_option(int fd, int level, int name, int value) noexcept {
    return setsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : errno;
}

}  // namespace

struct Socket::Batch {
    std::array<mmsghdr, kBatch> heads{};
    std::array<iovec, kBatch> pieces{};
    std::array<SocketAddress, kBatch> from{};
    struct Control {
        alignas(cmsghdr) std::byte octets[kControlOctets];
    };
    std::array<Control, kBatch> control{};
    std::array<mmsghdr, kMessagesMax> out{};
    std::array<Control, kMessagesMax> out_control{};
    std::array<std::byte, kBatch * kBufferOctets> memory;  // touched as messages come
};

Socket::Socket() noexcept = default;

Socket::~Socket() {
    if (fd_ >= 0) ::close(fd_);
}

Err Socket::open(const Address& address, std::string& why) {
    const SocketAddress at = socket_address(address);
    const bool is_v4 = address.is_v4();
    fd_ = ::socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) {
        why = "no UDP socket: " + reason(errno);
        return Err::kSystem;
    }
    if (::bind(fd_, &at.any, at.octets) != 0) {
        const int error = errno;
        why = text_of(address) + " cannot be used: " + reason(error) +
              (error == EADDRINUSE ? "; name another port, or end the program that has it"
                                   : "; name an address of this machine, as 'ip address' shows it");
        return Err::kInvalid;
    }
    SocketAddress bound;
    bound.octets = sizeof bound.v6;
    ULC_CHECK(::getsockname(fd_, &bound.any, &bound.octets) == 0);
    local_ = address_of(bound.any);
    // Packets are never cut on the way. Words of routers about their length are not believed, since
    // anyone can send them: questions find a narrow path (I-19).
    const int wrong = is_v4 ? set_option(fd_, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
                            : set_option(fd_, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    if (wrong != 0) {
        why = "the kernel does not find the MTU of paths: " + reason(wrong);
        return Err::kSystem;
    }
    (void)set_option(fd_, SOL_SOCKET, SO_RCVBUF, kReceiveOctets);
    (void)set_option(fd_, SOL_SOCKET, SO_SNDBUF, kSendOctets);
    (void)set_option(fd_, SOL_SOCKET, SO_RXQ_OVFL, 1);
    if (const int e = set_option(fd_, IPPROTO_UDP, UDP_GRO, 1); e != 0) {
        why = "the kernel joins no datagrams (UDP_GRO): " + reason(e) + "; Linux 5.0 does";
        return Err::kSystem;
    }
    batch_ = std::make_unique_for_overwrite<Batch>();
    Batch& batch = *batch_;
    for (std::size_t n = 0; n < kBatch; ++n) {
        batch.pieces[n] = {batch.memory.data() + n * kBufferOctets, kBufferOctets};
        msghdr& head = batch.heads[n].msg_hdr;
        head = {};
        head.msg_name = &batch.from[n].any;
        head.msg_iov = &batch.pieces[n];
        head.msg_iovlen = 1;
        head.msg_control = batch.control[n].octets;
    }
    return Err::kOk;
}

std::size_t Socket::send(std::span<const Message> messages, int& error) noexcept {
    ULC_CHECK(messages.size() <= kMessagesMax);
    Batch& batch = *batch_;
    for (std::size_t n = 0; n < messages.size(); ++n) {
        const Message& message = messages[n];
        msghdr& head = batch.out[n].msg_hdr;
        head = {};
        head.msg_name = const_cast<sockaddr*>(&message.to->any);
        head.msg_namelen = message.to->octets;
        head.msg_iov = message.pieces;
        head.msg_iovlen = message.piece_count;
        if (message.datagram_octets == 0) continue;
        head.msg_control = batch.out_control[n].octets;
        head.msg_controllen = CMSG_SPACE(sizeof(std::uint16_t));
        cmsghdr* said = CMSG_FIRSTHDR(&head);
        said->cmsg_level = IPPROTO_UDP;
        said->cmsg_type = UDP_SEGMENT;
        said->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
        std::memcpy(CMSG_DATA(said), &message.datagram_octets, sizeof(std::uint16_t));
    }
    std::size_t sent = 0;
    error = 0;
    while (sent < messages.size()) {
        ++counts_.sends;
        const int taken = ::sendmmsg(fd_, batch.out.data() + sent,
                                     static_cast<unsigned>(messages.size() - sent), MSG_DONTWAIT);
        if (taken < 0 && errno == EINTR) continue;
        if (taken < 0) {
            error = errno == ENOBUFS ? EAGAIN : errno;
            ++counts_.refusals;
            return sent;
        }
        sent += static_cast<std::size_t>(taken);  // the next call says why there were not more
    }
    return sent;
}

std::size_t Socket::unsent() noexcept {
    int octets = 0;
    return ::ioctl(fd_, SIOCOUTQ, &octets) == 0 && octets > 0 ? static_cast<std::size_t>(octets)
                                                              : 0;
}

std::uint16_t Socket::packet_octets() const noexcept {
    return udp::packet_octets(local_, receive_space());
}

std::size_t Socket::receive_space() const noexcept {
    int octets = 0;
    socklen_t length = sizeof octets;
    ULC_CHECK(::getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &octets, &length) == 0);
    return static_cast<std::size_t>(octets);
}

bool Socket::receive(Arrived& out) noexcept {
    Batch& batch = *batch_;
    if (taken_ == arrived_) {
        if (std::exchange(drained_, false)) return false;
        for (std::size_t n = 0; n < asked_; ++n) {
            batch.heads[n].msg_hdr.msg_namelen = sizeof(sockaddr_in6);
            batch.heads[n].msg_hdr.msg_controllen = kControlOctets;
        }
        ++counts_.receives;
        const int got = ::recvmmsg(fd_, batch.heads.data(), static_cast<unsigned>(asked_),
                                   MSG_DONTWAIT, nullptr);
        taken_ = 0;
        arrived_ = got > 0 ? static_cast<std::size_t>(got) : 0;
        drained_ = arrived_ > 0 && arrived_ < asked_;
        if (arrived_ == 0) {
            asked_ = kBatch;
            return false;
        }
        asked_ = batch.heads[arrived_ - 1].msg_len >= kLongOctets ? 1 : kBatch;
    }
    msghdr& head = batch.heads[taken_].msg_hdr;
    const std::size_t octets = batch.heads[taken_].msg_len;
    out = {&batch.from[taken_].any,
           {batch.memory.data() + taken_ * kBufferOctets, octets},
           octets,
           (head.msg_flags & MSG_TRUNC) != 0};
    for (cmsghdr* said = CMSG_FIRSTHDR(&head); said != nullptr; said = CMSG_NXTHDR(&head, said)) {
        int value = 0;
        std::memcpy(&value, CMSG_DATA(said), sizeof value);
        if (said->cmsg_level == IPPROTO_UDP && said->cmsg_type == UDP_GRO && value > 0)
            out.datagram_octets = static_cast<std::size_t>(value);
        if (said->cmsg_level == SOL_SOCKET && said->cmsg_type == SO_RXQ_OVFL)
            overruns_ = static_cast<std::uint32_t>(value);
    }
    ++taken_;
    return true;
}

}  // namespace ulc::udp
