// SPDX-License-Identifier: BSD-3-Clause
// A scripted libibverbs: RDMA devices of one process on a fabric in memory. Each function behaves
// as the library's manual says, holds its caller to the rules (registered memory, states, objects
// given back), and fails where a test says so.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "verbs/address.h"
#include "verbs/library.h"

namespace ulc::verbs::test {

/// A function of a library that fails while a port is opened, and what the port then says.
struct Refusal {
    const char* function;
    int number;  ///< errno
    Err error;
    const char* words;  ///< a part of the sentence
};

struct FakeRegion {
    ibv_mr mr{};
    std::uint64_t first = 0;
    std::uint64_t last = 0;  ///< one past
};

struct PostedReceive {
    std::uint64_t id = 0;
    ibv_sge piece{};
};

/// One device with one port. The library's structs lie first, so that a pointer to the one is a
/// pointer to the device.
struct FakeDevice {
    ibv_device device{};
    ibv_context context{};
    ibv_pd pd{};
    ibv_qp qp{};
    ibv_cq send_cq{};
    ibv_cq receive_cq{};
    FakeDevice* self = this;

    ibv_device_attr attributes{};
    ibv_port_attr port{};
    std::vector<ibv_gid_entry> gids;
    std::vector<std::uint16_t> p_keys{0xffff};
    std::deque<ibv_async_event> events;
    std::uint32_t qp_number = 17;
    std::uint32_t inline_limit = 128;

    // --- the queue pair
    ibv_qp_state state = IBV_QPS_RESET;
    std::uint32_t q_key = 0;
    std::deque<PostedReceive> receives;
    std::deque<ibv_wc> sent;      ///< completions
    std::deque<ibv_wc> received;  ///< completions
    std::set<Gid> groups;
    std::vector<std::unique_ptr<FakeRegion>> regions;

    // --- what a test asks for
    bool holds_sends = false;  ///< completions of sends wait in `held`
    std::deque<ibv_wc> held;
    std::vector<ibv_sge> pieces_held;  ///< pieces of those sends, which the device still reads
    std::uint32_t next_key = 0x100;
    std::map<std::string, int> errors;  ///< function → error of its calls from now on
    int send_error = 0;                 ///< result of the next post_send()
    int send_error_at = 0;              ///< requests that it takes before
    int receive_error_at = -1;          ///< requests that the next post_recv() takes; -1: all
    bool bad_is_wild = false;           ///< the refused request is not told
    std::function<void(ibv_wc&, std::byte* grh)> spoil;  ///< changes what is received next
    bool handle_lids = false;  ///< InfiniBand: handles of groups have their LID
    int handle_error = 0;      ///< errno of create_ah() for unicasts

    // --- what it saw
    int doorbells = 0;
    int chain_longest = 0;
    int inlined = 0;
    int two_pieces = 0;
    int read_only = 0;  ///< registrations
    int writable = 0;
    int signalled = 0;
    int handles = 0;  ///< address handles that exist
    int handles_made = 0;
    int opens = 0;  ///< objects that exist, regions included, handles not
    int memberships = 0;
    std::vector<ibv_qp_state> states;
    std::uint16_t attach_lid = 0;  ///< LID of the last group
    std::uint16_t last_lid = 0;    ///< LID of the last frame's handle
    std::uint8_t last_level = 0;
    Gid last_to{};
};

struct FakeHandle {
    ibv_ah ah{};
    FakeDevice* device = nullptr;
    Gid to{};
    std::uint8_t gid_index = 0;
    std::uint16_t lid = 0;
    std::uint8_t service_level = 0;
};

/// The fabric of a test. One at a time: the library's functions have no context.
class Fabric {
public:
    Fabric();
    ~Fabric();
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;

    /// A device with a link-local GID that ends in `number`, of RoCE v2.
    FakeDevice& add(const std::string& name, std::uint8_t number);
    [[nodiscard]] const Library& library() const noexcept { return library_; }
    /// Completions of sends that were held come now.
    static void release_sends(FakeDevice& device);
    static void raise(FakeDevice& device, ibv_event_type type, int port = 1);
    /// A datagram of the wire, as the device would receive it.
    void deliver(const Gid& from, std::uint32_t qpn, const Gid& to, std::uint32_t to_qpn,
                 std::uint32_t q_key, const std::vector<std::byte>& payload);

    int list_error = 0;  ///< errno of get_device_list()
    bool no_devices = false;
    bool loops_back = false;  ///< multicasts reach their sender too
    std::vector<std::unique_ptr<FakeDevice>> devices;

private:
    Library library_;
};

[[nodiscard]] Gid gid_of(std::uint8_t number, bool v4 = false);

}  // namespace ulc::verbs::test
