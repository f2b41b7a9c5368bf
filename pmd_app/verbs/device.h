// SPDX-License-Identifier: BSD-3-Clause
// Device strings of an RDMA port: "verbs,dev=mlx5_0,port=1,gid=3,pkey=0x8001,join=cm".
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ulc::verbs {

struct DeviceSpec {
    std::string name;                    ///< as of ibv_devices
    std::uint8_t port = 1;               ///< number of the port, from 1
    std::optional<std::uint16_t> gid;    ///< index into the port's GID table; none: chosen
    std::optional<std::uint16_t> p_key;  ///< none: the first of the port's table
    bool join_by_manager = false;        ///< groups also with RoCE by the connection manager
};

/// True if the device string means an RDMA port.
[[nodiscard]] bool is_verbs(std::string_view device) noexcept;

/// Reads such a string. Errors: kInvalid; `why` says what is understood.
Err parse_device(std::string_view device, DeviceSpec& out, std::string& why);

}  // namespace ulc::verbs
