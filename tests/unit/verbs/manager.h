// SPDX-License-Identifier: BSD-3-Clause
// A scripted librdmacm: the connection manager of a test, which joins at once, later or never, and
// holds its caller to the library's rules: reports are given back before a group is left, no group
// is joined twice, ids end with their channel.
#pragma once

#include <infiniband/ib.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/verbs/fabric.h"
#include "verbs/join/cm_library.h"

namespace ulc::verbs::test {

/// One at a time: the library's functions have no context.
class Manager {
public:
    Manager();
    ~Manager();
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;

    [[nodiscard]] const CmLibrary& library() const noexcept { return library_; }
    /// Gives this machine the address 10.0.0.last, of an interface of that device.
    void add_address(std::uint8_t last, FakeDevice* device, std::uint8_t port = 1,
                     std::uint16_t p_key = 0xffff);
    /// The next report, which names the group with that user data.
    void tell(unsigned type, int status = 0, std::uintptr_t name = 1);
    /// Ends a membership as after a restart of the subnet manager.
    void lose(const Gid& group, int status);
    [[nodiscard]] bool has(const Gid& group) const { return groups.contains(group); }

    // --- what a test asks for
    std::map<std::string, int> errors;  ///< function → errno of its calls from now on
    int join_status = 0;                ///< status of the reports of joins
    bool silent = false;                ///< no join is reported
    std::uint16_t lid = 0xc000;         ///< LID of the next group
    std::uint8_t service_level = 0;

    // --- what it saw
    std::map<Gid, void*> groups;  ///< asked for: user data
    int joins = 0;
    int waits = 0;
    int ids = 0;
    int channels = 0;
    int in_hand = 0;  ///< reports that were not given back
    int binds = 0;
    std::deque<rdma_cm_event> events;

    struct Own {
        sockaddr_storage address{};
        FakeDevice* device = nullptr;
        std::uint8_t port = 1;
        std::uint16_t p_key = 0xffff;
    };
    std::vector<Own> own;
    rdma_event_channel channel{};
    rdma_cm_id id{};

private:
    CmLibrary library_;
};

/// The MGID that an address of a join means.
[[nodiscard]] Gid mgid_in(const sockaddr* address);

}  // namespace ulc::verbs::test
