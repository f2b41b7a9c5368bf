// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include "main/wires/wire.h"

namespace ulc::daemon {

const WireKind& wire_of(std::string_view device) noexcept {
    constexpr std::array kinds{
#define ULC_WIRE(name) &wire_##name,
#include "main/wires/wires.def"
#undef ULC_WIRE
    };
    for (const WireKind* kind : kinds)
        if (kind->takes(device)) return *kind;
    return *kinds.back();
}

Err open_wire(const WireOptions& options, std::unique_ptr<Wire>& out, std::string& why) {
    const WireKind& kind = wire_of(options.port.device);
    if (options.port.exception && kind.no_exception != nullptr) {
        why = std::string(kind.no_exception) + "; leave --exception out";
        return Err::kInvalid;
    }
    const bool has_ip = options.ip.address != 0;
    if (has_ip && kind.no_ip != nullptr) {
        why = std::string(kind.no_ip) + "; leave --ip out";
        return Err::kInvalid;
    }
    if (const Err e = kind.open(options, out, why); e != Err::kOk) return e;
    if (has_ip) return put_ip_around(options, out, why);
    return options.seal.empty() || kind.seals_itself ? Err::kOk : seal_wire(options, out, why);
}

}  // namespace ulc::daemon
