// SPDX-License-Identifier: BSD-3-Clause
// The provider's answer to fi_getinfo(): its offers.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

#include "ofi/message_header.h"

namespace ulc::ofi {

inline constexpr char kName[] = "ulc";
// libfabric 2 has these without a name, or warns of it.
inline constexpr std::uint32_t kProviderSpecific = 1U << 31;  ///< FI_PROV_SPECIFIC
inline constexpr int kMemoryBasic = 1;                        ///< FI_MR_BASIC
inline constexpr int kMemoryScalable = 2;                     ///< FI_MR_SCALABLE
inline constexpr std::uint64_t kOrderNone = 0;                ///< FI_ORDER_NONE

inline constexpr std::uint32_t kAddressFormat = kProviderSpecific | 0x756c63;
inline constexpr std::uint32_t kProtocol = kProviderSpecific | 0x756c63;
inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::size_t kMessageBytesMax = (std::size_t{1} << 40) - sizeof(MessageHeader);
inline constexpr std::size_t kInjectBytesMax = 4096;
inline constexpr std::size_t kPiecesMax = 7;  ///< the eighth of libulc is the header
/// Operations of each direction that an application may count on. More are taken.
inline constexpr std::size_t kQueueSize = 1024;
inline constexpr std::size_t kQueueSizeMax = 65536;
/// Operations of an endpoint that wait for its job to form.
inline constexpr std::size_t kDeferredMax = 1024;

inline constexpr std::uint64_t kSendFlags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
                                            FI_TRANSMIT_COMPLETE | FI_MATCH_COMPLETE |
                                            FI_DELIVERY_COMPLETE;
inline constexpr std::uint64_t kReceiveFlags = FI_COMPLETION | FI_MULTI_RECV;

/// fi_getinfo() of this provider. Returns -FI_ENODATA if no engine answers or the hints ask for
/// what is not there.
int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** out) noexcept;

/// True if the engine that ulc_open(NULL) would take is there. Takes microseconds, says nothing.
[[nodiscard]] bool engine_answers() noexcept;

}  // namespace ulc::ofi
