// SPDX-License-Identifier: BSD-3-Clause
// Any octets as messages of hostile peers to the provider for libfabric, over a plain libulc. Each
// malformed message must be dropped and counted; each completion must lie in its buffer.
//
//   input: an octet 0xff if the job forms at operation 5 and not before; operations until it ends:
//   one octet says which (mod 16), then
//     0  a tagged receive           tag (1), ignored bits (1), capacity (1)
//     1  a multi-receive            capacity / 4 (1), the least that is kept (1)
//     2  a message                  source (1), tagged (1), tag (1), length (2), its header (12)
//     3  a look                     tag (1), ignored bits (1), flags (1)
//     4  the end of a claim         which (1), flags (1), capacity (1)
//     5  the queue is read
//     6  a receive taken back       which (1)
//     7  an address                 64
//     8  an announcement            source (1), tag (1), how (1: 1 proven, 2 another reader,
//                                   8 too long, 16 data, 32 in one piece), pieces (1), then of
//                                   each: place (1), length (2)
//     9  the message behind it      source (1), length (2), its header (12)
//    10  a long send to a rank of this node
//    11  its answer                 length (1), octets
//    12  a request to memory        source (1), key (1), address (1: at the end if odd), lengths of
//                                   memory (2) and of the rest (2), the first 8 of its header
//    13  the data of a long write   source (1), number (1), length (2)
//    14  an access to a rank        kind (1), length (2)
//    15  its response               number (1), length (2), its header (4)
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/process_start.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/info.h"
#include "ofi/peers/addresses.h"
#include "ofi/queues/completions.h"
#include "ofi/say.h"
#include "plain_ulc.h"

namespace ulc::ofi {

void say(const char*, ...) noexcept {}  // the fuzzer's log would fill

}  // namespace ulc::ofi

namespace {

using namespace ulc;

struct Input {
    const std::uint8_t* data;
    std::size_t left;

    std::uint8_t octet() {
        if (left == 0) return 0;
        --left;
        return *data++;
    }
    void read(unsigned char* out, std::size_t octets) {
        for (std::size_t i = 0; i < octets; ++i)
            out[i] = octet();
    }
};

/// A message that hostile ranks of this node announce.
struct Offered {
    ofi::PullDescriptor descriptor;
    unsigned char memory[1200];
};
Offered offered;
unsigned char long_message[1U << 16];
/// Sizes of the memory that ranks may write and read, and of that which they may only read.
constexpr std::size_t kRegionBytes = 6000;
constexpr std::size_t kReadOnlyBytes = 64;

/// One receive of the application, its context, and memory of exactly its capacity.
struct Slot {
    explicit Slot(std::size_t octets) : capacity(octets), memory(new unsigned char[octets]) {}
    std::size_t capacity;
    std::unique_ptr<unsigned char[]> memory;
    bool many = false;
    bool claims = false;
    bool over = false;

    /// No two messages lie in the same bytes of a buffer for many.
    void take(const unsigned char* begin, const unsigned char* end) {
        for (const auto& [from, to] : parts_)
            ULC_CHECK(end <= from || begin >= to);
        parts_.emplace_back(begin, end);
    }

private:
    std::vector<std::pair<const unsigned char*, const unsigned char*>> parts_;
};

struct World {
    fi_tx_attr tx{};
    fi_rx_attr rx{};
    fi_ep_attr ep_attr{};
    fi_domain_attr domain_attr{};
    fi_info info{};
    fid_domain* domain = nullptr;
    fid_cq* queue = nullptr;
    fid_av* addresses = nullptr;
    fid_ep* ep = nullptr;
    fi_addr_t near = FI_ADDR_NOTAVAIL;
    std::vector<std::unique_ptr<Slot>> slots;
    std::unique_ptr<unsigned char[]> region{new unsigned char[kRegionBytes]()};
    std::unique_ptr<unsigned char[]> read_only{new unsigned char[kReadOnlyBytes]()};
    fid_mr* registered[2] = {};
    std::uint16_t orders[fuzz::kRanks] = {};

    World() {
        domain_attr.threading = FI_THREAD_DOMAIN;
        ep_attr.type = FI_EP_RDM;
        info.caps = FI_TAGGED | FI_MSG | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV | FI_RMA |
                    FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
        info.tx_attr = &tx;
        info.rx_attr = &rx;
        info.ep_attr = &ep_attr;
        info.domain_attr = &domain_attr;
        ULC_CHECK(ofi::open_domain(nullptr, &info, &domain, nullptr) == 0);
        fi_av_attr av{};
        ULC_CHECK(fi_av_open(domain, &av, &addresses, nullptr) == 0);
        fi_cq_attr cq{};
        ULC_CHECK(fi_cq_open(domain, &cq, &queue, nullptr) == 0);
        ULC_CHECK(fi_endpoint(domain, &info, &ep, nullptr) == 0);
        ULC_CHECK(fi_ep_bind(ep, &addresses->fid, 0) == 0);
        ULC_CHECK(fi_ep_bind(ep, &queue->fid, FI_RECV | FI_TRANSMIT) == 0);
        ULC_CHECK(fi_enable(ep) == 0);
        unsigned char name[ofi::kAddressBytes];
        std::size_t length = sizeof name;
        ULC_CHECK(fi_getname(&ep->fid, name, &length) == 0);
        name[7] = 1;  // the rank
        ULC_CHECK(fi_av_insert(addresses, name, 1, &near, 0, nullptr) == 1);
        ULC_CHECK(fi_mr_reg(domain, region.get(), kRegionBytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                            1, 0, &registered[0], nullptr) == 0);
        ULC_CHECK(fi_mr_reg(domain, read_only.get(), kReadOnlyBytes, FI_REMOTE_READ, 0, 2, 0,
                            &registered[1], nullptr) == 0);
    }
    ~World() {
        for (std::size_t i = 0; i < kReadOnlyBytes; ++i)
            ULC_CHECK(read_only[i] == 0);
        ULC_CHECK(fi_close(&ep->fid) == 0);
        for (fid_mr* one : registered)  // no transfer uses it
            ULC_CHECK(fi_close(&one->fid) == 0);
        for (fid* one : {&queue->fid, &addresses->fid, &domain->fid})
            ULC_CHECK(fi_close(one) == 0);
    }

    Slot& add_slot(std::size_t capacity) {
        slots.push_back(std::make_unique<Slot>(capacity));
        return *slots.back();
    }
    Slot* chosen(std::uint8_t which) {
        return slots.empty() ? nullptr : slots[which % slots.size()].get();
    }

    void receive(Input& in) {
        const std::uint8_t tag = in.octet();
        const std::uint8_t ignored = in.octet();
        Slot& slot = add_slot(in.octet());
        ULC_CHECK(fi_trecv(ep, slot.memory.get(), slot.capacity, nullptr, FI_ADDR_UNSPEC, tag,
                           ignored, &slot) == 0);
    }
    void receive_many(Input& in) {
        Slot& slot = add_slot(in.octet() * std::size_t{4});
        slot.many = true;
        std::size_t least = in.octet();
        ULC_CHECK(
            fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least) == 0);
        const iovec piece{slot.memory.get(), slot.capacity};
        const fi_msg message{&piece, nullptr, 1, FI_ADDR_UNSPEC, &slot, 0};
        ULC_CHECK(fi_recvmsg(ep, &message, FI_MULTI_RECV) == 0);
    }
    static void message(Input& in) {
        const auto source = static_cast<std::uint16_t>(in.octet() % fuzz::kRanks);
        const bool tagged = in.octet() % 2 != 0;
        const std::uint8_t tag = in.octet();
        const std::size_t length = (in.octet() | in.octet() << 8) % 1200;
        std::vector<unsigned char> bytes(length, 0x5a);
        in.read(bytes.data(), std::min<std::size_t>(length, sizeof(ofi::MessageHeader)));
        fuzz::arrive(source, tagged ? ofi::kTaggedBit | tag : 0, std::move(bytes));
    }
    void look(Input& in) {
        const std::uint8_t tag = in.octet();
        const std::uint8_t ignored = in.octet();
        const std::uint8_t choice = in.octet() % 3;
        Slot& slot = add_slot(0);
        const std::uint64_t more = choice == 0 ? 0 : choice == 1 ? FI_CLAIM : FI_DISCARD;
        slot.claims = choice == 1;
        const fi_msg_tagged wanted{nullptr, nullptr, 0, FI_ADDR_UNSPEC, tag, ignored, &slot, 0};
        ULC_CHECK(fi_trecvmsg(ep, &wanted, FI_PEEK | more) == 0);
    }
    void end_claim(Input& in) {
        Slot* slot = chosen(in.octet());
        const std::uint64_t more = in.octet() % 2 != 0 ? FI_DISCARD : 0;
        const std::uint8_t capacity = in.octet();
        if (slot == nullptr || !slot->claims) return;
        read_all();
        slot->memory.reset(new unsigned char[capacity]);
        slot->capacity = capacity;
        slot->over = false;
        const iovec piece{slot->memory.get(), capacity};
        const fi_msg_tagged wanted{&piece, nullptr, 1, FI_ADDR_UNSPEC, 0, 0, slot, 0};
        // There is nothing to take if the look found nothing.
        const ssize_t error = fi_trecvmsg(ep, &wanted, FI_CLAIM | more);
        ULC_CHECK(error == 0 || error == -FI_EINVAL);
        slot->claims = false;
    }
    void cancel(Input& in) {
        Slot* slot = chosen(in.octet());
        if (slot != nullptr) static_cast<void>(fi_cancel(&ep->fid, slot));
    }
    void address(Input& in) {
        unsigned char octets[ofi::kAddressBytes];
        in.read(octets, sizeof octets);
        fi_addr_t index = 0;
        const int added = fi_av_insert(addresses, octets, 1, &index, 0, nullptr);
        ULC_CHECK(added == 1 || (added == 0 && index == FI_ADDR_NOTAVAIL));
        if (added == 0) return;
        const ofi::Address own = ofi::Job::of_process(nullptr)->address_of(0, 0);
        if (std::equal(octets + 12, octets + 20, own.begin() + 12))
            ULC_CHECK((octets[6] << 8 | octets[7]) < fuzz::kRanks);
        else  // of another job, to be reached by a link
            ULC_CHECK(
                std::any_of(octets + 32, octets + 64, [](unsigned char o) { return o != 0; }));
    }

    static std::size_t length_of(Input& in) { return (in.octet() | in.octet() << 8) % 1200; }
    static void announcement(Input& in) {
        const auto source = static_cast<std::uint16_t>(in.octet() % fuzz::kRanks);
        const std::uint64_t tag = in.octet();
        const std::uint8_t how = in.octet();
        static const auto pid = static_cast<std::uint32_t>(::getpid());
        ofi::PullDescriptor& descriptor = offered.descriptor;
        descriptor = {};
        descriptor.data = how;
        descriptor.has_data = how >> 4 & 1;
        descriptor.count = in.octet() % 9;
        for (std::uint32_t i = 0; i < std::min<std::uint32_t>(descriptor.count, 7); ++i) {
            const std::uint8_t place = in.octet();
            const std::size_t length = length_of(in);
            const std::size_t from = place % 4 == 0 ? 0 : place;
            // Some pieces lie where nothing is.
            descriptor.pieces[i].address =
                place == 0xff ? 4096 : reinterpret_cast<std::uintptr_t>(offered.memory + from);
            descriptor.pieces[i].length = std::min(length, sizeof offered.memory - from);
            descriptor.length += descriptor.pieces[i].length;
        }
        if ((how & 8) != 0) ++descriptor.length;  // does not fit
        // The token that the provider gave away last.
        ofi::PullAnswer answer{};
        const auto& sent = fuzz::last_sent().bytes;
        if (sent.size() == sizeof answer) std::memcpy(&answer, sent.data(), sizeof answer);
        const ofi::PullSeal::Process own{process_start_ticks(pid), pid};
        descriptor.seal = {answer.token, own, own};
        if ((how & 2) != 0) descriptor.seal.reader.pid = 1;
        const auto address = reinterpret_cast<std::uintptr_t>(&descriptor);
        ofi::MessageHeader header =
            ofi::MessageHeader::announcing(address, (how & 16) != 0, (how & 1) != 0);
        const ofi::Announcement body{descriptor.length, descriptor.data,
                                     (how & 32) != 0 ? descriptor.pieces[0].address : 0};
        std::vector<unsigned char> bytes(sizeof header + sizeof body);
        std::memcpy(bytes.data(), &header, sizeof header);
        std::memcpy(bytes.data() + sizeof header, &body, sizeof body);
        fuzz::arrive(source, ofi::kTaggedBit | tag, std::move(bytes));
    }
    static void message_behind(Input& in) {
        const auto source = static_cast<std::uint16_t>(in.octet() % fuzz::kRanks);
        std::vector<unsigned char> bytes(length_of(in), 0x5a);
        in.read(bytes.data(), std::min<std::size_t>(bytes.size(), sizeof(ofi::MessageHeader)));
        const auto address = reinterpret_cast<std::uintptr_t>(&offered.descriptor);
        fuzz::arrive(source, ofi::whole_message_tag(address), std::move(bytes));
    }
    void send_long() const {
        const ssize_t error =
            fi_tsend(ep, long_message, sizeof long_message, nullptr, near, 3, nullptr);
        ULC_CHECK(error == 0 || error == -FI_EAGAIN);
    }
    static void answer_it(Input& in) {
        std::vector<unsigned char> bytes(in.octet() % 32);
        in.read(bytes.data(), bytes.size());
        const fuzz::Sent& sent = fuzz::last_sent();
        if (sent.bytes.size() != 36) return;
        std::uint64_t address = 0;
        for (std::size_t i = 4; i < 12; ++i)
            address = address << 8 | sent.bytes[i];
        fuzz::arrive(sent.to, ofi::answer_tag(address), std::move(bytes));
    }

    void request(Input& in) {
        const auto source = static_cast<std::uint16_t>(in.octet() % fuzz::kRanks);
        ofi::RmaRequest made{};
        made.key = in.octet() % 4;
        const std::uint8_t place = in.octet();
        const std::size_t behind_end = place / 2;
        made.length = in.octet() | in.octet() << 8;
        made.address = place % 2 == 0 ? behind_end : kRegionBytes - made.length + behind_end;
        made.number = place;
        const std::size_t behind = (in.octet() | in.octet() << 8) % 9000;
        unsigned char head[8];
        in.read(head, sizeof head);
        std::memcpy(&made, head, sizeof head);
        // The rest fits if the first octet says so.
        const bool fits = made.version == 0;
        if (fits) made.version = ofi::RmaRequest::kVersion;
        std::size_t octets = sizeof made + behind;
        if (fits && made.bytes_behind() < 9000) octets = sizeof made + made.bytes_behind();
        if (made.order == 0) {
            made.order = orders[source];
            orders[source] += made.is_valid(octets) ? 1 : 0;
        }
        std::vector<unsigned char> bytes(octets, 0x5a);
        std::memcpy(bytes.data(), &made, sizeof made);
        fuzz::arrive(source, ofi::kRmaTag, std::move(bytes));
    }
    static void data_of_write(Input& in) {
        const auto source = static_cast<std::uint16_t>(in.octet() % fuzz::kRanks);
        const std::uint8_t number = in.octet();
        std::vector<unsigned char> bytes((in.octet() | in.octet() << 8) % 9000, 0x5a);
        fuzz::arrive(source, ofi::write_data_tag(number), std::move(bytes));
    }
    void access(Input& in) {
        const std::uint8_t kind = in.octet() % 4;
        const std::size_t length = (in.octet() | in.octet() << 8) % 9000;
        Slot& slot = add_slot(length);
        unsigned char* memory = slot.memory.get();
        ssize_t error = 0;
        if (kind == 0)
            error = fi_write(ep, memory, length, nullptr, near, 0, 1, &slot);
        else if (kind == 1)
            error = fi_read(ep, memory, length, nullptr, near, 0, 1, &slot);
        else if (kind == 2)
            error = fi_atomic(ep, memory, length, nullptr, near, 0, 1, FI_UINT8, FI_SUM, &slot);
        else
            error = fi_fetch_atomic(ep, memory, length, nullptr, memory, nullptr, near, 0, 1,
                                    FI_UINT8, FI_SUM, &slot);
        ULC_CHECK(error == 0 || error == -FI_EAGAIN || (kind > 1 && error == -FI_EINVAL));
    }
    static void response(Input& in) {
        const std::uint8_t number = in.octet();
        std::vector<unsigned char> bytes((in.octet() | in.octet() << 8) % 9000, 0x5a);
        in.read(bytes.data(), std::min<std::size_t>(bytes.size(), sizeof(ofi::RmaResponse)));
        fuzz::arrive(1, ofi::response_tag(number), std::move(bytes));
    }

    static void judge(const fi_cq_tagged_entry& entry) {
        if ((entry.flags & FI_SEND) != 0) return;
        if ((entry.flags & FI_REMOTE_WRITE) != 0) {
            ULC_CHECK(entry.op_context == nullptr && entry.len <= kRegionBytes);
            return;
        }
        auto& slot = *static_cast<Slot*>(entry.op_context);
        ULC_CHECK(!slot.over);
        const bool looks = slot.capacity == 0 && entry.buf == nullptr;
        if (!looks) ULC_CHECK(entry.len <= slot.capacity);
        if (entry.buf != nullptr) {
            const auto* begin = static_cast<const unsigned char*>(entry.buf);
            ULC_CHECK(begin >= slot.memory.get() &&
                      begin + entry.len <= slot.memory.get() + slot.capacity);
            if (slot.many) slot.take(begin, begin + entry.len);
        }
        ULC_CHECK((entry.flags & FI_REMOTE_CQ_DATA) != 0 || entry.data == 0);
        ULC_CHECK(entry.len <= ofi::kMessageBytesMax);
        slot.over = !slot.many || (entry.flags & FI_MULTI_RECV) != 0;
    }
    void read_all() {
        fi_cq_tagged_entry entry{};
        for (;;) {
            const ssize_t got = fi_cq_read(queue, &entry, 1);
            if (got == -FI_EAGAIN) return;
            if (got == 1) {
                judge(entry);
                continue;
            }
            ULC_CHECK(got == -FI_EAVAIL);
            fi_cq_err_entry error{};
            ULC_CHECK(fi_cq_readerr(queue, &error, 0) == 1);
            if ((error.flags & (FI_SEND | FI_READ | FI_WRITE)) != 0) continue;
            const auto& slot = *static_cast<Slot*>(error.op_context);
            ULC_CHECK(error.len <= slot.capacity && error.olen < 8400);
        }
    }

    void step(Input& in) {
        switch (in.octet() % 16) {
            case 0:
                return receive(in);
            case 1:
                return receive_many(in);
            case 2:
                return message(in);
            case 3:
                return look(in);
            case 4:
                return end_claim(in);
            case 5:
                fuzz::form();
                return read_all();
            case 6:
                return cancel(in);
            case 7:
                return address(in);
            case 8:
                return announcement(in);
            case 9:
                return message_behind(in);
            case 10:
                return send_long();
            case 11:
                return answer_it(in);
            case 12:
                return request(in);
            case 13:
                return data_of_write(in);
            case 14:
                return access(in);
            default:
                return response(in);
        }
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // The job of this process; it is read once.
    static const bool ready = ::setenv("ULC_JOB", "fuzz", 1) == 0 &&
                              ::setenv("ULC_RANK", "0", 1) == 0 &&
                              ::setenv("ULC_SIZE", "3", 1) == 0 &&
                              // Any file will do as the engine that two ranks share.
                              ::setenv("ULC_ENGINE", "/proc/self/exe", 1) == 0;
    ULC_CHECK(ready);
    World world;
    Input in{data, size};
    if (in.left > 0 && *in.data == 0xff) {
        static_cast<void>(in.octet());
        fuzz::unform();
    }
    for (int steps = 0; in.left > 0 && steps < 200; ++steps)
        world.step(in);
    fuzz::form();
    world.read_all();
    // A drop is counted when its message is taken: none is forgotten, and none is a good one.
    const auto& endpoint = static_cast<const ofi::Endpoint&>(*world.ep);
    const ofi::DroppedMessages& dropped = endpoint.dropped();
    ULC_CHECK(dropped.total() - dropped.count(ofi::HeaderFault::kDescriptor) -
                  dropped.count(ofi::HeaderFault::kAnswer) -
                  dropped.count(ofi::HeaderFault::kRequest) -
                  dropped.count(ofi::HeaderFault::kResponse) ==
              fuzz::malformed_taken());
    return 0;
}
