// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/queue_port.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace ulc::verbs {
namespace {

constexpr std::uint32_t kEthernetOctets = 14;
constexpr std::uint32_t kRefill = 16;  ///< receive requests that are posted at once, at least
/// Reports of sent frames come once a chain, and late where a provider is software.
constexpr Nanos kPendingTime = 50 * kMicrosecond;
constexpr std::uint32_t kRetryLooks = 100;  ///< between two tries to make an address handle

static_assert(port::FramePool::kHeadroom >= kGrhOctets);

/// Slot and generation of a receive request, as its number.
std::uint64_t name_of(std::uint32_t slot, std::uint32_t generation) noexcept {
    return std::uint64_t{generation} << 32 | slot;
}

std::uint64_t address_of(const std::byte* memory) noexcept {
    return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace

Err VerbsPort::open(const PortOptions& options, const Library* library,
                    std::unique_ptr<VerbsPort>& out, std::string& why) {
    Library loaded;
    if (library == nullptr) {
        if (const Err e = load(loaded, why); e != Err::kOk) return e;
        library = &loaded;
    }
    auto port = std::make_unique<QueuePort>(*library);
    if (const Err e = port->start(options, why); e != Err::kOk) return e;
    out = std::move(port);
    return Err::kOk;
}

QueuePort::QueuePort(const Library& library)
    : verbs_(library), adapter_(verbs_), groups_(verbs_, adapter_) {}

QueuePort::~QueuePort() {
    peers_.for_each([&](const Peer& peer) {
        if (peer.handle != nullptr) verbs_.destroy_ah(peer.handle);
    });
}

Err QueuePort::start(const PortOptions& options, std::string& why) {
    name_ = options.device.name;
    report_ = options.report;
    groups_.set_ether_type(options.ether_type);
    const AdapterOptions adapter{.device = options.device,
                                 .ether_type = options.ether_type,
                                 .send_frames = options.send_frames,
                                 .receive_frames = options.receive_frames};
    if (const Err e = adapter_.open(adapter, why); e != Err::kOk) return e;
    const std::uint32_t most = adapter_.mtu() - kEthernetOctets;
    if (options.mtu > most) {
        why = "verbs device " + name_ + " carries " + std::to_string(most) +
              " octets behind the Ethernet header, less than mtu = " + std::to_string(options.mtu) +
              "; leave mtu out, or raise the MTU of its network interface, on every node";
        return Err::kInvalid;
    }
    port_.info.mtu = static_cast<std::uint16_t>(options.mtu == 0 ? most : options.mtu);
    frame_max_ = port_.info.mtu + kEthernetOctets;
    if (const Err e = make_pools(options, why); e != Err::kOk) return e;
    fill_table(options);
    if (const int error = adapter_.bring_up(); error != 0) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): start-up
        why = "verbs device " + name_ + ": its queue pair does not start: " + std::strerror(error);
        return Err::kSystem;
    }
    refill();
    if (adapter_.is_infiniband() || options.device.join_by_manager) {
        std::unique_ptr<Membership> membership;
        const Err e =
            open_membership(verbs_, options.manager, adapter_, options.ether_type, membership, why);
        if (e != Err::kOk) return e;
        groups_.set_membership(std::move(membership));
    }
    if (const int error = groups_.start(); error != 0) {
        why = "verbs device " + name_ + " cannot join a multicast group: " +
              std::strerror(error) +  // NOLINT(concurrency-mt-unsafe): start-up
              advice_for_join(error, adapter_.is_infiniband());
        return Err::kUnsupported;
    }
    active_ = adapter_.is_active();
    return Err::kOk;
}

Err QueuePort::make_pools(const PortOptions& options, std::string& why) {
    const std::uint32_t receives = adapter_.receive_frames();
    if (const Err e = tx_pool_.create(options.segments, frame_max_, why); e != Err::kOk) return e;
    if (const Err e = rx_pool_.create(options.segments + receives, frame_max_, why); e != Err::kOk)
        return e;
    if (const Err e = adapter_.register_memory(tx_pool_.memory(), tx_key_, why); e != Err::kOk)
        return e;
    if (const Err e = adapter_.register_memory(rx_pool_.memory(), rx_key_, why); e != Err::kOk)
        return e;
    sent_.resize(adapter_.send_frames());
    slots_.resize(receives);
    free_slots_.reserve(receives);
    for (std::uint32_t n = receives; n-- > 0;)
        free_slots_.push_back(n);
    return Err::kOk;
}

void QueuePort::fill_table(const PortOptions& options) {
    port_.info.mac = mac_of(adapter_.own());
    port_.info.link_bits_per_second = adapter_.bits_per_second();
    port_.info.tx_ring_frames =
        static_cast<std::uint16_t>(std::min<std::uint32_t>(adapter_.send_frames(), UINT16_MAX));
    port_.info.tx_pending_time = kPendingTime;
    port_.info.rx_frames = options.segments;
    port_.info.gathers = true;
    port_.context = this;
    port_.pool = tx_pool_.table();
    port_.rx = [](void* context, Segment** frames, std::uint16_t n) {
        return static_cast<QueuePort*>(context)->receive(frames, n);
    };
    port_.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
        return static_cast<QueuePort*>(context)->send(frames, n);
    };
    port_.tx_pending = [](void* context) { return static_cast<QueuePort*>(context)->pending(); };
    port_.set_multicasts = [](void* context, std::span<const Mac> addresses) {
        return static_cast<QueuePort*>(context)->set_multicasts(addresses);
    };
    port_.link_up = [](void* context) { return static_cast<QueuePort*>(context)->look(); };
    interface_ = {.name = name_,
                  .mac = port_.info.mac,
                  .own = port_.info.mac,
                  .keeps_own = true,
                  .mtu = port_.info.mtu};
    port_.interface = [](void* context) -> const InterfaceState* {
        return &static_cast<QueuePort*>(context)->interface_;
    };
    port_.take_address = [](void* context) {
        return static_cast<QueuePort*>(context)->take_address();
    };
    port_.add_memory = [](void* context, std::span<const std::byte> memory) {
        auto& self = *static_cast<QueuePort*>(context);
        return self.gone_ ? 0 : self.adapter_.add_memory(memory, self.looks_);
    };
    port_.remove_memory = [](void* context, const std::byte* memory) {
        auto& self = *static_cast<QueuePort*>(context);
        self.adapter_.memories().remove(memory, self.posted_);
    };
    port_.drops = [](void* context) {
        const Counts& counts = static_cast<const QueuePort*>(context)->counts_;
        return PortDrops{.other_station = counts.other_station,
                         .too_long = counts.too_long,
                         .own_echo = counts.own_echo,
                         .wrong_source = counts.forged,
                         .damaged = counts.too_short,
                         .unsendable = counts.no_handle};
    };
    port_.costs = [](void* context) {
        const Counts& counts = static_cast<const QueuePort*>(context)->counts_;
        return PortCosts{counts.doorbells, counts.refusals, counts.copied_bytes};
    };
}

// ---- sending ------------------------------------------------------------------------------------

std::uint16_t QueuePort::send(Segment* const* frames, std::uint16_t n) {
    if (failed_ || gone_) return 0;
    const auto room = static_cast<std::uint32_t>(sent_.size() - (posted_ - completed_));
    n = static_cast<std::uint16_t>(std::min({std::uint32_t{n}, kChain, room}));
    std::array<std::uint16_t, kChain> frame_of;  // by work request: which frame
    std::uint32_t requests = 0;
    for (std::uint16_t i = 0; i < n; ++i) {
        ibv_send_wr& wr = send_chain_[requests];
        wr.wr_id = posted_ + requests;
        wr.send_flags = requests % kSignalEvery == kSignalEvery - 1 ? IBV_SEND_SIGNALED : 0;
        if (!compose(wr, &send_pieces_[std::size_t{2} * requests], *frames[i])) continue;
        wr.next = &send_chain_[requests + 1 < kChain ? requests + 1 : 0];
        frame_of[requests++] = i;
    }
    std::uint32_t taken = 0;  // work requests
    if (requests > 0) {
        ibv_send_wr& last = send_chain_[requests - 1];
        last.next = nullptr;
        last.send_flags |= IBV_SEND_SIGNALED;
        ibv_send_wr* bad = nullptr;
        const int error = verbs_.post_send(adapter_.qp(), send_chain_.data(), &bad);
        ++counts_.doorbells;
        taken = requests;
        if (error != 0) [[unlikely]] {
            ++counts_.refusals;
            const std::ptrdiff_t at = bad == nullptr ? 0 : bad - send_chain_.data();
            taken = at > 0 && at < std::ptrdiff_t{requests} ? static_cast<std::uint32_t>(at) : 0;
            if (error != ENOMEM && error != EAGAIN) {
                failed_ = true;
                failure_ = std::string("a send was refused: ") + std::strerror(error);  // NOLINT
            }
        }
    }
    const std::uint16_t sent = taken == requests ? n : frame_of[taken];
    std::uint32_t request = 0;
    for (std::uint16_t i = 0; i < sent; ++i) {
        if (request < taken && frame_of[request] == i) {
            sent_[posted_++ % sent_.size()] = frames[i];
            ++request;
        } else {
            port::FramePool::put(frames[i]);  // it has no way: lost, as on a cable
        }
    }
    counts_.frames_sent += taken;
    return sent;
}

/// Fills a work request. False: the frame cannot be sent now.
bool QueuePort::compose(ibv_send_wr& wr, ibv_sge* pieces, Segment& segment) {
    ULC_CHECK(segment.length >= kEthernetOctets && segment.length <= frame_max_);
    Mac to;
    std::memcpy(&to, segment.frame, sizeof to);
    const Way way = way_to(to);
    if (way.handle == nullptr) [[unlikely]] {
        ++counts_.no_handle;
        return false;
    }
    if (way.peer != nullptr) way.peer->last_frame = wr.wr_id;
    wr.opcode = IBV_WR_SEND;
    wr.wr.ud.ah = way.handle;
    wr.wr.ud.remote_qpn = way.qpn;
    wr.wr.ud.remote_qkey = adapter_.q_key();
    wr.sg_list = pieces;
    wr.num_sge = 1;
    if (segment.length <= adapter_.inline_max()) {
        wr.send_flags |= IBV_SEND_INLINE;  // read before post_send() returns, wherever it lies
        counts_.copied_bytes += segment.length;
        if (segment.tail != nullptr) {
            pieces[1] = {address_of(segment.tail), segment.tail_octets, 0};
            wr.num_sge = 2;
        }
    } else if (segment.tail != nullptr && segment.tail_key != 0 &&
               adapter_.memories().hold(segment.tail_key, segment.tail, segment.tail_octets)) {
        pieces[1] = {address_of(segment.tail), segment.tail_octets, segment.tail_key};
        wr.num_sge = 2;
    } else if (segment.tail != nullptr) {
        counts_.copied_bytes += segment.tail_octets;
        pull_tail(segment);  // the device reads later than the application keeps its memory
    }
    const std::uint32_t head = segment.length - (segment.tail != nullptr ? segment.tail_octets : 0);
    pieces[0] = {address_of(segment.frame), head, tx_key_};
    return true;
}

QueuePort::Way QueuePort::way_to(const Mac& to) {
    if ((to.octets[0] & 1U) != 0) {
        ibv_ah* handle = groups_.handle(group_of(to));
        if (handle != nullptr || groups_.membership() == nullptr) [[likely]]
            return {handle, kMulticastQpn, nullptr};
        ++counts_.flooded;  // until the node is a member
        return {groups_.handle(kBroadcastGroup), kMulticastQpn, nullptr};
    }
    Peer* peer = peers_.find(to);
    if (peer != nullptr) {
        if (ibv_ah* handle = handle_of(*peer); handle != nullptr)
            return {handle, peer->address.qpn, peer};
    }
    ++counts_.flooded;
    return {groups_.handle(kBroadcastGroup), kMulticastQpn, nullptr};
}

/// The kernel may ask the node's neighbour for its address meanwhile, and fail; then frames are
/// flooded until the next try.
ibv_ah* QueuePort::handle_of(Peer& peer) {
    if (peer.handle != nullptr) [[likely]]
        return peer.handle;
    if (static_cast<std::int32_t>(looks_ - peer.retry_at) < 0) return nullptr;
    peer.handle = adapter_.make_handle(peer.address.gid, peer.lid, peer.service_level);
    peer.retry_at = looks_ + kRetryLooks;
    return peer.handle;
}

std::uint32_t QueuePort::pending() {
    for (std::size_t polls = sent_.size() / kPoll + 1; polls > 0; --polls) {
        const int found = verbs_.poll_cq(adapter_.send_cq(), kPoll, completions_.data());
        if (found < 0) [[unlikely]] {
            failed_ = true;
            failure_ = "its completion queue failed";
        }
        const int count = std::clamp(found, 0, static_cast<int>(kPoll));
        for (int n = 0; n < count; ++n)
            on_sent(completions_[static_cast<std::size_t>(n)]);
        if (count < static_cast<int>(kPoll)) break;
    }
    return static_cast<std::uint32_t>(posted_ - completed_);
}

void QueuePort::on_sent(const ibv_wc& wc) {
    if (wc.wr_id - completed_ >= posted_ - completed_) [[unlikely]] {
        ++counts_.bad_completions;
        return;
    }
    if (number_of(wc.status) != IBV_WC_SUCCESS) [[unlikely]] {
        ++counts_.failed_completions;
        if (!failed_) failure_ = "a send ended with status " + std::to_string(number_of(wc.status));
        failed_ = true;
    }
    retire(wc.wr_id + 1);
}

/// The device has let go of the frames below that number.
void QueuePort::retire(std::uint64_t until) {
    while (completed_ != until)
        port::FramePool::put(sent_[completed_++ % sent_.size()]);
}

// ---- receiving ----------------------------------------------------------------------------------

std::uint16_t QueuePort::receive(Segment** out, std::uint16_t n) {
    if (gone_) return 0;
    if (free_slots_.size() >= kRefill) refill();
    const int most = std::min<int>(n, kPoll);
    const int found = verbs_.poll_cq(adapter_.receive_cq(), most, completions_.data());
    if (found == 0) return 0;
    if (found < 0) [[unlikely]] {
        failed_ = true;
        failure_ = "its completion queue failed";
        return 0;
    }
    std::uint16_t received = 0;
    for (int i = 0; i < std::min(found, most); ++i) {
        Segment* segment = take(completions_[static_cast<std::size_t>(i)]);
        if (segment != nullptr) out[received++] = segment;
    }
    return received;
}

/// The frame of a completion; nullptr: there is none, or it is not for us.
Segment* QueuePort::take(const ibv_wc& wc) {
    const auto slot = static_cast<std::uint32_t>(wc.wr_id);
    if (slot >= slots_.size() || slots_[slot] == nullptr || wc.wr_id != name_of(slot, generation_))
        [[unlikely]] {
        ++counts_.bad_completions;
        return nullptr;
    }
    Segment* segment = slots_[slot];
    slots_[slot] = nullptr;
    free_slots_.push_back(slot);
    if (number_of(wc.status) != IBV_WC_SUCCESS) [[unlikely]] {
        ++counts_.failed_completions;
        if (!failed_)
            failure_ = "a receive ended with status " + std::to_string(number_of(wc.status));
        failed_ = true;
    } else if (wc.byte_len < kGrhOctets + kEthernetOctets) [[unlikely]] {
        ++counts_.too_short;
    } else if (wc.byte_len > kGrhOctets + frame_max_) [[unlikely]] {
        ++counts_.too_long;
    } else if (judge(wc, *segment)) [[likely]] {
        segment->length = wc.byte_len - kGrhOctets;
        return segment;
    }
    port::FramePool::put(segment);
    return nullptr;
}

/// Returns true if the frame is for this node, and from the node whose MAC it has.
bool QueuePort::judge(const ibv_wc& wc, const Segment& segment) {
    Mac to;
    Mac from;
    std::memcpy(&to, segment.frame, sizeof to);
    std::memcpy(&from, segment.frame + sizeof to, sizeof from);
    Address sender{.gid = {}, .qpn = wc.src_qp & 0xffffff};
    const bool headed = (wc.wc_flags & IBV_WC_GRH) != 0 &&
                        read_source(segment.frame - kGrhOctets, adapter_.v4(), sender.gid);
    if (!headed || !heard(from, sender, wc)) [[unlikely]] {
        ++counts_.forged;
        return false;
    }
    if (from == port_.info.mac) {  // a device may loop multicasts back
        ++counts_.own_echo;
        return false;
    }
    if ((to.octets[0] & 1U) == 0 && to != port_.info.mac) {
        ++counts_.other_station;
        return false;
    }
    return true;
}

/// Learns the sender. False: it is not the node of that MAC, or another node has the same.
bool QueuePort::heard(const Mac& mac, const Address& from, const ibv_wc& wc) {
    Peer* peer = peers_.find(mac);
    if (peer == nullptr) {
        if (mac_of(from) != mac) return false;
        peer = peers_.place(mac, completed_);
        if (peer == nullptr) return true;  // it is flooded to
        if (peer->handle != nullptr) verbs_.destroy_ah(peer->handle);
        *peer = {.mac = mac,
                 .service_level = wc.sl,
                 .known = true,
                 .lid = wc.slid,
                 .address = from,
                 .retry_at = looks_};
        ++counts_.peers_learnt;
    }
    peers_.note(*peer);
    return peer->address == from;
}

/// Posts a buffer in every free slot, as far as there are buffers.
void QueuePort::refill() {
    while (!free_slots_.empty() && !failed_) {
        std::uint32_t requests = 0;
        while (requests < kChain && !free_slots_.empty()) {
            Segment* segment = rx_pool_.get();
            if (segment == nullptr) break;
            const std::uint32_t slot = free_slots_.back();
            free_slots_.pop_back();
            slots_[slot] = segment;
            receive_pieces_[requests] = {address_of(segment->frame - kGrhOctets),
                                         kGrhOctets + frame_max_, rx_key_};
            receive_chain_[requests] = {.wr_id = name_of(slot, generation_),
                                        .next = nullptr,
                                        .sg_list = &receive_pieces_[requests],
                                        .num_sge = 1};
            if (requests > 0) receive_chain_[requests - 1].next = &receive_chain_[requests];
            ++requests;
        }
        if (requests == 0) return;
        ibv_recv_wr* bad = nullptr;
        const int error = verbs_.post_recv(adapter_.qp(), receive_chain_.data(), &bad);
        if (error == 0) [[likely]]
            continue;
        std::ptrdiff_t at = bad == nullptr ? 0 : bad - receive_chain_.data();
        if (at < 0 || at >= std::ptrdiff_t{requests}) at = 0;
        for (auto n = static_cast<std::uint32_t>(at); n < requests; ++n) {
            const auto slot = static_cast<std::uint32_t>(receive_chain_[n].wr_id);
            port::FramePool::put(slots_[slot]);
            slots_[slot] = nullptr;
            free_slots_.push_back(slot);
        }
        failed_ = true;
        failure_ = std::string("a receive was refused: ") + std::strerror(error);  // NOLINT
    }
}

}  // namespace ulc::verbs
