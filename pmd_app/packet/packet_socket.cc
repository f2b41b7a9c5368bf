// SPDX-License-Identifier: BSD-3-Clause
#include "packet/packet_socket.h"

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace ulc::packet {
namespace {

constexpr std::uint32_t kEthernetOctets = 14;
/// Offset of the address of a received frame in its slot (packet_mmap.rst).
constexpr std::uint32_t kAddressOffset = TPACKET_ALIGN(sizeof(tpacket2_hdr));
/// The socket's send buffer. The transmit ring bounds what is under way; the kernel's default of
/// 208 KiB holds fewer than kTransmitSlots frames of 9,000 bytes.
constexpr int kSendBufferOctets = 1 << 20;

// NOLINTNEXTLINE(concurrency-mt-unsafe): start-up
std::string reason(int error) { return std::strerror(error); }

std::uint32_t load_status(const tpacket2_hdr& slot) noexcept {
    return __atomic_load_n(&slot.tp_status, __ATOMIC_ACQUIRE);
}
void store_status(tpacket2_hdr& slot, std::uint32_t status) noexcept {
    __atomic_store_n(&slot.tp_status, status, __ATOMIC_RELEASE);
}

template <typename Value>
int set_option(int fd, int name, const Value& value) {
    return setsockopt(fd, SOL_PACKET, name, &value, sizeof value) == 0 ? 0 : errno;
}

/// Blocks of at least a page, each a whole number of slots.
tpacket_req ring_request(std::uint32_t slot_octets, std::uint32_t slots) {
    const auto page = static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE));
    tpacket_req request{};
    request.tp_frame_size = slot_octets;
    request.tp_block_size = std::max(page, slot_octets);
    const std::uint32_t in_block = request.tp_block_size / slot_octets;
    request.tp_block_nr = (slots + in_block - 1) / in_block;
    request.tp_frame_nr = request.tp_block_nr * in_block;
    return request;
}

std::size_t octets_of(const tpacket_req& request) {
    return std::size_t{request.tp_block_size} * request.tp_block_nr;
}

}  // namespace

tpacket2_hdr* PacketSocket::Ring::at(std::uint32_t n) const noexcept {
    return reinterpret_cast<tpacket2_hdr*>(memory + std::size_t{n % slots} * slot_octets);
}

PacketSocket::~PacketSocket() {
    if (mapped_ != nullptr) munmap(mapped_, mapped_octets_);
    if (fd_ >= 0) close(fd_);
}

int PacketSocket::ioctl_of(unsigned long request, void* answer) const noexcept {
    auto& query = *static_cast<ifreq*>(answer);
    interface_.copy(query.ifr_name, IFNAMSIZ - 1);
    return ioctl(fd_, request, answer) == 0 ? 0 : errno;
}

Err PacketSocket::open(const SocketOptions& options, std::string& why) {
    ULC_CHECK(fd_ < 0);
    interface_ = options.interface;
    ether_type_ = options.ether_type;
    mtu_ = options.mtu;
    // Protocol 0: nothing is received before bind().
    fd_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) {
        const int error = errno;
        why = "packet socket on " + interface_ + ": " + reason(error) +
              "; it needs CAP_NET_RAW: run as root, or: setcap cap_net_raw+ep PROGRAM";
        return error == EPERM || error == EACCES ? Err::kPermission : Err::kSystem;
    }
    if (const Err e = look_up(why); e != Err::kOk) return e;
    const int version = TPACKET_V2;
    if (const int error = set_option(fd_, PACKET_VERSION, version); error != 0) {
        why = "packet socket on " + interface_ + ": TPACKET_V2: " + reason(error);
        return Err::kSystem;
    }
    // Leaves out the frames that we send. Kernels below 4.20 do not know the option; the parser
    // then drops the echoes. The kernel may refuse to bypass the queueing discipline, too.
    static_cast<void>(set_option(fd_, PACKET_IGNORE_OUTGOING, 1));
    // A frame that the kernel cannot send at all is skipped instead of blocking those behind it.
    static_cast<void>(set_option(fd_, PACKET_LOSS, 1));
    if (options.qdisc_bypass) static_cast<void>(set_option(fd_, PACKET_QDISC_BYPASS, 1));
    const int send_buffer = kSendBufferOctets;
    if (setsockopt(fd_, SOL_SOCKET, SO_SNDBUFFORCE, &send_buffer, sizeof send_buffer) != 0)
        static_cast<void>(setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer));
    if (const Err e = make_rings(options.receive_frames, why); e != Err::kOk) return e;
    if (const int error = take_multicasts(); error != 0) {
        why = "packet socket on " + interface_ + ": cannot receive multicasts: " + reason(error);
        return Err::kSystem;
    }
    if (const Err e = bind_to(index_, why); e != Err::kOk) return e;
    kernel_ = port::KernelInterface(fd_);
    const auto bind = [](void* context, int index) {
        return static_cast<PacketSocket*>(context)->bind_again(index);
    };
    watch_.begin(kernel_.calls(bind, this), interface_, index_, mac_, mtu_);
    return Err::kOk;
}

int PacketSocket::take_multicasts() noexcept {
    packet_mreq all{};
    all.mr_ifindex = index_;
    all.mr_type = PACKET_MR_ALLMULTI;
    return set_option(fd_, PACKET_ADD_MEMBERSHIP, all);
}

Err PacketSocket::look_up(std::string& why) {
    ifreq query{};
    if (const int error = ioctl_of(SIOCGIFINDEX, &query); error != 0) {
        why = "no network interface '" + interface_ + "' (" + reason(error) +
              "); 'ip link' shows those there are";
        return Err::kInvalid;
    }
    index_ = query.ifr_ifindex;
    if (ioctl_of(SIOCGIFFLAGS, &query) == 0 && (query.ifr_flags & IFF_UP) == 0) {
        why =
            "network interface " + interface_ + " is down; run: ip link set " + interface_ + " up";
        return Err::kPortDown;
    }
    if (ioctl_of(SIOCGIFMTU, &query) != 0) query.ifr_mtu = 1500;
    const int has = query.ifr_mtu;
    if (mtu_ > has) {
        why = "network interface " + interface_ + " has MTU " + std::to_string(has) +
              ", less than mtu = " + std::to_string(mtu_) + "; run: ip link set " + interface_ +
              " mtu " + std::to_string(mtu_) + ", or lower mtu on every node";
        return Err::kInvalid;
    }
    if (mtu_ == 0) mtu_ = static_cast<std::uint16_t>(std::min<int>(has, kMtuMax));
    // The bridge or bond takes received frames before a socket that is bound to one EtherType.
    if (access(("/sys/class/net/" + interface_ + "/master").c_str(), F_OK) == 0) {
        why =
            "network interface " + interface_ +
            " is a port of a bridge or bond, which takes its frames; use the bridge or bond itself";
        return Err::kInvalid;
    }
    if (const int error = ioctl_of(SIOCGIFHWADDR, &query); error != 0) {
        why = "network interface " + interface_ + " has no address: " + reason(error);
        return Err::kSystem;
    }
    std::memcpy(&mac_, query.ifr_hwaddr.sa_data, sizeof mac_);
    if ((mac_.octets[0] & 1U) != 0 || mac_ == Mac{}) {
        why = "network interface " + interface_ +
              " is no Ethernet interface with an address; choose another, 'ip link' shows them";
        return Err::kInvalid;
    }
    read_speed();
    return Err::kOk;
}

void PacketSocket::read_speed() noexcept {
    ethtool_cmd command{};
    command.cmd = ETHTOOL_GSET;
    ifreq query{};
    query.ifr_data = reinterpret_cast<char*>(&command);
    if (ioctl_of(SIOCETHTOOL, &query) != 0) return;
    const std::uint32_t megabits = ethtool_cmd_speed(&command);
    if (megabits != static_cast<std::uint32_t>(SPEED_UNKNOWN))
        bits_per_second_ = megabits * 1'000'000ULL;
}

Err PacketSocket::make_rings(std::uint32_t receive_frames, std::string& why) {
    const std::uint32_t frame = std::uint32_t{mtu_} + kEthernetOctets;
    // A slot holds header, address and alignment besides the frame.
    const std::uint32_t slot = std::bit_ceil(frame + std::uint32_t{TPACKET2_HDRLEN} + 64);
    const tpacket_req receive = ring_request(slot, receive_frames);
    const tpacket_req transmit = ring_request(slot, kTransmitSlots);
    int error = set_option(fd_, PACKET_RX_RING, receive);
    if (error == 0) error = set_option(fd_, PACKET_TX_RING, transmit);
    if (error == 0) {
        mapped_octets_ = octets_of(receive) + octets_of(transmit);
        void* memory = mmap(nullptr, mapped_octets_, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_POPULATE, fd_, 0);
        if (memory == MAP_FAILED) {
            error = errno;
        } else {
            mapped_ = memory;
        }
    }
    if (error != 0) {
        why = "packet socket on " + interface_ + ": no rings of " +
              std::to_string((octets_of(receive) + octets_of(transmit)) >> 10) +
              " KiB: " + reason(error) + "; lower framecnt";
        return error == ENOMEM ? Err::kNoMemory : Err::kSystem;
    }
    auto* memory = static_cast<std::byte*>(mapped_);
    rx_ = {memory, slot, receive.tp_frame_nr};
    ULC_CHECK(transmit.tp_frame_nr == kTransmitSlots);
    tx_.use(memory + octets_of(receive), slot, kTransmitSlots,
            {this, [](void* context) {
                 return static_cast<PacketSocket*>(context)->read_transmit_ring();
             }});
    return Err::kOk;
}

Err PacketSocket::bind_to(int index, std::string& why) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ether_type_);
    address.sll_ifindex = index;
    if (bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        why = "packet socket cannot be bound to " + interface_ + ": " + reason(errno);
        return Err::kSystem;
    }
    index_ = index;
    return Err::kOk;
}

// ---- receiving ----------------------------------------------------------------------------------

bool PacketSocket::next_frame(Received& out) const noexcept {
    const tpacket2_hdr& slot = *rx_.at(rx_at_);
    const std::uint32_t status = load_status(slot);  // pairs with the kernel's release
    if ((status & TP_STATUS_USER) == 0) return false;
    out.frame = reinterpret_cast<const std::byte*>(&slot) + slot.tp_mac;
    out.length = slot.tp_snaplen;
    out.truncated = slot.tp_snaplen != slot.tp_len;
    const auto& address = *reinterpret_cast<const sockaddr_ll*>(
        reinterpret_cast<const std::byte*>(&slot) + kAddressOffset);
    out.for_other_host = address.sll_pkttype == PACKET_OTHERHOST;
    return true;
}

void PacketSocket::release_frame() noexcept {
    store_status(*rx_.at(rx_at_), TP_STATUS_KERNEL);
    if (++rx_at_ == rx_.slots) rx_at_ = 0;
}

std::uint64_t PacketSocket::dropped() noexcept {
    tpacket_stats stats{};
    socklen_t octets = sizeof stats;
    // Reading resets the kernel's count.
    if (getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &stats, &octets) == 0)
        dropped_ += stats.tp_drops;
    return dropped_;
}

// ---- sending ------------------------------------------------------------------------------------

TransmitRing::Answer PacketSocket::read_transmit_ring() noexcept {
    using Answer = TransmitRing::Answer;
    if (sendto(fd_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0) return Answer::kLooked;
    switch (errno) {
        case EAGAIN:    // the send buffer
        case ENETDOWN:  // the interface is down
        case ENXIO:     // … or gone
        case EINTR:
            return Answer::kBusy;
        default:  // ENOBUFS from a queue that is full, or a driver that dropped the frame
            return Answer::kRefused;
    }
}

// ---- the interface ------------------------------------------------------------------------------

/// Takes an interface that was made again.
bool PacketSocket::bind_again(int index) {
    std::string why;
    if (bind_to(index, why) != Err::kOk) return false;
    static_cast<void>(take_multicasts());
    return true;
}

}  // namespace ulc::packet
