// SPDX-License-Identifier: BSD-3-Clause
// One opened RDMA port: device, protection domain, two completion queues and one UD queue pair,
// with the states of the queue pair. The hot path is verbs_port.h; this is set-up and recovery.
//
//   queue pair:  RESET ─▶ INIT ─▶ RTR ─▶ RTS ──error──▶ (looked at) ──▶ RESET …    its number stays
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "verbs/address.h"
#include "verbs/device.h"
#include "verbs/library.h"
#include "verbs/memories.h"

namespace ulc::verbs {

struct AdapterOptions {
    DeviceSpec device;
    std::uint16_t ether_type = 0x88B5;
    std::uint32_t send_frames = 1024;
    std::uint32_t receive_frames = 1024;
};

/// P_Key of the partition that each node is a full member of unless configured otherwise.
inline constexpr std::uint16_t kDefaultPKey = 0xffff;
/// Least MTU of a port, in octets of payload.
inline constexpr std::uint32_t kPortMtuMin = 1024;

/// Changes of the device that the port must know.
enum class Event : std::uint8_t { kNone, kOther, kPortChanged, kGidChanged, kQueueFailed, kGone };

class Adapter {
public:
    explicit Adapter(const Library& library) : verbs_(library), memories_(library) {}
    ~Adapter();
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;

    /// Opens device and port, makes the queues. Errors: kInvalid, kPermission, kPortDown,
    /// kNoMemory, kUnsupported, kSystem. `why` says what to do.
    Err open(const AdapterOptions& options, std::string& why);
    /// Registers memory for sending and receiving; it stays so until this object ends. Errors:
    /// kNoMemory, kSystem.
    Err register_memory(std::span<std::byte> memory, std::uint32_t& key, std::string& why);
    /// Lets the device read memory of a client (Port::add_memory). looks: number of the look.
    [[nodiscard]] std::uint32_t add_memory(std::span<const std::byte> memory,
                                           std::uint32_t looks) noexcept {
        return memories_.add(pd_, memory, looks);
    }
    [[nodiscard]] Memories& memories() noexcept { return memories_; }
    /// Brings the queue pair from RESET, or out of an error by RESET, to RTS. The
    /// device forgets all that was posted. Returns 0, or the number of the error.
    [[nodiscard]] int bring_up() noexcept;
    /// Returns the next event, which has been acknowledged.
    [[nodiscard]] Event next_event() noexcept;
    /// Reads the port's state again. True: it carries frames.
    [[nodiscard]] bool is_active() noexcept;
    /// Finds the node's GID again after the table changed. False: it is gone.
    [[nodiscard]] bool find_own_gid() noexcept;
    /// Finds the GID that is in the place of the node's, which is gone: at the index that was
    /// chosen, or another of the same kind and interface. False: there is none, or groups belong to
    /// the address of the one that is gone.
    [[nodiscard]] bool find_successor() noexcept;
    /// Returns the address that the node has with that GID.
    [[nodiscard]] Address successor() const noexcept { return {next_.gid, own_.qpn}; }
    /// Makes it the node's. find_successor() was true.
    void take_successor() noexcept { take_gid(next_index_, next_); }
    [[nodiscard]] const std::string& name() const noexcept { return device_.name; }
    [[nodiscard]] std::uint8_t port() const noexcept { return device_.port; }
    /// "verbs device rxe0, port 1"
    [[nodiscard]] std::string port_text() const;
    /// True if the port has no Ethernet: a subnet manager hands out its groups.
    [[nodiscard]] bool is_infiniband() const noexcept { return infiniband_; }
    [[nodiscard]] std::uint16_t p_key() const noexcept { return p_key_; }
    /// True for RoCE v2, whose frames are UDP datagrams.
    [[nodiscard]] bool routable() const noexcept { return routable_; }
    /// Index of the network interface behind the GID; 0: unknown.
    [[nodiscard]] std::uint32_t interface() const noexcept { return interface_; }
    [[nodiscard]] std::uint16_t gid_index() const noexcept { return gid_index_; }
    /// Makes an address handle; nullptr: failed, errno says why. May take as long as the kernel
    /// asks for a neighbour.
    [[nodiscard]] ibv_ah* make_handle(const Gid& to, std::uint16_t lid,
                                      std::uint8_t service_level) noexcept;

    [[nodiscard]] const Address& own() const noexcept { return own_; }
    /// True if frames travel over IPv4.
    [[nodiscard]] bool v4() const noexcept { return routable_ && is_v4(own_.gid); }
    [[nodiscard]] std::uint32_t mtu() const noexcept { return mtu_; }  ///< octets of a payload
    [[nodiscard]] std::uint64_t bits_per_second() const noexcept { return bits_per_second_; }
    [[nodiscard]] std::uint32_t send_frames() const noexcept { return send_frames_; }
    [[nodiscard]] std::uint32_t receive_frames() const noexcept { return receive_frames_; }
    [[nodiscard]] std::uint32_t inline_max() const noexcept { return inline_max_; }
    [[nodiscard]] ibv_qp* qp() const noexcept { return qp_; }
    [[nodiscard]] ibv_cq* send_cq() const noexcept { return send_cq_; }
    [[nodiscard]] ibv_cq* receive_cq() const noexcept { return receive_cq_; }
    [[nodiscard]] std::uint32_t q_key() const noexcept { return q_key_; }

private:
    Err open_device(const std::string& name, std::string& why);
    Err open_port(std::string& why);
    Err choose_gid(std::string& why);
    Err choose_p_key(std::string& why);
    Err make_queues(const AdapterOptions& options, std::string& why);
    struct GidEntry {
        Gid gid{};
        bool routable = false;
        std::uint32_t interface = 0;
    };
    [[nodiscard]] bool read_gid(std::uint32_t index, GidEntry& out) noexcept;
    [[nodiscard]] bool is_like_own(const GidEntry& entry) const noexcept;
    void take_gid(std::uint32_t index, const GidEntry& entry) noexcept;
    [[nodiscard]] int modify(ibv_qp_state state, int mask) noexcept;

    const Library& verbs_;
    DeviceSpec device_;
    ibv_context* context_ = nullptr;
    ibv_pd* pd_ = nullptr;
    ibv_cq* send_cq_ = nullptr;
    ibv_cq* receive_cq_ = nullptr;
    ibv_qp* qp_ = nullptr;
    ibv_mr* regions_[2] = {};
    std::uint32_t regions_made_ = 0;
    Memories memories_;
    std::uint32_t gids_ = 0;  ///< entries of the port's table
    std::uint32_t p_keys_ = 0;
    std::uint16_t gid_index_ = 0;
    bool infiniband_ = false;
    bool routable_ = false;  ///< the GID is of RoCE v2
    std::uint16_t p_key_index_ = 0;
    std::uint16_t p_key_ = kDefaultPKey;
    std::uint32_t interface_ = 0;
    Address own_;
    GidEntry next_;  ///< successor of the GID
    std::uint32_t next_index_ = 0;
    std::uint32_t q_key_ = 0;
    std::uint32_t mtu_ = 0;
    std::uint64_t bits_per_second_ = 0;
    std::uint32_t send_frames_ = 0;
    std::uint32_t receive_frames_ = 0;
    std::uint32_t inline_max_ = 0;
};

}  // namespace ulc::verbs
